"""Containers and what they are made of: namespaces, other roots, cgroups; and pids that are reused."""
import contextlib
import os
import re
import shutil
import signal
import subprocess

import harness
from harness import CUDABPF, LIBRARY, WORKLOADS, wait_for

CALLS = f"{WORKLOADS}/fake_calls"
LATER = "setup; print ready; read; loop 20 { sync }"
ID, OTHER = "0123456789abcdef" * 4, "0123fedcba987654" * 4
POD = "12345678-1234-1234-1234-123456789abc"
# Runs its arguments in a separate mount namespace, where $1 is a copy of $2.
HIDE = 'mount -t tmpfs none "$1" && cp "$2" "$1/libcuda.so.1" && shift 2 && exec "$@"'


class Live(harness.LiveTest):
    def needs(self, *command):
        done = subprocess.run([*command, "true"], check=False, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            self.skipTest(f"{' '.join(command)} does not work here: {done.stderr.strip()}")
        return list(command)

    def mount_namespace(self, path, script):
        """fake_calls with a library that no other process sees."""
        os.makedirs(path, exist_ok=True)
        return [*self.needs("unshare", "-m"), "sh", "-c", HIDE, "sh", path, LIBRARY, CALLS, "--library",
                f"{path}/libcuda.so.1", script]

    def pid_namespace(self, *command):
        return [*self.needs("unshare", "-pf", "--kill-child", "--mount-proc"), *command]

    def start_waiting(self, command, **options):
        """A program, once it has reached `print ready`."""
        program = self.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)
        self.is_ready(program)
        return program

    def is_ready(self, program):
        self.assertEqual(program.process.stdout.readline(), b"ready\n", program.stderr())

    def attach(self, *arguments):
        return self.start_cudabpf("attach", "-o", self.path, "--profile", "full", *arguments)

    def end(self, tracer, *programs):
        """Lets these go on and waits for their end, and the tracer's, which may be signalled to end; returns the trace."""
        for program in programs:
            program.send_line()
        for program in programs:
            self.assertEqual(program.wait(), 0, program.stderr())
        if not self.ends_by_itself:
            tracer.signal(signal.SIGINT)
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        return self.read()

    ends_by_itself = True

    def children(self, pid):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return list(map(int, file.read().split()))

    def check_late(self, trace):
        """One copy came late; from its line on, all of its 20 cuStreamSynchronize calls are there."""
        self.check_accounts(trace)
        self.assertEqual([lost["reason"] for lost in trace.lost], ["late_library"])
        self.assertEqual(trace.end["losses"], {"late_library": 1})
        self.assertEqual([library["functions"] for library in trace.libraries], [len(harness.profile_symbols("full"))])
        syncs = [call for call in trace.named("cuStreamSynchronize") if call["ts"] > trace.libraries[0]["ts"]]
        self.assertEqual([call.get("ret") for call in syncs], [0] * 20)

    # --- mounts and roots

    def test_mount_namespace(self):
        """A library that only that process sees."""
        hidden = f"{self.folder}/hidden"
        program = self.start_waiting(self.mount_namespace(hidden, LATER))
        self.assertEqual(os.listdir(hidden), [])
        trace = self.end(self.attach("--pid", program.pid), program)
        self.check_law(trace)
        self.assertEqual(trace.counts(), {"cuStreamSynchronize": 20})
        self.assertIn(f"{hidden}/libcuda.so.1", [library["path"] for library in trace.header["libraries"]])

    def test_mount_namespace_other_name(self):
        """A program that has ended before cudabpf can look, with the machine's own copy under a name that it alone saw: nothing is lost."""
        unshare = self.needs("unshare", "-m")
        path = f"{self.folder}/own"
        os.mkdir(path)
        bind = 'mount -t tmpfs none "$1" && touch "$1/libcuda.so.1" && mount --bind "$2" "$1/libcuda.so.1" && shift 2 && exec "$@"'
        tracer = self.start_cudabpf("-o", self.path, "--profile", "full", "--library", LIBRARY)
        tracer.signal(signal.SIGSTOP)
        program = self.start([*unshare, "sh", "-c", bind, "sh", path, LIBRARY, CALLS, "--library", f"{path}/libcuda.so.1", "setup; sync"],
                             env=self.environment())
        self.assertEqual(program.wait(), 0, program.stderr())
        tracer.signal(signal.SIGCONT)
        tracer.signal(signal.SIGINT)
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        trace = self.read()
        self.check_law(trace)
        self.check_counts(trace)

    def test_mount_namespace_late(self):
        hidden = f"{self.folder}/hidden"
        tracer = self.start_cudabpf("run", "-o", self.path, "--profile", "full", "--",
                                    *self.mount_namespace(hidden, LATER), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.is_ready(tracer)
        wait_for(lambda: self.read(whole=False).libraries, "a library line")
        trace = self.end(tracer, tracer)
        self.check_late(trace)
        self.assertEqual(trace.libraries[0]["path"], f"{hidden}/libcuda.so.1")

    def test_mount_namespace_same_path(self):
        """Another copy is mounted over the known one: both are traced."""
        shutil.copy(LIBRARY, f"{self.folder}/libcuda.so.1")
        known = self.start_waiting([CALLS, "--library", f"{self.folder}/libcuda.so.1", LATER])
        os.mkdir(f"{self.folder}/record-2")
        hidden = self.start_waiting(self.mount_namespace(self.folder, LATER.replace("20", "30")),
                                    env=self.environment(COUNTS=None, LOG=None))
        trace = self.end(self.attach("--pid", f"{known.pid},{hidden.pid}"), known, hidden)
        self.check_law(trace)
        self.assertEqual(trace.counts(known.pid), {"cuStreamSynchronize": 20})
        self.assertEqual(trace.counts(hidden.pid), {"cuStreamSynchronize": 30})
        paths = [library["path"] for library in trace.header["libraries"]]
        self.assertEqual(paths.count(f"{self.folder}/libcuda.so.1"), 2)

    def test_mount_namespace_same_path_gone(self):
        """As before, but late, and gone before cudabpf looked: what was missed is not mistaken for the known one."""
        shutil.copy(LIBRARY, f"{self.folder}/libcuda.so.1")
        command = self.mount_namespace(self.folder, "setup; loop 20 { sync }")
        starter = self.start(["sh", "-c", 'read x; "$@"; echo ready; read x', "sh", *command], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, env=self.environment(COUNTS=None, LOG=None))
        tracer = self.attach("--pid", starter.pid, "--library", f"{self.folder}/libcuda.so.1")
        tracer.signal(signal.SIGSTOP)
        starter.send_line()
        self.is_ready(starter)
        tracer.signal(signal.SIGCONT)
        trace = self.end(tracer, starter)
        self.check_accounts(trace)
        self.assertEqual(trace.calls, [])
        self.assertEqual([lost["reason"] for lost in trace.lost], ["late_library"])

    def other_root(self):
        """A folder with fake_calls, what it needs and its own libcuda, and nothing else."""
        root = f"{self.folder}/root"
        text = subprocess.run(["ldd", CALLS], check=True, stdout=subprocess.PIPE, text=True).stdout
        for path in [*re.findall(r"(/\S+) \(0x", text), CALLS, LIBRARY]:
            place = root + (path if path not in (CALLS, LIBRARY) else f"/{os.path.basename(path)}")
            os.makedirs(os.path.dirname(place), exist_ok=True)
            shutil.copy(path, place)
        os.mkdir(f"{root}/record")
        return root, ["chroot", root, "/fake_calls", "--library", "/libcuda.so.1", LATER]

    def test_chroot(self):
        root, command = self.other_root()
        program = self.start_waiting(command, env=self.environment(COUNTS="/record", LOG=None))
        before = harness.records(f"{root}/record")[program.pid].counts
        trace = self.end(self.attach("--pid", program.pid), program)
        self.check_law(trace)
        self.assertEqual(trace.counts(), {"cuStreamSynchronize": 20})
        self.assertNotIn("cuStreamSynchronize", before)
        inode = os.stat(f"{root}/libcuda.so.1").st_ino
        self.assertIn(inode, [library["inode"] for library in trace.header["libraries"]])

    def test_chroot_late(self):
        root, command = self.other_root()
        tracer = self.start_cudabpf("run", "-o", self.path, "--profile", "full", "--", *command,
                                    env=self.environment(COUNTS="/record", LOG=None),
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.is_ready(tracer)
        wait_for(lambda: self.read(whole=False).libraries, "a library line")
        trace = self.end(tracer, tracer)
        self.check_late(trace)
        self.assertEqual(trace.libraries[0]["inode"], os.stat(f"{root}/libcuda.so.1").st_ino)

    # --- pids

    def test_pid_namespace(self):
        """pid is what cudabpf sees, ns_pid what the process itself sees."""
        script = "setup; malloc a 1; fork { malloc b 2; fork { malloc c 3 }; wait }; wait"
        trace = self.traced(self.pid_namespace(CALLS, "--library", LIBRARY, script), "--library", LIBRARY)
        self.check_law(trace)
        inner = self.records()
        self.assertEqual(set(inner), {1, 2, 3})
        outer = {}
        for line in trace.processes:
            if "ns_pid" in line:
                outer.setdefault(line["ns_pid"], set()).add(line["pid"])
        self.assertEqual({number: len(pids) for number, pids in outer.items()}, {1: 1, 2: 1, 3: 1})
        outer = {number: pids.pop() for number, pids in outer.items()}
        for number, record in inner.items():
            self.assertEqual(dict(trace.counts(outer[number])), record.counts)
            self.assertEqual(len(trace.process("exit", outer[number])), 1)
        self.assertEqual([trace.process("fork", outer[i + 1])[0]["ppid"] for i in (1, 2)], [outer[1], outer[2]])
        self.assertEqual({call["pid"] for call in trace.calls}, set(outer.values()))
        self.assertEqual({call["tid"] for call in trace.calls}, set(outer.values()))

    def test_pid_namespace_attach(self):
        program = self.start_waiting(self.pid_namespace(CALLS, "--library", LIBRARY, LATER))
        pid, = self.children(program.pid)
        trace = self.end(self.attach("--pid", pid), program)
        self.check_law(trace)
        self.assertEqual(trace.counts(pid), {"cuStreamSynchronize": 20})
        self.assertEqual([(line["op"], line["pid"], line["ppid"], line["ns_pid"]) for line in trace.processes],
                         [("start", pid, program.pid, 1), ("exit", pid, program.pid, 1)])
        self.assertEqual(trace.processes[0]["cmdline"], " ".join([CALLS, "--library", LIBRARY, LATER]))

    def test_inside_a_pid_namespace(self):
        """cudabpf in a pid namespace: its pids are that namespace's; processes in inner namespaces have ns_pid."""
        script = "setup; malloc a 1; fork { malloc b 2 }; wait"
        deeper = self.pid_namespace(CALLS, "--library", LIBRARY, script)
        both = f'"$@"; FAKE_CUDA_COUNTS="$DEEPER" FAKE_CUDA_LOG="$DEEPER" {" ".join(deeper[:4])} "$@"'
        deeper = f"{self.folder}/deeper"
        os.mkdir(deeper)
        done = self.start(self.pid_namespace(CUDABPF, "run", "-o", self.path, "--profile", "full", "--library", LIBRARY,
                                             "--", "sh", "-c", both, "sh", CALLS, "--library", LIBRARY, script),
                          env={**self.environment(), "DEEPER": deeper})
        self.assertEqual(done.wait(), 0, done.stderr())
        trace = self.read()
        self.check_law(trace)
        inner = {line["pid"]: line["ns_pid"] for line in trace.processes if "ns_pid" in line}
        self.assertEqual(sorted(inner.values()), [1, 2])
        self.assertLess(max(line["pid"] for line in trace.processes), 100)
        for pid, record in self.records().items():
            self.assertNotIn(pid, inner)
            self.assertEqual(dict(trace.counts(pid)), record.counts)
        for pid, number in inner.items():
            self.assertEqual(dict(trace.counts(pid)), harness.records(deeper)[number].counts)
        self.assertEqual({call["pid"] for call in trace.calls}, {*self.records(), *inner})
        self.assertEqual(len([line for line in trace.processes if line["op"] == "exit"]), 6, trace.processes)

    def test_machine_inside_a_pid_namespace(self):
        """Everything in the namespace is traced, and nothing outside it."""
        script = '"$0" -o "$1" --profile full --library "$2" & read x; "$3" --library "$2" "$4"; kill $!; wait $!'
        inside = self.start(self.pid_namespace("sh", "-c", script, CUDABPF, self.path, LIBRARY, CALLS,
                                               "setup; loop 20 { sync }"), stdin=subprocess.PIPE)
        wait_for(lambda: os.path.exists(self.path) and os.path.getsize(self.path), "a header")
        outside = self.start([CALLS, "--library", LIBRARY, "setup; loop 20 { malloc a 1 }"],
                             env=self.environment(COUNTS=None, LOG=None))
        self.assertEqual(outside.wait(), 0, outside.stderr())
        inside.send_line()
        self.assertEqual(inside.wait(), 0, inside.stderr())
        trace = self.read()
        self.check_whole(trace)
        self.assertEqual(trace.counts()["cuStreamSynchronize"], 20)
        self.assertEqual({line["pid"] for line in trace.processes}, set(self.records()))

    def test_machine_inside_a_pid_namespace_copy_outside(self):
        """A copy that only a process outside maps does not concern the trace."""
        script = '"$0" -o "$1" --profile full --library "$2" & read x; kill $!; wait $!'
        inside = self.start(self.pid_namespace("sh", "-c", script, CUDABPF, self.path, LIBRARY), stdin=subprocess.PIPE)
        wait_for(lambda: os.path.exists(self.path) and os.path.getsize(self.path), "a header")
        copy = shutil.copy(LIBRARY, f"{self.folder}/libcuda.so.1")
        outside = self.start([CALLS, "--library", copy, "setup; loop 20 { malloc a 1 }; sleep 300"],
                             env=self.environment(COUNTS=None, LOG=None))
        self.assertEqual(outside.wait(), 0, outside.stderr())
        inside.send_line()
        self.assertEqual(inside.wait(), 0, inside.stderr())
        trace = self.read()
        self.check_law(trace)
        self.assertEqual((trace.calls, trace.processes, trace.libraries), ([], [], []))

    def test_pid_reuse(self):
        """Two processes, one after the other, with the same pid: each has its lines, and its own exit."""
        script = """
            "$@" 'setup; module m; function f m first; malloc a 1; launch f 1 1 1 1 1 1 0; quit 3' & pid=$!; wait $pid
            for try in 1 2 3 4 5 6 7 8 9 10; do
                echo $((pid - 1)) >/proc/sys/kernel/ns_last_pid || exit 9
                sh -c 'test $$ = $0 || exit 8; exec "$@" "setup; module m; function f m second; malloc a 2;
                       launch f 1 1 1 1 1 1 0; quit 4"' $pid "$@" & wait $!; [ $? = 8 ] || exit 0
            done"""
        program = self.start(self.pid_namespace(CUDABPF, "run", "-o", self.path, "--profile", "full", "--library",
                                                LIBRARY, "--", "sh", "-c", script, "sh", CALLS, "--library", LIBRARY),
                             env=self.environment(COUNTS=None, LOG=None))
        if program.wait() == 9:
            self.skipTest("/proc/sys/kernel/ns_last_pid cannot be written here")
        trace = self.read()
        self.check_law(trace)
        pids = {call["pid"] for call in trace.calls}
        if len(pids) != 1 or len(trace.named("cuInit")) != 2:
            self.skipTest("the pid did not come back")
        pid, = pids
        lines = [(line["op"], line.get("exit_code")) for line in trace.processes if line["pid"] == pid]
        self.assertEqual(lines, [("fork", None), ("exec", None), ("exit", 3),
                                 ("fork", None), ("exec", None), ("exec", None), ("exit", 4)])
        first, second = trace.process("exit", pid)
        born = trace.process("fork", pid)[1]["ts"]
        self.assertLess(first["ts"], born)
        for name, field, values in (("cuMemAlloc_v2", "size", [1, 2]),
                                    ("cuLaunchKernel", "kernel", ["first", "second"])):
            self.assertEqual([call[field] for call in trace.named(name)], values)
            ends = [call["ts"] < first["ts"] for call in trace.named(name)]
            self.assertEqual(ends, [True, False])
        self.assertGreater(second["ts"], born)

    # --- cgroups

    def cgroup(self, path=""):
        """A cgroup inside the one that belongs to the test: (its folder, its path)."""
        with open("/proc/self/mounts", encoding="utf-8") as file:
            mounts = [line.split()[1] for line in file if line.split()[2] == "cgroup2"]
        if not mounts:
            self.skipTest("no cgroup2 is mounted")
        path = f"/cudabpf-live-{os.getpid()}/{path}".rstrip("/")
        for end in [*(i for i, c in enumerate(path) if c == "/" and i), len(path)]:
            folder = mounts[0] + path[:end]
            if os.path.exists(folder):
                continue
            try:
                os.mkdir(folder)
            except OSError as error:
                self.skipTest(f"no cgroup can be made here: {error}")
            self.addCleanup(self.remove_cgroup, folder)
        return folder, path

    def remove_cgroup(self, folder):
        def removed():
            with contextlib.suppress(OSError):
                os.rmdir(folder)
            return not os.path.exists(folder)
        wait_for(removed, f"rid of {folder}")

    def enter(self, folder, pid=0):
        with open(f"{folder}/cgroup.procs", "w", encoding="ascii") as file:
            file.write(str(pid))

    def start_in(self, folder, script=LATER):
        return self.start_waiting([CALLS, "--library", LIBRARY, script], preexec_fn=lambda: self.enter(folder))

    def test_containers(self):
        """What runs a process, and in which container, according to its cgroup."""
        expected = {
            f"docker-{ID}.scope": ("docker", ID),
            f"docker/{ID}": ("docker", ID),
            f"docker/{ID}/init": ("docker", ID),
            f"kubepods.slice/kubepods-pod{POD.replace('-', '_')}.slice/cri-containerd-{ID}.scope": ("containerd", ID),
            f"kubepods/burstable/pod{POD}/{ID}": ("kubernetes", ID),
            f"machine.slice/libpod-{ID}.scope/container": ("podman", ID),
            f"kubepods.slice/crio-{ID}.scope": ("cri-o", ID),
            "lxc.payload.web-1/system.slice": ("lxc", "web-1"),
            "machine.slice/machine-guest.scope": ("systemd-nspawn", "guest"),
            f"docker-{OTHER}.scope/docker/{ID}": ("docker", ID),
            "system.slice/inference.service": None,
            f"machine.slice/libpod-conmon-{ID}.scope": None,
            f"docker-{ID[1:]}.scope": None,
        }
        folders = [self.cgroup(path)[0] for path in expected]
        programs = [self.start_in(folder, "setup; print ready; read; sync") for folder in folders]
        _, base = self.cgroup()
        self.ends_by_itself = False
        trace = self.end(self.attach("--container", base), *programs)
        self.check_law(trace)
        for program, (path, container) in zip(programs, expected.items()):
            with self.subTest(path):
                start, = trace.process("start", program.pid)
                self.assertEqual(start["cgroup"], f"{base}/{path}")
                identity = dict(zip(("runtime", "id"), container)) if container else None
                if path.startswith(("kubepods.slice/kubepods-pod", "kubepods/burstable")):
                    identity["pod"] = POD
                self.assertEqual(start.get("container"), identity)
                if path.startswith("system.slice"):
                    self.assertEqual(start["unit"], "inference.service")
                self.assertEqual(trace.counts(program.pid), {"cuStreamSynchronize": 1})

    def check_container(self, container, folder, other):
        """All processes in the folder, now or later, are traced, and those in the other are not."""
        # The container is read from /proc, so no process ends before that.
        script = f"{LATER}; read"
        there, moved, stranger = (self.start_in(place, script) for place in (folder, other, other))
        self.ends_by_itself = False
        tracer = self.attach("--container", container)
        self.enter(folder, moved.pid)
        later = self.start_in(folder, "setup; print ready; read; fork { sync; sleep 500 }; read; wait")
        deeper = f"{folder}/deeper"
        os.mkdir(deeper)
        self.addCleanup(self.remove_cgroup, deeper)
        deepest = self.start_in(deeper, script)
        for program in (there, moved, stranger, later, deepest):
            program.send_line()
        wait_for(lambda: len({line["pid"] for line in self.read(whole=False).processes}) == 5, "five processes")
        trace = self.end(tracer, there, moved, stranger, later, deepest)
        self.check_law(trace)
        for program in (there, moved):
            self.assertEqual(trace.counts(program.pid), {"cuStreamSynchronize": 20})
        child, = (line["pid"] for line in trace.processes if line["op"] == "fork")
        for pid in (later.pid, child, deepest.pid):
            self.assertEqual(dict(trace.counts(pid)), self.records()[pid].counts)
        pids = {there.pid, moved.pid, later.pid, child, deepest.pid}
        self.assertEqual({call["pid"] for call in trace.calls}, pids)
        self.assertEqual({line["pid"] for line in trace.processes}, pids)
        self.assertEqual({line["pid"] for line in trace.processes if line["op"] == "exit"}, pids)
        self.assertEqual(trace.end["reason"], "interrupted")
        return trace

    def test_container_by_id(self):
        """The beginning of the id is enough."""
        folder, _ = self.cgroup(f"docker-{ID}.scope")
        other, _ = self.cgroup(f"docker-{OTHER}.scope")
        trace = self.check_container(ID[:12], folder, other)
        starts = [line for line in trace.processes if line["op"] == "start"]
        self.assertEqual([line["container"] for line in starts], [{"runtime": "docker", "id": ID}] * 4)

    def test_container_ambiguous(self):
        """More of the id is required if it could mean two containers."""
        for container in (ID, OTHER):
            folder, _ = self.cgroup(f"docker-{container}.scope")
            self.start_in(folder)
        common = os.path.commonprefix([ID, OTHER])
        self.assertGreater(len(common), 0)
        done = self.run_cudabpf("attach", "--container", common, "-o", self.path)
        self.assertEqual(done.returncode, 123, done.stderr)
        self.assertIn(ID, done.stderr.decode())
        self.assertIn(OTHER, done.stderr.decode())

    def test_container_by_path(self):
        """Any cgroup, as /proc/PID/cgroup shows it or as its folder; it may be empty."""
        folder, path = self.cgroup("jobs/one")
        other, _ = self.cgroup("jobs/one-more")
        self.check_container(path, folder, other)
        for given in (path + "/", folder):
            os.unlink(self.path)
            tracer = self.attach("--container", given, "--library", LIBRARY)
            program = self.start_in(folder)
            trace = self.end(tracer, program)
            self.check_law(trace)
            self.assertEqual(dict(trace.counts()), self.records()[program.pid].counts)


if __name__ == "__main__":
    harness.main()
