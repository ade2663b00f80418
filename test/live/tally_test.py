"""Calls that are only counted, by process and function: the sums equal the driver's own, to the last call."""
import collections
import json
import os
import pathlib
import signal
import subprocess

import harness
from harness import BUILD, LIBRARY, WORKLOADS, ended, wait_for

PRINT_TALLIES = f"{BUILD}/test/tally/print_tallies"
# Whose times are added up in which class, of some.
CLASSES = {"cuLaunchKernel": "launch", "cuMemcpyDtoH_v2": "copy_to_host", "cuCtxSynchronize": "wait", "cuStreamSynchronize": "wait"}
# What is recorded, and not only counted, once a process captures.
RECORDED = ("cuEventRecord", "cuStreamWaitEvent", "cuGraphLaunch")
# Single links take a while to go, each of them.
FEW = ("cuInit", "cuCtxSynchronize", "cuStreamSynchronize", "cuStreamQuery", "cuMemcpyDtoH_v2", "cuMemcpyHtoD_v2",
       "cuMemAlloc_v2", "cuLaunchHostFunc", "cuStreamBeginCapture_v2", *RECORDED)
SINGLE_LINKS = ("--no-feature", "uprobe_multi", *(word for symbol in FEW for word in ("--only", symbol)))
WAYS = ((), ("--no-feature", "uprobe_session"), SINGLE_LINKS)
# The child returns from the call in which it was forked, and makes calls of its own.
FORK_IN_A_CALL = """
import ctypes, os, sys
cuda = ctypes.CDLL(sys.argv[1])
context = ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
child = None
@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def nothing(_):
    pass
@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def callback(_):
    global child
    child = os.fork()
    if child == 0:
        assert cuda.cuLaunchHostFunc(None, nothing, None) == 0
assert cuda.cuLaunchHostFunc(None, callback, None) == 0
for _ in range(3 if child == 0 else 5):
    assert cuda.cuCtxSynchronize() == 0
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


class Printed:
    """What print_tallies printed."""

    def __init__(self, text):
        lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        self.sums = {(line["pid"], line["symbol"]): line for line in lines if "symbol" in line}
        self.classes = {(line["pid"], line["class"]): line["took"] for line in lines if "class" in line}
        self.failures = {(line["pid"], line["result"]): line["failed"] for line in lines if "failed" in line and "result" in line}
        self.processes = [(line["process"], line["pid"]) for line in lines if "process" in line]
        self.books = lines[-1]
        self.losses = self.books["losses"]

    def counts(self, pid):
        return +collections.Counter({symbol: line["calls"] + line["recorded"]
                                     for (of, symbol), line in self.sums.items() if of == pid})

    def total(self, field):
        return sum(line[field] for line in self.sums.values())


class Live(harness.LiveTest):
    way = ()

    def start_counting(self, *arguments, fake=None):
        """Starts print_tallies, and returns once it counts."""
        program = self.start([PRINT_TALLIES, "--library", LIBRARY, *arguments], stdout=subprocess.PIPE,
                             env=self.environment(**(fake or {})))
        self.assertEqual(program.process.stdout.readline(), b"ready\n", program.stderr())
        return program

    def printed(self, program, status=0):
        text = program.process.stdout.read().decode()
        self.assertEqual(program.wait(), status, program.stderr())
        printed = Printed(text)
        self.check_books(printed)
        return printed

    def counted(self, command, *arguments, fake=None, status=0):
        return self.printed(self.start_counting(*arguments, "--", *command, fake=fake), status)

    def check_books(self, printed):
        records, tallied = printed.books["records"], printed.books["tallied"]
        self.assertEqual(records["entered"], records["emitted"] + records["dropped"])
        self.assertEqual(records["received"], records["emitted"])
        self.assertEqual(tallied["begun"], tallied["ended"] + tallied["under_way"] + tallied["dropped"])
        self.assertEqual(tallied["begun"], printed.total("calls") + tallied["dropped"])
        self.assertEqual(tallied["ended"], printed.total("ended"))
        self.assertEqual(tallied["dropped"], printed.losses.get("tally_full", 0))
        for line in printed.sums.values():
            self.assertFalse(line["went_back"], line)
            self.assertFalse(line["calls"] and line["recorded"] and line["symbol"] not in RECORDED, line)

    def check_counts_printed(self, printed):
        """Nothing was lost, and each process that made calls is gone: its sums were handed out exactly once more."""
        found = self.records()
        for pid in found:
            self.assertEqual(dict(printed.counts(pid)), self.called(pid), f"pid {pid}")
        self.assertEqual({pid for pid, _ in printed.sums} - set(found), set())
        self.assertEqual(printed.losses, {})
        for line in printed.sums.values():
            self.assertEqual(line["lasts"], 1 if line["calls"] else 0, line)

    def called(self, pid):
        """What the driver counted, of the functions that are looked at."""
        counts = self.records()[pid].counts
        return {symbol: n for symbol, n in counts.items() if symbol in FEW or self.way is not SINGLE_LINKS}

    def empty_record(self):
        for name in os.listdir(self.record_folder):
            os.unlink(f"{self.record_folder}/{name}")

    def in_each_way(self):
        for way in WAYS:
            self.empty_record()
            self.way = way
            yield way

    def test_sums(self):
        """Threads, processes, sizes and times are as the driver has them."""
        script = ("setup; module m; function f m kernel; malloc a 64K; htod a host 4K; fails 2 malloc b 1T; "
                  "thread { loop 300 { launch f 1 1 1 1 1 1 0; dtoh host a 1K } }; thread { loop 200 { sync } }; "
                  "fork { loop 100 { sync } }; fork { exec { setup; sync; quit 0 } }; query; wait; free a")
        for way in self.in_each_way():
            printed = self.counted(harness.calls(script), *way)
            self.check_counts_printed(printed)
            self.assertEqual(printed.books["tallied"]["under_way"], 0)
            self.assertEqual(printed.total("failed"), 0)  # the allocation that failed has a record
            self.check_times(printed)
            pid = printed.processes[0][1]
            self.assertEqual(printed.sums[pid, "cuMemcpyDtoH_v2"]["bytes"], 300 * 1024)
            self.assertEqual(printed.sums[pid, "cuMemcpyHtoD_v2"]["bytes"], 4096)

    def check_times(self, printed):
        """Each function's time is at least that which its calls took inside the driver."""
        for (pid, symbol), line in printed.sums.items():
            if not line["calls"]:
                continue
            inside = [call["end_ns"] - call["begin_ns"] for call in self.records()[pid].calls if call["symbol"] == symbol]
            self.assertEqual(len(inside), line["ended"], line)
            self.assertGreaterEqual(line["time_ns"], sum(inside), line)
            self.assertLess(line["time_ns"], sum(inside) + 10**10, line)

    def test_times(self):
        """Of each process and class, as many calls as functions have; none is said to have taken less than it did inside the driver."""
        script = ("setup; module m; function f m kernel; malloc a 64K; thread { loop 300 { launch f 1 1 1 1 1 1 0; dtoh host a 1K } }; "
                  "thread { loop 20 { sync } }; fork { loop 100 { sync } }; query; free a")
        for way in self.in_each_way():
            printed = self.counted(harness.calls(script), "--times", *way, fake={"LATENCY": "cuCtxSynchronize=5000000,cuStreamSynchronize=70000"})
            self.check_counts_printed(printed)
            for pid in {of for of, _ in printed.sums}:
                ended = collections.Counter()
                for (of, symbol), line in printed.sums.items():
                    if of == pid and line["ended"]:
                        ended[CLASSES.get(symbol, "another")] += line["ended"]
                took = {kind: counts for (of, kind), counts in printed.classes.items() if of == pid}
                self.assertEqual(sum(map(sum, took.values())), sum(ended.values()))
                for kind in set(CLASSES.values()):
                    self.assertEqual(sum(took.get(kind, [])), ended[kind], kind)
                for kind, counts in took.items():
                    inside = [call["end_ns"] - call["begin_ns"] for call in self.records()[pid].calls if CLASSES.get(call["symbol"]) == kind]
                    for number in range(len(counts) - 1) if inside else ():
                        self.assertLessEqual(sum(counts[:number + 1]), sum(ns <= 1000 * 4 ** number for ns in inside), kind)

    def test_failures(self):
        for way in self.in_each_way():
            printed = self.counted(harness.calls("setup; fails 700 sync; sync; sync; fails 600 query; query"), *way, "--times",
                                fake={"FAIL": "cuStreamSynchronize=700@1,cuStreamQuery=600@1"})
            self.check_counts_printed(printed)
            self.assertEqual(list(printed.failures.values()), [1])
            self.assertEqual([result for _, result in printed.failures], ["700"])
            failed = {symbol: line["failed"] for (_, symbol), line in printed.sums.items() if line["failed"]}
            self.assertEqual(failed, {"cuStreamSynchronize": 1})  # one that is not ready has not failed

    def test_whole_machine(self):
        """Processes are adopted at their first call, which may be one that is only counted."""
        command = [f"{WORKLOADS}/fake_storm", "--library", LIBRARY, "--symbol", "cuCtxSynchronize", "--threads", "2",
                   "--count", "20000"]
        for way in self.in_each_way():
            counting = self.start_counting(*way)
            programs = [self.start(command, stdout=subprocess.DEVNULL) for _ in range(3)]
            for program in programs:
                self.assertEqual(program.wait(), 0)
            counting.signal(signal.SIGTERM)
            printed = self.printed(counting)
            self.check_counts_printed(printed)
            self.assertEqual(sorted(printed.processes),
                             sorted((op, p.pid) for p in programs for op in ("start", "exit")))
            self.assertEqual(sum(line["calls"] for (_, s), line in printed.sums.items() if s == "cuCtxSynchronize"), 120000)

    def test_attached_in_a_call(self):
        """A call that began before is not counted, though its return is seen."""
        for number, way in enumerate(self.in_each_way()):
            returns = pathlib.Path(f"{self.folder}/returns.{number}")
            program = self.start(harness.calls("setup; print in; sync; print out; read; query; query"),
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 env=self.environment(HANG=f"cuStreamSynchronize@1={returns}"))
            self.assertEqual(program.process.stdout.readline(), b"in\n")
            wait_for(lambda p=program: self.records()[p.pid].counts.get("cuStreamSynchronize"), "in the call")
            before = self.called(program.pid)
            counting = self.start_counting(*way, "--pid", program.pid)
            returns.touch()
            self.assertEqual(program.process.stdout.readline(), b"out\n")
            program.send_line()
            self.assertEqual(program.wait(), 0)
            counting.signal(signal.SIGTERM)
            printed = self.printed(counting)
            after = self.called(program.pid)
            self.assertEqual(dict(printed.counts(program.pid)),
                             {s: n - before.get(s, 0) for s, n in after.items() if n > before.get(s, 0)})
            self.assertEqual(printed.total("ended"), printed.total("calls"))

    def test_forked_in_a_call(self):
        """The child returns from a call that only its parent has made."""
        for way in self.in_each_way():
            printed = self.counted([harness.PYTHON, "-c", FORK_IN_A_CALL, LIBRARY], *way)
            self.check_counts_printed(printed)
            self.assertEqual(printed.books["tallied"]["under_way"], 0)
            for symbol, calls in (("cuCtxSynchronize", [3, 5]), ("cuLaunchHostFunc", [1, 1])):
                lines = [line for (_, s), line in printed.sums.items() if s == symbol]
                self.assertEqual(sorted(line["calls"] for line in lines), calls)
                self.assertEqual(sorted(line["ended"] for line in lines), calls)

    def test_killed_in_a_call(self):
        for way in self.in_each_way():
            counting = self.start_counting(*way)
            program = self.start(harness.calls("setup; sync; sync"),
                                 env=self.environment(HANG="cuStreamSynchronize@2"))
            wait_for(lambda p=program: p.pid in self.records() and
                     self.records()[p.pid].counts.get("cuStreamSynchronize") == 2, "in the call")
            program.signal(signal.SIGKILL)
            program.wait()
            counting.signal(signal.SIGTERM)
            printed = self.printed(counting)
            self.check_counts_printed(printed)
            self.assertEqual(printed.books["tallied"]["under_way"], 1)

    def test_odd_ends(self):
        """Calls that longjmp leaves, that threads end in, and of children of vfork."""
        for odd in ("jumps", "vforks", "crowd", "fibers"):
            for way in self.in_each_way():
                if way is SINGLE_LINKS and odd != "jumps":
                    continue
                printed = self.counted([f"{WORKLOADS}/fake_odd", "--library", LIBRARY, odd], *way)
                self.check_counts_printed(printed)
                if odd == "jumps":
                    self.assertGreater(printed.books["tallied"]["under_way"], 0)

    def test_captures(self):
        """A process's first capture divides: before it all of these calls are counted, after it all are recorded."""
        joins = "record e s; wait-event e t; record e t; wait-event e s"
        script = f"setup; stream s; stream t; event e; {joins}; capture s; {joins}; end-capture g s; instantiate x g; loop 7 {{ launch-graph x s }}; sync"
        for way in self.in_each_way():
            others = self.start_counting("--captured", *way)
            programs = [self.start(harness.calls(one)) for one in (script, f"setup; stream s; stream t; event e; {joins}; {joins}")]
            for program in programs:
                self.assertEqual(program.wait(), 0)
                wait_for(lambda p=program: ended(p.pid), "gone")
            others.signal(signal.SIGTERM)
            printed = self.printed(others)
            self.check_counts_printed(printed)
            self.assertEqual({of: tuple(line[key] for key in ("calls", "ended", "recorded", "whole"))
                              for of, line in printed.sums.items() if of[1] in RECORDED},
                             {(programs[0].pid, "cuEventRecord"): (2, 2, 2, 2), (programs[0].pid, "cuStreamWaitEvent"): (2, 2, 2, 2),
                              (programs[0].pid, "cuGraphLaunch"): (0, 0, 7, 7),
                              (programs[1].pid, "cuEventRecord"): (4, 4, 0, 0), (programs[1].pid, "cuStreamWaitEvent"): (4, 4, 0, 0)})

    def test_no_room(self):
        """What does not fit is counted, and processes that have gone make room."""
        script = "setup; loop 1000 { sync; query; memory-info }"
        for way in self.in_each_way():
            counting = self.start_counting(*way, "--room", "2")
            counted = 0
            for _ in range(3):
                program = self.start(harness.calls(script))
                self.assertEqual(program.wait(), 0)
                wait_for(lambda p=program: ended(p.pid), "gone")
            counting.signal(signal.SIGTERM)
            printed = self.printed(counting)
            for pid in self.records():
                for symbol, count in self.called(pid).items():
                    line = printed.sums.get((pid, symbol), {"calls": 0, "recorded": 0})
                    self.assertIn(line["calls"] + line["recorded"], range(count + 1), symbol)
                    counted += count
            self.assertGreater(printed.losses["tally_full"], 0)
            self.assertEqual(set(printed.losses), {"tally_full"})
            self.assertEqual(printed.total("calls") + printed.total("recorded") + printed.losses["tally_full"], counted)

    def test_many_short_processes(self):
        """Each process's sums are removed once it is gone: far more come than there is room for at once."""
        counting = self.start_counting("--room", "64")
        for _ in range(5):
            here = [self.start(harness.calls("setup; sync; query")) for _ in range(12)]  # with four functions each: 48
            for program in here:
                self.assertEqual(program.wait(), 0)
            left = {program.process.pid for program in here}
            while left:  # what it prints is by lines
                left.discard(json.loads(counting.process.stdout.readline()).get("gone"))
        counting.signal(signal.SIGTERM)
        printed = self.printed(counting)
        self.check_counts_printed(printed)
        self.assertEqual(len(self.records()), 60)


if __name__ == "__main__":
    harness.main()
