"""What `cudabpf top` reports of each interval adds up to what the simulated driver counted, and nothing is written."""
import collections
import json
import os
import re
import shutil
import signal
import subprocess
import time

import harness
from harness import LIBRARY, WORKLOADS

LAUNCHES = ("cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel", "cuGraphLaunch")


class Live(harness.LiveTest):
    def intervals(self, *arguments, fake=None):
        done = self.run_cudabpf("top", "--json", "--profile", "full", "--library", LIBRARY, *arguments, cwd=self.folder,
                                env=self.environment(**(fake or {})))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return [json.loads(line) for line in done.stdout.decode().splitlines()]

    def check_books(self, intervals):
        self.assertFalse([interval for interval in intervals[:-1] if "accounts" in interval])
        records, tallied = intervals[-1]["accounts"], intervals[-1]["tallied"]
        self.assertEqual(records["entered"], records["emitted"] + records["dropped"])
        self.assertEqual(records["received"], records["emitted"])
        self.assertEqual(tallied["begun"], tallied["ended"] + tallied["under_way"] + tallied["dropped"])
        return records, tallied

    def check_sums(self, intervals, inside=None):
        """The sums of each process and of all of them."""
        self.check_books(intervals)
        reported = {}
        for interval in intervals:
            self.assertEqual(interval["lost"], 0)
            self.assertFalse(interval["lost_uncounted"])
            self.assertEqual(interval["calls"], sum(process["calls"] for process in interval["processes"]))
            for process in interval["processes"]:
                sums = reported.setdefault(process["pid"], [0, 0])
                sums[0] += process["calls"]
                sums[1] += process["launches"]
        made = {pid: [sum(record.counts.values()), sum(record.counts.get(name, 0) for name in LAUNCHES)]
                for pid, record in harness.records(self.record_folder, inside).items()}
        self.assertTrue(made)
        self.assertEqual({pid: sums for pid, sums in reported.items() if sums[0]}, made)

    def test_sums(self):
        command = [f"{WORKLOADS}/fake_inference", "--library", LIBRARY, "--tokens", "300", "--token-pause", "2000",
                   "--processes", "2"]
        intervals = self.intervals("--interval", "200ms", "--", *command)
        self.assertGreater(len(intervals), 2)
        for before, after in zip(intervals, intervals[1:]):
            self.assertEqual(before["end_ns"], after["begin_ns"])
        self.check_sums(intervals)
        self.assertEqual(os.listdir(self.folder), ["record"])

    def test_sums_inside(self):
        command = [f"{WORKLOADS}/fake_inference", "--library", LIBRARY, "--tokens", "100", "--token-pause", "2000"]
        self.check_sums(self.intervals("--inside", "--interval", "100ms", "--", *command), inside=True)

    def test_only_counted(self):
        """Launches, copies and waits make no records; what the process held is known all the same, and what failed."""
        script = ("setup; module m; function f m kernel; malloc a 64K; malloc b 32K; free b; htod a host 4K; "
                  "loop 5000 { launch f 1 1 1 1 1 1 0 }; fails 700 sync; loop 9 { sync }")
        intervals = self.intervals("--", *harness.calls(script), fake={"FAIL": "cuStreamSynchronize=700@1"})
        self.check_sums(intervals)
        records, tallied = self.check_books(intervals)
        self.assertGreater(tallied["begun"], 5010)
        self.assertEqual(tallied["under_way"], 0)
        self.assertLess(records["entered"], 200)
        last = [process for interval in intervals for process in interval["processes"] if process["calls"]][-1]
        self.assertEqual(last["peak"], 96 * 1024)
        copies = [process["copies"].get("HtoD", {"count": 0, "bytes": 0})
                  for interval in intervals for process in interval["processes"]]
        self.assertEqual(sum(moved["count"] for moved in copies), 1)
        self.assertEqual(sum(moved["bytes"] for moved in copies), 4096)
        self.assertEqual([(error["pid"], error["what"]) for error in intervals[-1]["errors"]],
                         [(last["pid"], "cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS")])

    def check_parts(self, intervals, record, launches):
        """The functions and kernels of a process add up to the driver's own count, by name."""
        functions, kernels, devices = collections.Counter(), collections.Counter(), []
        for process in (one for interval in intervals for one in interval["processes"] if one["pid"] == record.pid):
            self.assertEqual(sum(part["calls"] for part in process["functions"]), process["calls"])
            functions.update({part["name"]: part["calls"] for part in process["functions"]})
            kernels.update({part["name"]: part["calls"] for part in process.get("kernels", [])})
            devices += [(device["device"], device["held"], device["peak"]) for device in process["devices"]]
            self.assertEqual(process["calls_in_all"], sum(functions.values()))
        made = collections.Counter()
        for symbol, count in record.counts.items():
            made[re.sub(r"(_v\d+)?(_pt[ds][sz])?$", "", symbol)] += count
        self.assertEqual(+functions, made)
        self.assertEqual(+kernels, launches)
        return devices

    def test_parts(self):
        """Kernels are known with --kernels, and inside; functions and the memory of devices always."""
        script = ("setup; module m; function f m one_kernel; function g m other_kernel; malloc a 3M; malloc b 1M; free b; "
                  "loop 1500 { launch f 1 1 1 1 1 1 0; sync }; loop 700 { launch g 1 1 1 1 1 1 0 }; graph h; "
                  "graph-kernel h f 1 1 1 1 1 1 0; instantiate x h; loop 3 { launch-graph x }; sleep 300")
        launches = {"one_kernel": 1500, "other_kernel": 700, "(graph)": 3}
        for flags, kernels in (([], {}), (["--kernels"], launches), (["--inside"], launches)):
            with self.subTest(flags):
                shutil.rmtree(self.record_folder)
                os.mkdir(self.record_folder)
                intervals = self.intervals("--interval", "100ms", *flags, "--", *harness.calls(script))
                record, = harness.records(self.record_folder, "--inside" in flags).values()
                devices = self.check_parts(intervals, record, kernels)
                self.assertIn((0, 3 << 20, 4 << 20), devices)
                self.assertEqual(devices[-1], (0, 0, 4 << 20))  # it has ended

    def test_whole_machine(self):
        """Processes that come and go, each of them listed with its name."""
        program = subprocess.Popen([harness.CUDABPF, "top", "--json", "--profile", "full", "--library", LIBRARY,
                                    "--interval", "100ms"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(program.kill)
        intervals = [json.loads(program.stdout.readline())]
        for _ in range(3):
            subprocess.run(harness.calls("setup; loop 100 { sync; query }"), env=self.environment(), check=True)
        while intervals[-1]["processes"] or sum(interval["calls"] for interval in intervals) < self.total():
            intervals.append(json.loads(program.stdout.readline()))
        program.send_signal(signal.SIGTERM)
        intervals += [json.loads(line) for line in program.communicate(timeout=20)[0].splitlines()]
        self.check_sums(intervals)
        for interval in intervals:
            self.assertNotIn("", [process["name"] for process in interval["processes"]])
        self.assertEqual(intervals[-1]["processes"], [])

    def test_once(self):
        before = time.monotonic()
        intervals = self.intervals("--once", "--interval", "500ms")
        self.assertEqual(len(intervals), 1)
        self.assertGreaterEqual(intervals[0]["end_ns"], 400e6)
        self.assertLess(time.monotonic() - before, 20)

    def test_reader_goes_away(self):
        program = subprocess.Popen([harness.CUDABPF, "top", "--interval", "100ms"], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(program.kill)
        program.stdout.readline()
        program.stdout.close()
        self.assertEqual(program.wait(10), 0)

    def test_interrupt(self):
        program = subprocess.Popen([harness.CUDABPF, "top", "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(program.kill)
        program.stdout.readline()
        program.send_signal(signal.SIGINT)
        rest = program.communicate(timeout=10)[0]
        self.assertEqual(program.returncode, 0)
        self.assertEqual(len([json.loads(line) for line in rest.splitlines()]), 1)


if __name__ == "__main__":
    harness.main()
