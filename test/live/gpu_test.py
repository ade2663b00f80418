"""When GPUs worked, by --gpu: against what the simulated CUPTI reported, and the calls that the simulated driver got."""
import collections
import json
import os
import re
import signal
import subprocess
import sys
import time

import harness
from expected import demangle
from harness import AS_USER, BUILD, INSIDE, LIBRARY, NCCL, PATIENCE, WORKLOADS, calls, wait_for

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fake_nccl"))
from steps import PROGRAM  # noqa: E402  pylint: disable=wrong-import-position

BEGIN = "setup; stream s; stream t; module m; function k m _Z4gemmPfi; function l m _Z4reluPf; malloc a 1M; malloc b 1M"
SOME = "launch k 3 2 1 32 4 1 64 s; launch-ex l 5 1 1 64 1 1 0 t; launch-cooperative k 2 1 1 8 8 1 16 s"
# Calls that make a GPU work, but for those that the simulated driver does not report to CUPTI.
ISSUES_WORK = re.compile(r"cuLaunch(CooperativeKernel|Kernel(Ex)?)$|cuGraphLaunch$|cuMemcpy(?!Batch)|cuMemset")


class Live(harness.LiveTest):
    def setUp(self):
        super().setUp()
        self.cupti_record = f"{self.folder}/cupti.jsonl"

    # --- tracing

    def with_cupti(self, fake=None, **cupti):
        """The environment of a program that finds the simulated CUPTI."""
        settings = {f"FAKE_CUPTI_{name}": str(value) for name, value in {"RECORD": self.cupti_record, **cupti}.items()}
        return dict(self.environment(**(fake or {})), CUDABPF_CUPTI=f"{BUILD}/test/fake_cupti/libcupti.so.13", **settings)

    def timed(self, command, *flags, env=None, gpu="--gpu", status=0):
        done = self.run_cudabpf("run", "-q", "-o", self.path, "--library", LIBRARY, "--profile", "full", gpu, *flags, "--", *command,
                                env=env or self.with_cupti())
        self.assertEqual(done.returncode, status, done.stderr)
        self.said = done.stderr.decode()
        return self.read()

    def script_timed(self, script, *flags, **options):
        return self.timed(calls(f"{BEGIN}; {script}"), *flags, **options)

    def has_operations(self):
        if not os.path.exists(self.path):
            return False
        with open(self.path, "rb") as file:
            return b'"type":"gpu","op":"kernel"' in file.read()

    # --- the truth

    def handed_out(self):
        """The operations that the simulated CUPTI reported: a list per thread, in the order in which it issued them."""
        found = collections.defaultdict(list)
        with open(self.cupti_record, encoding="utf-8") as file:
            whole = file.read().rpartition("\n")[0]  # SIGKILL cuts a write at the end of a page
        for line in map(json.loads, whole.splitlines()):
            found[line["tid"]].append(line)
        return {tid: sorted(operations, key=lambda work: (work["correlation"], work.get("node", 0))) for tid, operations in found.items()}

    @staticmethod
    def operations(trace):
        return [line for line in trace.of("gpu") if line["op"] in ("kernel", "copy", "set", "graph")]

    @staticmethod
    def issuing(trace, tid):
        """A thread's calls that made a GPU work, in order."""
        return sorted((call for call in trace.calls if call["tid"] == tid and ISSUES_WORK.match(call["name"]) and call.get("ret") == 0 and
                       "captured" not in call and call.get("size") != 0 and "parent" not in call), key=lambda call: call["ts"])

    def check_line(self, line, work, trace):
        began = work["begin_ns"] - trace.header["clocks"]["monotonic_ns"]
        self.assertLess(abs(line["ts"] - began), 2000 + trace.end["gpu_operations"]["clock_error_ns"], (line, work))
        self.assertEqual(round(line["duration_us"] * 1000), work["end_ns"] - work["begin_ns"])
        self.assertEqual((line["op"], line.get("size", 0)), (work["op"], work.get("size", 0)))
        if line["op"] == "kernel":
            self.assertEqual((line["kernel"], line["grid"], line["block"], line["shared"]),
                             (demangle(work["kernel"]), work["grid"], work["block"], work["shared"]))
        self.assertEqual(line.get("node", 0), work.get("node", 0))

    def check_exact(self, trace):
        """Every operation that was reported has a line, with the very call that issued it, and no call is left."""
        if INSIDE:
            self.check_accounts(trace)
        self.assertEqual(trace.end["losses"], {})
        lines = collections.defaultdict(list)
        for line in self.operations(trace):
            self.assertIn("call", line)
            lines[line["call"]].append(line)
        count = 0
        for tid, reported in self.handed_out().items():
            by_call = collections.defaultdict(list)
            for work in reported:
                by_call[work["correlation"]].append(work)
            issued = self.issuing(trace, tid)
            self.assertEqual(len(issued), len(by_call))
            for call, operations in zip(issued, by_call.values()):
                count += 1
                found = sorted(lines.pop(call["id"]), key=lambda line: line.get("node", 0))
                self.assertEqual(len(found), len(operations))
                for line, work in zip(found, operations):
                    self.check_line(line, work, trace)
                    self.assertGreaterEqual(line["ts"], call["ts"])
                    self.assertEqual(line["stream"], call.get("stream", "0x0"))
                    self.assertEqual(line["pid"], call["pid"])
        self.assertEqual(lines, {})
        counts = trace.end["gpu_operations"]
        self.assertEqual((counts["operations"], counts["joined"], counts["calls"], counts["answered"], counts["invalid"], counts["unjoined"]),
                         (count, count, count, count, 0, {}))
        self.assertLess(counts["clock_error_ns"], 50_000_000)  # however late threads got a processor
        return count

    def times_line(self, trace):
        line, = [line for line in trace.of("gpu") if line["op"] == "times"]
        return line

    # --- tests

    def test_operations(self):
        """Launches, copies and fills of every kind, at once and in streams."""
        trace = self.script_timed(f"""{SOME}; htod a host 4K; dtoh host a 100; dtod a b 8; copy a b 12; htod-async a host 9999 s
            dtoh-async host a 4K t; copy2d htod a host 300 7; copy2d-async dtoh host a 20 3 s; copy3d htod a host 2 3 4
            set8 a 1 1000; set16 a 1 1000; set32-async a 1 1000 t; launch l 1 1 1 1 1 1 0""")
        self.assertEqual(self.check_exact(trace), 3 + 4 + 2 + 3 + 3 + 1)
        self.assertEqual(trace.header["gpu_timing"], "nodes")
        line = self.times_line(trace)
        self.assertEqual((line["cupti"], line["path"], line["graphs"]), ("13.0.1", f"{BUILD}/test/fake_cupti/libcupti.so.13", "nodes"))

    def test_without_work(self):
        """Calls that fail, that are captured, that copy nothing: the GPU does nothing for them."""
        script = f"""{SOME}; fails 1 launch k 0 1 1 1 1 1 0 s; htod a host 0; launch l 7 1 1 1 1 1 0 s
            capture s; launch k 1 1 1 1 1 1 0 s; launch k 1 1 1 1 1 1 0 s; end-capture g s; launch k 1 1 1 1 1 1 0 s
            set8 a 1 0; instantiate x g; launch k 1 1 1 1 1 1 0 s"""
        trace = self.script_timed(script)
        counts = trace.end["gpu_operations"]
        # A copy and a fill of nothing were issued, as far as cudabpf can see.
        self.assertEqual((counts["operations"], counts["joined"], counts["calls"], counts["unjoined"]), (6, 6, 8, {"no_work": 2}))
        issued = self.issuing(trace, self.handed_out().popitem()[0])
        self.assertEqual([line["call"] for line in self.operations(trace)], [call["id"] for call in issued])

    def test_threads(self):
        """Threads that launch into one stream at the same time, and into their own."""
        command = [f"{WORKLOADS}/fake_inference", "--library", LIBRARY, "--threads", "6", "--layers", "4", "--tokens", "30"]
        self.assertGreater(self.check_exact(self.timed(command)), 6 * 30 * 20)

    def test_odd_delivery(self):
        """Buffers that come late, and the last first."""
        command = [f"{WORKLOADS}/fake_inference", "--library", LIBRARY, "--threads", "3", "--layers", "20", "--tokens", "60"]
        trace = self.timed(command, env=self.with_cupti(LATE=3, BACKWARDS=1))
        self.assertGreater(self.check_exact(trace), 3 * 60 * 100)

    def test_graphs(self):
        script = f"""{SOME}; graph g; graph-kernel g k 8 2 1 128 1 1 64; graph-kernel g l 2 1 1 32 1 1 0; graph-copy g 4096; graph-set g 4 100 1
            instantiate x g; launch-graph x s; launch l 1 1 1 1 1 1 0 s; launch-graph x s; launch-graph x t"""
        trace = self.script_timed(script)
        self.assertEqual(self.check_exact(trace), 7)
        self.assertEqual(len([line for line in self.operations(trace) if "node" in line]), 12)
        os.unlink(self.cupti_record)
        trace = self.script_timed(script, gpu="--gpu=graphs")
        self.assertEqual(self.check_exact(trace), 7)
        self.assertEqual([line["op"] for line in self.operations(trace)].count("graph"), 3)
        self.assertEqual((trace.header["gpu_timing"], self.times_line(trace)["graphs"]), ("graphs", "whole"))

    def test_waits_for_nobody(self):
        """CUPTI can hand out its buffers though cudabpf does not read: threads of the program may wait for that."""
        longest = f"{self.folder}/longest"
        graph = "graph g; " + "graph-kernel g k 1 1 1 32 1 1 0; " * 100
        command = calls(f"{BEGIN}; {graph} instantiate x g; {'launch-graph x s; ' * 500}")
        program = self.start_cudabpf("run", "-q", "-o", self.path, "--library", LIBRARY, "--gpu", "--", *command,
                                     env=self.with_cupti(WORKER=1, LONGEST=longest))
        wait_for(lambda: os.path.exists(longest), "reported operations")
        program.signal(signal.SIGSTOP)
        stopped = time.monotonic_ns()
        time.sleep(0.2)
        stopped = time.monotonic_ns() - stopped
        program.signal(signal.SIGCONT)
        self.assertEqual(program.wait(), 0, program.stderr())
        self.assertEqual(self.check_exact(self.read()), 500)
        with open(longest, encoding="utf-8") as file:
            self.assertLess(int(file.read()), stopped)

    def test_clock(self):
        """CUPTI's clock is not the trace's."""
        self.check_exact(self.script_timed(SOME, env=self.with_cupti(CLOCK=5_000_000_000)))

    def test_zero_times(self):
        """An operation without times has no line, and the others keep their calls."""
        trace = self.script_timed("; ".join([SOME] * 4), env=self.with_cupti(ZERO=5))
        reported, = self.handed_out().values()
        self.assertEqual(len(reported), 12)
        issued = self.issuing(trace, reported[0]["tid"])
        wanted = [call["id"] for call, work in zip(issued, reported) if not work["zero"]]
        self.assertEqual([line["call"] for line in self.operations(trace)], wanted)
        counts = trace.end["gpu_operations"]
        self.assertEqual((counts["operations"], counts["invalid"], counts["answered"]), (12, 2, 12))

    def test_dropped(self):
        """Operations that CUPTI has lost give no other operation a wrong call."""
        trace = self.script_timed("; ".join([SOME] * 4), env=self.with_cupti(DROP=5))
        reported, = self.handed_out().values()
        counts = trace.end["gpu_operations"]
        self.assertEqual((counts["invalid"], counts["unjoined"]["lost"] + counts["joined"]), (2, 10))
        issued = self.issuing(trace, reported[0]["tid"])
        kept = [call for i, call in enumerate(issued, 1) if i % 5]
        right = {work["begin_ns"]: call["id"] for call, work in zip(kept, reported)}
        begin = trace.header["clocks"]["monotonic_ns"]
        for line in self.operations(trace):
            if "call" in line:
                began = min(right, key=lambda ns, ts=line["ts"]: abs(ns - begin - ts))
                self.assertEqual(line["call"], right[began])
            else:
                self.assertEqual(line["unjoined"], "lost")

    def test_nobody_tells(self):
        """Calls are recorded all the same, and the trace says why there are no times."""
        for cupti, why in (({"BUSY": 1}, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"), ({"OLD": 1}, "CUPTI_ERROR_SIMULATED"),
                           ({"INVALID": 7}, "CUPTI_ERROR_SIMULATED"), ({"VERSION": 20}, "the libcupti found cannot distinguish threads")):
            with self.subTest(cupti):
                trace = self.script_timed(SOME, env=self.with_cupti(**cupti))
                self.assertIn(why, self.times_line(trace)["why"])
                self.assertEqual(len(self.operations(trace)), 0)
                self.assertEqual(trace.counts()["cuLaunchKernel"], 1)
                self.assertEqual(trace.end["losses"], {})
                # It was said at once, and every answer says it.
                self.assertRegex(self.said, rf"(?m)^cudabpf: warning: process \d+ has no GPU times: {why}")
                for answer in ("kernels", "summary", "gaps", "timeline", "energy", "calls"):
                    shown = self.run_cudabpf(answer, self.path)
                    self.assertEqual(shown.returncode, 0, shown.stderr)
                    self.assertRegex(shown.stdout.decode(), rf"(?m)^no GPU times\n  Process \d+: {why}", answer)
                self.assertNotIn("taken with --gpu", self.run_cudabpf("kernels", self.path).stdout.decode())
        env = dict(self.with_cupti(), CUDABPF_CUPTI="/nowhere/libcupti.so")
        self.assertIn("CUDABPF_CUPTI", self.times_line(self.script_timed(SOME, env=env))["why"])

    def test_killed(self):
        """What was reported before the end is there, with its calls."""
        program = self.start_cudabpf("run", "-q", "-o", self.path, "--library", LIBRARY, "--gpu", "--", f"{WORKLOADS}/fake_storm",
                                     "--library", LIBRARY, "--count", "1000000", "--rate", "5000", env=self.with_cupti())
        wait_for(self.has_operations, "operations in the trace")  # CUPTI hands them out before the process reports them
        pid, = self.records()
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(program.wait(), 128 + signal.SIGKILL, program.stderr())
        trace = self.read()
        counts = trace.end["gpu_operations"]
        reported, = self.handed_out().values()
        issued = [call["id"] for call in self.issuing(trace, reported[0]["tid"])]
        found = [line["call"] for line in self.operations(trace)]
        self.assertGreater(len(found), 0)
        self.assertEqual(found, issued[:len(found)])
        # The last call may be under way.
        self.assertEqual(counts["calls"], len(found) + counts["unjoined"].get("not_reported", 0))

    def test_slow_end(self):
        """A program that takes its time to end, with libraries that are gone already: CUPTI is not called any more."""
        self.assertEqual(self.check_exact(self.script_timed(SOME, env=self.with_cupti(END_TAKES=400))), 3)

    def test_cudabpf_killed(self):
        """The program goes on as if nothing had happened."""
        program = self.start_cudabpf("run", "-q", "-o", self.path, "--library", LIBRARY, "--gpu", "--", f"{WORKLOADS}/fake_storm",
                                     "--library", LIBRARY, "--count", "6000", "--rate", "3000", env=self.with_cupti())
        wait_for(lambda: os.path.exists(self.cupti_record), "reported operations")
        pid, = self.records()
        program.signal(signal.SIGKILL)
        wait_for(lambda: harness.ended(pid), "a program that has ended")
        self.assertEqual(self.record().counts["cuLaunchKernel"], 6000)

    def test_children(self):
        """Programs that a program starts, each with a CUPTI of its own."""
        command = [f"{WORKLOADS}/fake_inference", "--library", LIBRARY, "--spawn", "3", "--layers", "3", "--tokens", "5"]
        trace = self.timed(command)
        self.check_exact(trace)
        self.assertEqual(len([line for line in trace.of("gpu") if line["op"] == "times"]), 3)

    def test_late_sender(self):
        """Of two ranks, the receiver's kernels take 3 ms longer: the sender is named."""
        ranks = [[["ncclCommInitRank", "a", 1, rank, 2], ["repeat", 12, [function, 1024, 7, 1 - rank, "a"], ["sync"]]]
                 for rank, function in enumerate(("ncclSend", "ncclRecv"))]
        script = "\n".join(["import json, os, subprocess, sys", "program, *libraries, ranks = sys.argv[1:]",
                            "ranks = [subprocess.Popen([sys.executable, '-c', program, *libraries, json.dumps([steps])],",
                            "                          env=dict(os.environ, FAKE_NCCL_BLOCKS=blocks))",
                            "         for steps, blocks in zip(json.loads(ranks), ('20', '3020'))]",
                            "sys.exit(max(rank.wait() for rank in ranks))"])
        self.timed([harness.PYTHON, "-c", script, PROGRAM, LIBRARY, NCCL, json.dumps(ranks)], "--library", NCCL)
        answer, = json.loads(self.run_cudabpf("ranks", "--json", self.path).stdout)["communicators"]
        self.assertEqual((answer["matched"], answer["exchanges"], answer["at_set_up"]), (11, 11, 1))
        self.assertEqual((answer["verdict"], answer["late"]), ("skew", {"rank": 0, "per_step_us": 3000}))
        self.assertEqual([(wait["rank"], wait["awaited"], wait["count"]) for wait in answer["waits"]], [(1, 0, 11)])
        self.assertEqual(answer["sends_and_receives"]["unmatched_sends"], 0)

    def windows(self, trace):
        """When they began and ended, in the trace's time."""
        return [(line["ts"], line["ts"] + round(line["duration_us"] * 1000)) for line in trace.of("gpu") if line["op"] == "window"]

    def test_windows(self):
        """Kernels are recorded in windows: all that are launched in them, each with its very call, and no others."""
        command = [f"{WORKLOADS}/fake_inference", "--library", LIBRARY, "--threads", "2", "--layers", "3", "--tokens", "1000000",
                   "--token-pause", "500"]  # so few calls a second that none is lost, however busy the machine is
        program = self.start_cudabpf("run", "-q", "-o", self.path, "--library", LIBRARY, "--gpu=60ms/240ms", "--", *command, env=self.with_cupti())

        def windows():
            if not os.path.exists(self.path):
                return 0
            with open(self.path, "rb") as file:
                return file.read().count(b'"op":"window"')
        wait_for(lambda: windows() >= 4, "four windows")
        pid, = self.records()
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(program.wait(), 128 + signal.SIGKILL, program.stderr())
        trace = self.read()
        self.assertEqual(trace.end["losses"], {})
        self.assertEqual(trace.header["gpu_window"], {"window_ns": 60_000_000, "period_ns": 240_000_000})
        self.assertEqual([self.times_line(trace)[key] for key in ("window_ms", "period_ms")], [60, 240])
        calls_by_id = {call["id"]: call for call in trace.calls}
        found = collections.defaultdict(list)
        for line in self.operations(trace):
            if "call" in line:
                call = calls_by_id[line["call"]]
                self.assertGreaterEqual(line["ts"], call["ts"])
                if line["op"] == "kernel" and "node" not in line:
                    self.assertEqual((line["kernel"], line["grid"], line["block"]), (call["kernel"], call["grid"], call["block"]))
                found[line["call"]].append(line)
        windows = self.windows(trace)
        last = windows[-2][1]  # what was submitted later may not have been reported yet
        reported = self.handed_out()
        for tid in {call["tid"] for call in trace.calls}:
            submitted = [call for call in self.issuing(trace, tid) if call["ts"] < last and call["op"] == "launch"]
            inside = [call["id"] for call in submitted for begin, end in windows
                      if call["ts"] >= begin and call["ts"] + call["duration_us"] * 1000 <= end]
            near = {call["id"] for call in submitted for begin, end in windows
                    if call["ts"] + call["duration_us"] * 1000 >= begin - 1e6 and call["ts"] <= end + 1e6}
            answered = [call["id"] for call in submitted if call["id"] in found]
            self.assertEqual([one for one in inside if one not in found], [], tid)
            self.assertLessEqual(set(answered), near, tid)
            if inside:
                self.assertGreaterEqual(len({work["correlation"] for work in reported[tid]}), len(inside))
        counts = trace.end["gpu_operations"]
        self.assertEqual((counts["operations"], counts["invalid"]), (counts["joined"], 0), counts)
        self.assertLessEqual(set(counts["unjoined"]), {"not_reported"})
        shown = self.run_cudabpf("gaps", self.path).stdout.decode()
        self.assertRegex(shown, r"Kernels were recorded for .* in \d+ windows, of 60\.0 ms in each 240 ms")

    def test_no_window(self):
        """A program that ends before one begins: that is said, and nothing is called idle."""
        trace = self.script_timed(SOME, gpu="--gpu=50ms/1h")
        self.assertEqual((self.windows(trace), self.operations(trace)), ([], []))
        shown = self.run_cudabpf("summary", self.path).stdout.decode()
        self.assertIn("the trace ended before a window of 50.0 ms in each 1:00:00 h began", " ".join(shown.split()))

    def test_windows_with_an_untried_cupti(self):
        for version in (130000, 130002, 26):
            trace = self.script_timed(SOME, gpu="--gpu=60ms/240ms", env=self.with_cupti(VERSION=version))
            self.assertIn("has not been tried with windows", self.times_line(trace)["why"])

    def test_wrong_arguments(self):
        for arguments in (("run", "--gpu=all", "--", "true"), ("attach", "--gpu", "--pid", "1"), ("run", "--gpu=1s/1s", "--", "true"),
                          ("run", "--gpu=1ms/1s", "--", "true"), ("run", "--gpu=graphs,1s/9s", "--", "true"), ("run", "--gpu=0.5s", "--", "true"), ("run", "--gpu=1s/2h", "--", "true")):
            done = subprocess.run([harness.CUDABPF, *arguments], check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=PATIENCE, **AS_USER)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(b"--gpu", done.stderr)


if __name__ == "__main__":
    harness.main()
