"""`run --inside` when something is in its way: cudabpf killed or stopped, uprobes on the same functions, limits, and
other processes that connect to its listener.

These tests are run only this way (inside_tests.txt); as root, eBPF looks on in some of them.
"""
import collections
import contextlib
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import time

import harness
import insiders
from expected import check_calls
from harness import CUDABPF, INSIDE_LIBRARY, LIBRARY, NOBODY, OLD, PATIENCE, PYTHON, WORKLOADS, calls, ended, wait_for
from insiders import EVERYTHING, STORM

CHROOTED = """
import ctypes, os, sys
driver = ctypes.CDLL(sys.argv[1])
os.chroot(sys.argv[2])
os.chdir("/")
print(driver.cuInit(0), [driver.cuProfilerStart() for i in range(3)])
"""


def limited(limit, value, *command):
    """With a limit of the shell's ulimit, which the command alone has."""
    return ["sh", "-c", f'ulimit -{limit} {value} && exec "$@"', "sh", *command]


class Live(insiders.InsideTest):
    # --- cudabpf in trouble

    def test_cudabpf_killed(self):
        """At any moment: the program goes on, and ends with its own status and output."""
        for wait_ms in (0, 5, 20, 100, 300):
            self.setUp()
            script = "print first; setup; loop 200 { malloc a 4K; free a; fork { sync }; wait }; thread { setup; sync }; wait; print last; exit 6"
            out = f"{self.folder}/out"
            tracer = self.start([CUDABPF, "run", "-q", "-o", self.path, "--profile", "full", "--", "sh", "-c",
                                 '"$@" >"$0"; echo $? >>"$0"', out, *calls(script)])
            wait_for(lambda: os.path.exists(out) and os.path.getsize(out), "begun")
            time.sleep(wait_ms / 1000)
            tracer.signal(signal.SIGKILL)
            tracer.wait()

            def said():
                with open(out, encoding="utf-8") as file:
                    return file.read()
            wait_for(lambda: said().count("\n") == 3, "the program's end")
            self.assertEqual(said(), "first\nlast\n6\n")
            made = harness.merge(record.all_counts for record in self.records().values())
            self.assertEqual((made["cuMemAlloc_v2"], made["cuMemFree_v2"], made["cuStreamSynchronize"]), (200, 200, 201))

    def test_ring_size(self):
        """A buffer that holds a burst loses nothing of it, however late cudabpf reads; a small one does, and says what helps."""
        for size, fits in (("64M", True), ("64K", False)):
            tracer = self.start_inside(*calls(f"setup; read; loop 100000 {{ raw {STORM} }}; query"), flags=("--ring-size", size),
                                       stdin=subprocess.PIPE, env=self.unlogged())
            pid = self.pid_of_program()
            tracer.signal(signal.SIGSTOP)
            tracer.send_line()
            wait_for(lambda pid=pid: ended(pid), "its end")
            tracer.signal(signal.SIGCONT)
            self.assertEqual(tracer.wait(), 0, tracer.stderr())
            trace = self.read()
            self.check_reconciles(trace, pid)
            self.assertEqual(trace.header["ring_size"], (64 << 20) if fits else (64 << 10))
            if fits:
                self.assertEqual((trace.end["losses"], trace.counts()[STORM]), ({}, 100000))
            else:
                self.assertGreater(trace.end["losses"]["ring_full_entry"], 90000)
                self.assertIn("Give a larger --ring-size", self.run_cudabpf("summary", self.path).stdout.decode())
            self.setUp()

    def test_cudabpf_stopped(self):
        """Full rings drop and count; the program does not wait, and what was kept is read later."""
        tracer = self.start_inside(*calls(f"setup; read; loop 100000 {{ raw {STORM} }}; query"), stdin=subprocess.PIPE, env=self.unlogged())
        pid = self.pid_of_program()
        tracer.signal(signal.SIGSTOP)
        tracer.send_line()
        wait_for(lambda: ended(pid), "its end")
        self.assertEqual(self.records()[pid].counts[STORM], 100000)
        tracer.signal(signal.SIGCONT)
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        trace = self.read()
        self.check_reconciles(trace, pid)
        self.assertGreater(len(trace.named(STORM)), 1000)
        self.assertGreater(trace.end["losses"]["ring_full_entry"], 1000)

    def test_stopped_before_it_answers(self):
        """A cudabpf that does not answer costs a program some seconds, once, and no more."""
        tracer = self.start_inside(*calls("print ready; read; setup; sync; fork { sync }; wait; print done; exit 3"), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE)
        self.assertEqual(tracer.process.stdout.readline(), b"ready\n")
        tracer.signal(signal.SIGSTOP)
        tracer.send_line()
        self.assertEqual(tracer.process.stdout.readline(), b"done\n")
        tracer.signal(signal.SIGCONT)
        self.assertEqual(tracer.wait(), 3, tracer.stderr())
        self.check_accounts(self.read())

    def test_timer_while_stopped(self):
        """A timer's signals do not make the program wait longer for a cudabpf that does not answer."""
        program = (f"import ctypes, signal, time\n"
                   f"driver = ctypes.CDLL({LIBRARY!r})\n"
                   f"signal.signal(signal.SIGALRM, lambda *_: None)\n"
                   f"signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)\n"
                   f"print('ready', flush=True); input()\n"
                   f"began = time.monotonic(); assert driver.cuInit(0) == 0; print(time.monotonic() - began, flush=True)\n"
                   f"signal.setitimer(signal.ITIMER_REAL, 0); input()\n")
        tracer = self.start_inside(PYTHON, "-c", program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(tracer.process.stdout.readline(), b"ready\n")
        tracer.signal(signal.SIGSTOP)
        tracer.send_line()
        self.assertLess(float(tracer.process.stdout.readline()), PATIENCE)
        tracer.signal(signal.SIGCONT)
        time.sleep(0.3)
        tracer.send_line()
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        self.assertEqual(self.read().end["losses"], {"process_unrecorded": 1})

    def test_foreign_proc(self):
        """Where /proc is that of another pid namespace, no thread is taken for dead."""
        self.needs_root()
        storm = [f"{WORKLOADS}/fake_storm", "--library", LIBRARY, "--rate", "1000", "--count", "1300", "--threads", "2"]
        done = subprocess.run(["unshare", "--fork", "--pid", CUDABPF, "run", "-q", "--inside", "-o", self.path, "--profile", "full", "--", *storm],
                              env=self.unlogged(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        trace = self.read()
        self.assertEqual((trace.end["losses"], len(trace.named("cuLaunchKernel"))), ({}, 2600))

    def test_many_processes_and_few_descriptors(self):
        """Processes for which cudabpf has no descriptor run as they always do, and are counted."""
        children = "; ".join("fork { setup; sync; read }" for _ in range(24))
        command = limited("n", 32, CUDABPF, "run", "--inside", "-o", self.path, "--profile", "full", "--", *calls(f"{children}; wait; print done; exit 5"))
        done = subprocess.run(command, env=self.environment(LOG=None, COUNTS=None), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=PATIENCE, check=False, **harness.AS_USER)
        self.assertEqual((done.returncode, done.stdout), (5, b"done\n"), done.stderr)
        trace = self.read()
        synced = len(trace.named("cuStreamSynchronize"))
        self.assertEqual(synced + trace.end["losses"].get("process_unrecorded", 0), 24, done.stderr)

    # --- both ways at once

    def start_ebpf(self, *arguments, path, library=LIBRARY):
        """By eBPF, as root, looking at the same driver."""
        tracer = harness.Program([CUDABPF, *arguments, "-o", path, "--profile", "full", "--library", library], env=self.environment())
        self.addCleanup(tracer.kill)
        wait_for(lambda: tracer.process.poll() is not None or os.path.exists(path) and os.path.getsize(path), "tracing by eBPF")
        if tracer.process.poll() in (120, 121):
            self.skipTest(f"this machine takes no BPF programs: {tracer.stderr()}")
        return tracer

    def end_ebpf(self, tracer, path):
        tracer.signal(signal.SIGINT)
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        return self.read(path)

    def needs_root(self):
        if os.geteuid() != 0:
            self.skipTest("eBPF takes root")

    def test_ebpf_before(self):
        """Uprobes are there when the library comes, as machine-wide tracing has it, and are gone before the program is."""
        self.needs_root()
        path = f"{self.folder}/ebpf.jsonl"
        ebpf = self.start_ebpf(path=path)
        tracer = self.start_inside(*calls(f"{EVERYTHING}; loop 500 {{ sync }}; print half; read; loop 500 {{ query }}"), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE)
        self.assertEqual(tracer.process.stdout.readline(), b"half\n")
        pid, = self.records()
        half = self.records()[pid].all_counts
        outside = self.end_ebpf(ebpf, path)
        tracer.send_line()
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        self.check_law(outside)
        self.assertEqual(dict(outside.counts(pid)), half)
        trace = self.read()
        self.check_whole(trace)
        check_calls(self, trace)

    def check_ebpf_after(self, library):
        self.needs_root()
        path = f"{self.folder}/ebpf.jsonl"
        half = "; ".join(EVERYTHING.split("; ")[1:])
        tracer = self.start_inside(*calls(f"setup; sync; read; {half}; print done; read; sync", library), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        pid = self.pid_of_program()
        wait_for(lambda: self.records()[pid].counts.get("cuStreamSynchronize"), "in the middle")
        before = collections.Counter(self.records()[pid].all_counts)
        ebpf = self.start_ebpf("attach", "--pid", str(pid), path=path, library=library)
        tracer.send_line()
        self.assertEqual(tracer.process.stdout.readline(), b"done\n")
        outside = self.end_ebpf(ebpf, path)
        made = collections.Counter(self.records()[pid].all_counts) - before
        tracer.send_line()
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        self.check_law(outside)
        self.assertEqual(outside.counts(pid), made)
        trace = self.read()
        self.check_whole(trace)
        check_calls(self, trace)

    def test_ebpf_after(self):
        """Uprobes come after the jumps were written, and see the same calls from then on."""
        self.check_ebpf_after(LIBRARY)

    def test_ebpf_after_on_older_driver(self):
        """Uprobes come onto a compare with a word that lies with the code, whose copy is run, too."""
        self.check_ebpf_after(OLD)

    def test_ebpf_comes_and_goes(self):
        """In the middle of a storm, several times: the program lives, and no call is missing inside."""
        self.needs_root()
        tracer = self.start_inside(f"{WORKLOADS}/fake_storm", "--library", LIBRARY, "--rate", "20000", "--seconds", "100000", "--threads", "2",
                                   env=self.unlogged())
        pid = self.pid_of_program()
        seen = 0
        for number in range(4):
            path = f"{self.folder}/ebpf{number}.jsonl"
            ebpf = self.start_ebpf("attach", "--pid", str(pid), path=path)
            wait_for(lambda: os.path.getsize(path) > 100_000, "some hundred calls")  # pylint: disable=cell-var-from-loop
            outside = self.end_ebpf(ebpf, path)
            self.check_accounts(outside)
            seen += len(outside.named("cuLaunchKernel"))
        self.assertGreater(seen, 1000)
        os.kill(pid, signal.SIGTERM)
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        self.check_reconciles(self.read(), pid)

    # --- programs that are short of something

    def test_closed_descriptors(self):
        """A program that closes all descriptors that it does not know, before cuInit and after."""
        trace = self.traced(calls("close-from 3; setup; close-from 3; thread { sync }; fork { close-from 3; sync }; wait; query; close-from 0; sync"),
                            fake={"LOG": None})
        self.check_whole(trace)
        self.assertEqual(trace.counts()["cuStreamSynchronize"], 3)

    def run_limited(self, command, untraced):
        """It goes on, traced or not, with its own output and status."""
        done = self.run_cudabpf("run", "-o", self.path, "--profile", "full", "--", *command, env=untraced)
        self.assertEqual((done.returncode, done.stdout), (5, b"done\n"), done.stderr)
        trace = self.read()
        self.check_accounts(trace)
        return trace

    def test_little_address_space(self):
        script = calls("setup; thread { sync }; wait; fork { sync }; wait; print done; exit 5")
        for kib in (200 << 10, 500 << 10, 1 << 20, 2 << 20, 4 << 20):
            self.setUp()
            self.run_limited(limited("v", kib, *script), self.unlogged())

    def test_few_descriptors(self):
        script = calls("setup; thread { sync }; wait; fork { sync }; wait; print done; exit 5")
        nothing = self.environment(LOG=None, COUNTS=None)
        for most in (4, 5, 6, 7, 8, 20):
            trace = self.run_limited(limited("n", most, *script), nothing)
        self.assertEqual(len(trace.named("cuStreamSynchronize")), 2)

    def test_no_file_size(self):
        script = calls("setup; thread { loop 2000 { sync } }; wait; fork { sync }; wait; print done; exit 5")
        done = limited("f", 0, *script)
        trace = self.run_limited([*done[:2], done[2], *done[3:]], self.environment(LOG=None, COUNTS=None))
        self.check_law(trace)
        self.assertEqual(len(trace.named("cuStreamSynchronize")), 2001)

    def test_file_size_of_cudabpf(self):
        """A limit that leaves no memory to share: cudabpf says so, in the trace, too, and waits for the program all the same."""
        for blocks in (1000, 800000):
            self.setUp()
            command = limited("f", blocks, CUDABPF, "run", "--inside", "-o", self.path, "--", *calls("setup; sync; print done; exit 5"))
            done = subprocess.run(command, env=self.environment(LOG=None, COUNTS=None), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=PATIENCE, check=False, **harness.AS_USER)
            self.assertEqual((done.returncode, done.stdout), (5, b"done\n"), done.stderr)
            self.assertIn(b"(ulimit -f) is below 4.00 GiB", done.stderr)
            self.assertEqual(self.read().end["losses"], {"process_unrecorded": 1})

    def test_straced(self):
        """A process that is being debugged is left alone; a message and the trace say so."""
        if not shutil.which("strace"):
            self.skipTest("there is no strace")
        trace = self.traced(["strace", "-f", "-o", "/dev/null", *calls("setup; sync")])
        self.assertIn("debugs it, or traces its system calls", self.stderr)
        self.assertEqual((trace.calls, trace.end["losses"]), ([], {"process_unrecorded": 1}))

    def test_temporary_folder(self):
        """The socket is in TMPDIR if that can be, else in /tmp."""
        for folder in ("/no/such/folder", "/proc", "read-only", "relative", "x" * 300, "", f"/{'y' * 90}", self.folder):
            self.setUp()
            if folder == "read-only":
                folder = f"{self.folder}/read-only"
                os.mkdir(folder, 0o555)
            done = self.run_cudabpf("run", "-q", "-o", self.path, "--profile", "full", "--", *calls("setup; sync"),
                                    env=dict(self.environment(), TMPDIR=folder))
            self.assertEqual((done.returncode, done.stderr), (0, b""), folder)
            self.check_whole(self.read())

    def test_chroot(self):
        """A program that has gone where neither the library nor the socket is runs as it always does."""
        self.needs_root()
        done = self.run_cudabpf("run", "-o", self.path, "--profile", "full", "--", PYTHON, "-c", CHROOTED, LIBRARY, self.record_folder,
                                env=self.environment(LOG=None, COUNTS=None), user=0, group=0)
        self.assertEqual((done.returncode, done.stdout), (0, b"0 [0, 0, 0]\n"), done.stderr)
        trace = self.read()
        self.check_law(trace)
        self.assertEqual(trace.calls, [])

    def test_environment_cleaned(self):
        """A program without the variables is not traced, and the trace says nothing wrong."""
        trace = self.traced(["env", "-i", *(f"{k}={v}" for k, v in self.environment().items() if k.startswith("FAKE_")),
                             *calls("setup; sync")])
        self.check_law(trace)
        self.assertEqual(trace.calls, [])
        record = self.record()
        self.assertEqual((record.unseen, record.counts), (record.all_counts, {}))

    # --- other processes that connect

    def listener(self):
        pid = self.pid_of_program()
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = dict(entry.split(b"=", 1) for entry in file.read().split(b"\0") if b"=" in entry)
        self.assertEqual(variables[b"CUDA_INJECTION64_PATH"].decode(), INSIDE_LIBRARY)
        return variables[b"CUDABPF_LISTENER"]

    @staticmethod
    def knock(listener):
        """A connection; None: refused."""
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        client.settimeout(PATIENCE)
        try:
            client.connect(listener)
        except OSError:
            return None
        return client

    @staticmethod
    def hello(version=insiders.VERSION, reason=1, pid=0, tid=0, has_memory=0):
        return struct.pack("6I", version, reason, pid, tid, has_memory, 0)

    def annoy(self, listener, files):
        """All that a program of the same user can say, and a thousand connections, of which most stay."""
        nothing, library, half = files
        mine = os.getpid()
        messages = [(b"", []), (b"\0" * 4096, []), (b"\xff" * 24, [nothing]), (b"x" * 60000, []), (self.hello(1), [library]),
                    (self.hello(reason=77), [library]), (self.hello(pid=1, tid=1), [library]), (self.hello(pid=mine, tid=mine), [nothing]),
                    (self.hello(pid=mine, tid=mine), [half]), (self.hello(pid=mine, tid=mine), [library] * 20),
                    (self.hello(reason=2, pid=mine, tid=mine), []), (self.hello(reason=2, pid=mine, has_memory=1), [library]),
                    (self.hello(pid=0xffffffff, tid=0xffffffff), []), (self.hello()[:23], [library])]
        for message, fds in messages:
            client = self.knock(listener)
            if client:
                with contextlib.suppress(OSError):
                    socket.send_fds(client, [message], fds)
        silent = [self.knock(listener) for _ in range(1000)]
        for client in silent[::3]:
            if client:
                client.close()
        return silent

    def test_hostile_clients(self):
        """Nonsense, silence, lies and a thousand connections: the program's own trace is whole."""
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
        tracer = self.start_inside(*calls("setup; sync; read; loop 1000 { sync }; fork { setup; sync }; wait; query"), stdin=subprocess.PIPE)
        listener = self.listener()
        nothing, library = os.open("/dev/null", os.O_RDONLY), os.open(LIBRARY, os.O_RDONLY)
        cut = f"{self.folder}/cut"
        with open(LIBRARY, "rb") as whole, open(cut, "wb") as file:
            file.write(whole.read()[:100_000])
        half = os.open(cut, os.O_RDONLY)
        ready, done = os.pipe()
        pid = os.fork()
        if pid == 0:  # a process that ends, since a process that says hello is traced until then
            with contextlib.suppress(BaseException):
                harness.become_user()
                kept = self.annoy(listener, (nothing, library, half))
                os.write(done, b"%d" % sum(client is not None for client in kept))
                time.sleep(3)
            os._exit(0)
        for fd in (nothing, library, half, done):
            os.close(fd)
        self.addCleanup(os.close, ready)
        self.assertGreater(int(os.read(ready, 10) or 0), 0, "the listener was open")
        self.assertIsNone(tracer.process.poll(), tracer.stderr())
        tracer.send_line()
        self.assertEqual(tracer.wait(60), 0, tracer.stderr())
        os.waitpid(pid, 0)
        trace = self.read()
        self.check_law(trace)
        self.check_counts(trace)
        self.assertEqual(len(trace.named("cuStreamSynchronize")), 1002)

    def test_other_users(self):
        """The socket is for the user whose program is traced, and it is gone with the trace."""
        tracer = self.start_inside(*calls("setup; sync; read"), stdin=subprocess.PIPE)
        listener = self.listener()
        if os.geteuid() == 0:
            stranger = NOBODY.pw_uid - 1
            code = ("import socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.connect(sys.argv[1]); "
                    "print(s.recv(10), end='')")
            done = subprocess.run([PYTHON, "-c", code, listener], check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE,
                                  user=stranger, group=stranger, extra_groups=[])
            self.assertTrue(done.stdout == b"b''" or done.stderr.endswith((b"Permission denied\n", b"Connection reset by peer\n")), done)
        tracer.send_line()
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        self.check_whole(self.read())
        self.assertFalse(os.path.exists(listener))

    def test_usage(self):
        """What eBPF alone can do is refused."""
        for flags in (["--ring-size", "512M"], ["--ring-size", "16K"], ["--no-feature", "uprobe_multi"]):
            done = self.run_cudabpf("run", "--inside", *flags, "-o", self.path, "--", "touch", f"{self.folder}/ran")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(flags[0], done.stderr.decode())
        self.assertEqual(os.listdir(self.folder), ["record"])

    def test_doctor(self):
        """Says that this way is open."""
        self.assertRegex(self.run_cudabpf("doctor").stdout.decode(), rf"✓ .*inside.*{re.escape(INSIDE_LIBRARY)}")
        self.assertEqual(self.run_cudabpf("doctor", "--", PYTHON).returncode, 0)
        self.assertNotEqual(self.run_cudabpf("doctor", "--", "no-such-program").returncode, 0)

    def test_options_of_ebpf(self):
        """Without rights for eBPF, what takes it is named."""
        done = self.run_cudabpf("run", "--no-feature", "uprobe_multi", "-o", self.path, "--", "true")
        self.assertEqual(done.returncode, 2, done.stderr)
        done = subprocess.run([CUDABPF, "run", "--no-feature", "uprobe_multi", "-o", self.path, "--", "true"], check=False, env=self.environment(),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, **harness.AS_USER)
        self.assertEqual(done.returncode, 120, done.stderr)
        self.assertIn(b"without --no-feature, `run` records inside the command", done.stderr)

    def test_as_another_user(self):
        for flags in (["--as-root"], ["--user", "root"]):
            done = self.run_cudabpf("run", *flags, "-o", self.path, "--", "true")
            self.assertEqual(done.returncode, 120, done.stderr)
            self.assertIn(b"only root can start a command as another user", done.stderr)


if __name__ == "__main__":
    harness.main()
