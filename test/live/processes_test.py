"""Threads and processes: which of them made each call, with no call lost or reported twice."""
import collections
import shlex

import harness
from expected import check_calls
from harness import WORKLOADS


class Live(harness.LiveTest):
    def test_threads(self):
        """Eight threads at once: each thread's lines are its calls, in order, one after the other."""
        threads = "thread { malloc a 1K; loop 500 { set8 a 1 16; launch f 1 1 1 32 1 1 0; sync } free a };" * 8
        trace = self.script(f"setup; module m; function f m add; {threads} wait")
        self.check_whole(trace)
        check_calls(self, trace)
        by_thread = collections.defaultdict(list)
        for call in trace.calls:
            by_thread[call["tid"]].append(call)
        self.assertEqual(len(by_thread), 9)
        for calls in by_thread.values():
            for before, after in zip(calls, calls[1:]):
                self.assertLessEqual(before["ts"] + before["duration_us"] * 1000, after["ts"])
                self.assertLess(before["id"], after["id"])
        self.assertEqual([call for call in trace.calls if "parent" in call], [])

    def test_inference(self):
        for api in ("kernel", "ex", "cooperative", "graph"):
            with self.subTest(api):
                self.setUp()
                command = [f"{WORKLOADS}/fake_inference", "--library", harness.LIBRARY, "--threads", "4",
                           "--tokens", "20", "--launch-api", api]
                trace = self.traced(command, "--library", harness.LIBRARY)
                self.check_whole(trace)
                check_calls(self, trace)

    def test_forks(self):
        trace = self.script("setup; malloc a 1K; fork { malloc b 2K; fork { malloc c 3K; quit 9 }; sleep 30; "
                            "quit 0 }; fork { exit 0 }; malloc d 4K; wait")
        self.check_whole(trace)
        check_calls(self, trace)
        parent = trace.process("start", trace.calls[0]["pid"])[0]["pid"]
        forks = trace.of("process")
        forks = [p for p in forks if p["op"] == "fork"]
        children = [True, True] if harness.BY_BPF else [True]  # one makes no calls
        self.assertEqual(sorted(fork["ppid"] == parent for fork in forks), [False, *children])
        grandchild = next(fork for fork in forks if fork["ppid"] != parent)
        self.check_exit_code(trace, grandchild["pid"], 9)
        for fork in forks:
            self.assertEqual((fork["comm"], len(trace.process("exit", fork["pid"]))), ("fake_calls", 1))
        sizes = {call["pid"]: call["size"] for call in trace.named("cuMemAlloc_v2")}
        self.assertEqual(sizes[grandchild["pid"]], 3072)

    def check_exit_code(self, trace, pid, wanted):
        """From inside a process, it is known only of the command itself, or on a kernel that reports it."""
        code = trace.process("exit", pid)[0].get("exit_code")
        self.assertIn(code, (wanted,) if harness.BY_BPF else (wanted, None))

    def test_long_arguments(self):
        """No line is longer than readers accept, and lines with cut text say so."""
        arguments = [chr(1) * 100_000] * 15
        trace = self.traced(["sh", "-c", "for i in 1 2 3; do sh -c true; done; sleep 0.1", *arguments])
        self.check_law(trace)
        with open(self.path, encoding="utf-8") as file:
            self.assertLess(max(map(len, file)), 100_000)
        self.assertIs(trace.header["text_cut"], True)
        started = trace.process("start", trace.processes[0]["pid"])[0]
        self.assertTrue(started["cmdline"].endswith("…"))
        self.assertIs(started["text_cut"], True)

    def test_spawn(self):
        """posix_spawn, as Python's subprocess uses it."""
        for way in ("--spawn", "--processes"):
            self.setUp()
            command = [f"{WORKLOADS}/fake_inference", "--library", harness.LIBRARY, way, "5", "--exit-code", "3"]
            trace = self.traced(command, "--library", harness.LIBRARY, status=3)
            self.check_whole(trace)
            check_calls(self, trace)
            self.assertEqual(len(self.records()), 5)
            self.assertEqual(len([p for p in trace.processes if p["op"] == "exit"]), 6 if harness.BY_BPF else 5)

    def test_exec(self):
        """The same process runs another program: same pid, an exec line, handles of the old one forgotten."""
        trace = self.script("setup; module m; function f m old_kernel; launch f 1 1 1 1 1 1 0; "
                            "exec { setup; malloc a 5; print done }")
        self.check_whole(trace)
        check_calls(self, trace)
        pid = self.record().pid
        self.assertEqual([p["op"] for p in trace.processes if p["pid"] == pid], ["start", "exec", "exit"])
        self.assertIn("print done", trace.process("exec", pid)[0]["cmdline"])

    def test_exec_of_a_shell(self):
        """A shell that starts two programs, one after the other and in the background."""
        calls = shlex.join([f"{WORKLOADS}/fake_calls", "--library", harness.LIBRARY])
        shell = f"{calls} 'setup; malloc a 1' & {calls} 'setup; malloc a 2'; wait; exec {calls} 'setup; malloc a 3'"
        trace = self.traced(["sh", "-c", shell], "--library", harness.LIBRARY)
        self.check_whole(trace)
        check_calls(self, trace)
        self.assertEqual(sorted(call["size"] for call in trace.named("cuMemAlloc_v2")), [1, 2, 3])

    def test_no_follow(self):
        trace = self.script("setup; malloc a 1; fork { malloc b 2 }; wait; malloc c 3", "--no-follow")
        self.check_law(trace)
        parent = trace.calls[0]["pid"]
        self.assertEqual({call["pid"] for call in trace.calls}, {parent})
        self.assertEqual(dict(trace.counts()), self.records()[parent].counts)
        self.assertEqual(len(self.records()), 2)
        self.assertEqual([p["op"] for p in trace.processes], ["start", "exit"])

    def test_many_processes(self):
        """32 processes at once, each with its own calls."""
        children = "fork { setup; malloc a 4K; loop 50 { set8 a 1 64; sync } free a };" * 32
        trace = self.script(f"{children} wait")
        self.check_whole(trace)
        check_calls(self, trace)
        begun = {p["pid"] for p in trace.processes if p["op"] in ("start", "fork")}
        exits = [p["pid"] for p in trace.processes if p["op"] == "exit"]
        self.assertEqual((sorted(begun), len(exits)), (sorted(exits), 33 if harness.BY_BPF else 32))  # the parent never calls cuInit

    def test_short_processes(self):
        """200 processes that come and go: none is missed, even if a process does nothing but make calls."""
        children = "loop 200 { fork { malloc a 1; quit 0 }; wait }"
        trace = self.script(f"setup; {children}")
        self.check_whole(trace)
        self.assertEqual(len(trace.named("cuMemAlloc_v2")), 200)
        self.assertEqual(len([p for p in trace.processes if p["op"] == "exit"]), 201)

    def test_nested_calls(self):
        trace = self.script("setup; context c; malloc a 1", fake={"NEST": 1})
        self.check_whole(trace)
        check_calls(self, trace)
        by_id = {call["id"]: call for call in trace.calls}
        nested = [(call["name"], by_id[call["parent"]]["name"]) for call in trace.calls if "parent" in call]
        self.assertEqual(nested, [("cuMemAlloc", "cuDevicePrimaryCtxRetain"), ("cuMemFree", "cuDevicePrimaryCtxRetain"),
                                  ("cuMemAlloc", "cuCtxCreate"), ("cuMemFree", "cuCtxCreate")])
        for call in trace.calls:
            if "parent" in call:
                outer = by_id[call["parent"]]
                self.assertLessEqual(outer["ts"], call["ts"])
                self.assertLessEqual(call["ts"] + call["duration_us"] * 1000,
                                     outer["ts"] + outer["duration_us"] * 1000)


if __name__ == "__main__":
    harness.main()
