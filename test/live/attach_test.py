"""Programs that are already running, and the whole machine."""
import os
import pathlib
import signal
import subprocess

import harness
from harness import LIBRARY, WORKLOADS, wait_for

BEGIN = "setup; module m; function f m _Z3addPKfS0_Pfi; library l; kernel k l plain_name; malloc a 4K; print ready"


class Live(harness.LiveTest):
    def start_calls(self, script, fake=None, name=None, **options):
        """fake_calls, once it has reached its first `print ready`. Its stdin is a pipe that `read` waits for."""
        command = [name or f"{WORKLOADS}/fake_calls", "--library", LIBRARY, script]
        program = self.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             env=self.environment(**(fake or {})), **options)
        self.assertEqual(program.process.stdout.readline(), b"ready\n", program.stderr())
        return program

    def attach(self, *arguments):
        return self.start_cudabpf("attach", "-o", self.path, "--profile", "full", *arguments)

    def counts_now(self, pid):
        return self.records()[pid].counts

    def difference(self, before, after):
        return {k: v - before.get(k, 0) for k, v in after.items() if v != before.get(k, 0)}

    def attach_in_the_middle(self, *arguments, script, fake=None):
        """Attaches between `ready` and the line on stdin; returns (trace, what the program called meanwhile)."""
        program = self.start_calls(f"{BEGIN}; read; {script}", fake)
        before = self.counts_now(program.pid)
        tracer = self.attach(*(arguments or ["--pid", program.pid]))
        # What it is stands in /proc while it runs, and is read after the header.
        wait_for(lambda: '"op":"start"' in pathlib.Path(self.path).read_text(encoding="utf-8"), "the target's line")
        program.send_line()
        self.assertEqual(program.wait(), 0, program.stderr())
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        return self.read(), self.difference(before, self.counts_now(program.pid))

    def test_pid(self):
        trace, called = self.attach_in_the_middle(
            script="launch f 1 2 3 4 5 6 7; launch k 1 1 1 1 1 1 0; set8 a 1 64; free a; malloc b 1K; free b")
        self.check_law(trace)
        self.assertEqual(dict(trace.counts()), called)
        launches = [(c["kernel"], c["kernel_from"]) for c in trace.named("cuLaunchKernel")]
        self.assertEqual(launches, [("add(float const*, float const*, float*, int)", "handle"),
                                    ("plain_name", "handle")])
        self.assertEqual(trace.header["mode"], "attach")
        pid = trace.calls[0]["pid"]
        self.assertEqual(trace.header["pids"], [pid])
        self.assertEqual([p["op"] for p in trace.processes], ["start", "exit"])
        start = trace.processes[0]
        self.assertEqual((start["pid"], start["comm"], start["exe"]), (pid, "fake_calls", f"{WORKLOADS}/fake_calls"))
        self.assertEqual(trace.end["reason"], "targets ended")
        frees = trace.named("cuMemFree_v2")
        self.assertEqual([call.get("size") for call in frees], [None, 1024])  # the malloc of the first was not seen

    def test_name(self):
        """Every process of that program, and no other."""
        folder = f"{self.folder}/bin"
        subprocess.run(["mkdir", folder], check=True)
        name = f"{folder}/cuda_target"
        subprocess.run(["cp", f"{WORKLOADS}/fake_calls", name], check=True)
        targets = [self.start_calls(f"{BEGIN}; read; sync; launch f 1 1 1 1 1 1 0", name=name) for _ in range(3)]
        other = self.start_calls(f"{BEGIN}; read; sync")
        before = {t.pid: self.counts_now(t.pid) for t in targets}
        tracer = self.attach("--name", "cuda_target")
        for program in [other, *targets]:
            program.send_line()
        for program in [other, *targets]:
            self.assertEqual(program.wait(), 0)
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        trace = self.read()
        self.check_law(trace)
        self.assertEqual({call["pid"] for call in trace.calls}, set(before))
        for target in targets:
            self.assertEqual(dict(trace.counts(target.pid)),
                             self.difference(before[target.pid], self.counts_now(target.pid)))

    def test_children_of_the_target(self):
        trace, called = self.attach_in_the_middle(script="fork { sync; launch f 1 1 1 1 1 1 0 }; wait; sync")
        self.check_law(trace)
        parent = trace.header["pids"][0]
        self.assertEqual(dict(trace.counts(parent)), called)
        child = next(p["pid"] for p in trace.processes if p["op"] == "fork")
        self.assertEqual(dict(trace.counts(child)), self.counts_now(child))

    def test_child_that_has_ended(self):
        """A child whose parent has not waited for its status yet will not be seen to end, and is not waited for."""
        script = "setup; print ready; read; sync"
        target = self.start(["bash", "-c", f"sleep 60 & exec {WORKLOADS}/fake_calls --library {LIBRARY} '{script}'"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(target.process.stdout.readline(), b"ready\n", target.stderr())
        with open(f"/proc/{target.pid}/task/{target.pid}/children", encoding="utf-8") as file:
            child, = file.read().split()
        os.kill(int(child), signal.SIGKILL)  # bash would have taken the status of one that it had seen end
        wait_for(lambda: harness.ended(child), "ended")
        tracer = self.attach("--pid", target.pid)
        target.send_line()
        self.assertEqual(target.wait(), 0, target.stderr())
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        trace = self.read()
        self.check_law(trace)
        self.assertEqual([(p["op"], p["pid"]) for p in trace.processes], [("start", target.pid), ("exit", target.pid)])

    def test_handles_without_names(self):
        """If handles do not hold names, none is shown, not even a wrong one."""
        script = "launch f 1 1 1 1 1 1 0; launch k 1 1 1 1 1 1 0; sync"
        trace, called = self.attach_in_the_middle(script=script, fake={"NAME_OFFSET": "none"})
        self.check_law(trace)
        self.assertEqual(dict(trace.counts()), called)
        self.assertEqual([call.get("kernel") for call in trace.named("cuLaunchKernel")], [None, None])

    def test_names_elsewhere(self):
        """A driver that moved the name: the first name that is seen both ways shows that the old place holds something
        else. Names shown before that came from the handle, and their lines say so."""
        trace = self.script("setup; module m; function f m right; launch f 1 1 1 1 1 1 0; module n; "
                            "function g n also_right; launch g 1 1 1 1 1 1 0", fake={"NAME_OFFSET": "24"})
        self.check_whole(trace)
        launches = [(call["kernel"], call.get("kernel_from")) for call in trace.named("cuLaunchKernel")]
        self.assertEqual(launches, [("right", None), ("also_right", None)])
        self.setUp()
        trace, _ = self.attach_in_the_middle(
            script="module n; function g n seen; launch g 1 1 1 1 1 1 0; launch f 1 1 1 1 1 1 0; "
                   "launch k 1 1 1 1 1 1 0; launch g 1 1 1 1 1 1 0", fake={"NAME_OFFSET": "24"})
        self.check_law(trace)
        self.assertEqual([call.get("kernel") for call in trace.named("cuLaunchKernel")], ["seen", None, None, "seen"])

    def test_handle_reuse(self):
        """A handle that is reused for another kernel has that kernel's name."""
        trace = self.script("setup; loop 20 { module m; function f m first; launch f 1 1 1 1 1 1 0; unload m; "
                            "module n; function g n second; launch g 1 1 1 1 1 1 0; unload n }")
        self.check_whole(trace)
        launches = trace.named("cuLaunchKernel")
        self.assertEqual(len({call["handle"] for call in launches}), 1)
        self.assertEqual([call["kernel"] for call in launches], ["first", "second"] * 20)

    def test_handle_reuse_unseen(self):
        """The same, if lookups are not traced and names come only from the handles."""
        trace = self.script("setup; loop 20 { module m; function f m first; launch f 1 1 1 1 1 1 0; unload m; "
                            "module n; function g n second; launch g 1 1 1 1 1 1 0; unload n }",
                            "--only", "cuLaunchKernel,cuModuleUnload")
        self.check_whole(trace, {"cuLaunchKernel", "cuModuleUnload"})
        self.assertEqual([(call["kernel"], call["kernel_from"]) for call in trace.named("cuLaunchKernel")],
                         [("first", "handle"), ("second", "handle")] * 20)

    def test_in_a_call(self):
        """Attached while the program is inside a call: only its return is seen, and the entries of calls inside it."""
        program = self.start_calls(f"{BEGIN}; read; sync; set8 a 1 1", {"HANG": "cuMemsetD8_v2@1",
                                                                        "LATENCY": "cuStreamSynchronize=1500000000"})
        program.send_line()
        wait_for(lambda: self.counts_now(program.pid).get("cuStreamSynchronize"), "inside the call")
        tracer = self.attach("--pid", program.pid)
        wait_for(lambda: self.counts_now(program.pid).get("cuMemsetD8_v2"), "inside the next call")
        tracer.signal(signal.SIGINT)
        tracer.wait()
        trace = self.read()
        self.check_accounts(trace)
        self.assertEqual(trace.end["losses"], {})
        sets = trace.named("cuMemsetD8_v2")
        self.assertEqual([call.get("unfinished") for call in sets], [True])
        # A return probe takes effect at a call's entry: nothing is seen of a call that had begun.
        self.assertEqual(trace.named("cuStreamSynchronize"), [])

    def test_no_such_target(self):
        for arguments, words in ((["--pid", "4194300"], "no such process"),
                                 (["--name", "no_such_program_at_all"], "no process of that name"),
                                 (["--container", "0123456789ab"], "no process runs in such a container"),
                                 (["--container", "/no/such/cgroup"], "no such cgroup")):
            done = self.run_cudabpf("attach", "-o", self.path, *arguments)
            self.assertEqual(done.returncode, 123, done.stderr)
            self.assertIn(words, done.stderr.decode())
        self.assertEqual(self.run_cudabpf("attach").returncode, 2)

    def test_target_killed(self):
        program = self.start_calls(f"{BEGIN}; read; loop 1000000 {{ sync }}")
        tracer = self.attach("--pid", program.pid)
        program.send_line()
        wait_for(lambda: self.counts_now(program.pid).get("cuStreamSynchronize", 0) > 1000, "calling")
        program.signal(signal.SIGKILL)
        program.wait()
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        trace = self.read()
        self.check_accounts(trace)
        self.assertEqual(trace.end["losses"], {})
        self.assertEqual([p.get("signal") for p in trace.process("exit", program.pid)], [signal.SIGKILL],
                         trace.processes)
        # Counted at its beginning: a call that the signal stopped before that is neither counted nor entered.
        calls = trace.named("cuStreamSynchronize")
        self.assertLessEqual(abs(len(calls) - self.counts_now(program.pid)["cuStreamSynchronize"]), 1)
        self.assertLessEqual(len([call for call in calls if call.get("unfinished")]), 1)

    def test_machine(self):
        """Every process that calls CUDA, whether it is already running or starts later, and no other."""
        running = self.start_calls(f"{BEGIN}; read; sync; launch f 1 1 1 1 1 1 0")
        before = {running.pid: self.counts_now(running.pid)}
        tracer = self.start_cudabpf("-o", self.path, "--profile", "full", "--library", LIBRARY)
        bystander = self.start(["sh", "-c", "for i in 1 2 3; do true; done; sleep 0.2"])
        new = self.start([f"{WORKLOADS}/fake_calls", "--library", LIBRARY, "setup; malloc a 1; fork { free a }; wait"])
        running.send_line()
        for program in (running, bystander, new):
            self.assertEqual(program.wait(), 0)
        tracer.signal(signal.SIGINT)
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        trace = self.read()
        self.check_law(trace)
        self.assertEqual((trace.header["mode"], trace.end["reason"]), ("machine", "interrupted"))
        ours = self.records()
        self.assertEqual(len(ours), 3)
        for pid, record in ours.items():
            self.assertEqual(dict(trace.counts(pid)), self.difference(before.get(pid, {}), record.counts))
            self.assertEqual(len(trace.process("exit", pid)), 1)
        self.assertEqual(trace.process("start", bystander.pid), [])
        self.assertEqual({p["pid"] for p in trace.processes}, {call["pid"] for call in trace.calls})

    def test_duration(self):
        program = self.start_calls(f"{BEGIN}; read")
        done = self.run_cudabpf("attach", "--pid", program.pid, "-o", self.path, "--duration", "300ms")
        self.assertEqual(done.returncode, 0, done.stderr)
        trace = self.read()
        self.assertEqual((trace.calls, trace.end["reason"]), ([], "duration"))
        self.assertTrue(290e6 < trace.end["duration_ns"] < 5e9)
        self.assertIsNone(program.process.poll())

    def test_two_tracers(self):
        """Two simultaneous traces of one process are both complete."""
        program = self.start_calls(f"{BEGIN}; read; loop 100 {{ sync; set8 a 1 1 }}")
        before = self.counts_now(program.pid)
        paths = [f"{self.folder}/{i}.jsonl" for i in range(2)]
        tracers = [self.start_cudabpf("attach", "-p", program.pid, "--profile", "full", "-o", path, output=path)
                   for path in paths]
        program.send_line()
        self.assertEqual(program.wait(), 0)
        for tracer, path in zip(tracers, paths):
            self.assertEqual(tracer.wait(), 0)
            trace = self.read(path)
            self.check_law(trace)
            self.assertEqual(dict(trace.counts()), self.difference(before, self.counts_now(program.pid)))


if __name__ == "__main__":
    harness.main()
