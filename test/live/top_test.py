"""What `cudabpf top` tells of each interval adds up to what the simulated driver counted, and nothing is written."""
import json
import os
import signal
import subprocess
import time

import harness
from harness import LIBRARY, WORKLOADS

LAUNCHES = ("cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel", "cuGraphLaunch")


class Live(harness.LiveTest):
    def intervals(self, *arguments):
        done = self.run_cudabpf("top", "--json", "--profile", "full", "--library", LIBRARY, *arguments, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return [json.loads(line) for line in done.stdout.decode().splitlines()]

    def check_sums(self, intervals, inside=None):
        """Of each process and of all of them."""
        told = {}
        for interval in intervals:
            self.assertEqual(interval["lost"], 0)
            self.assertFalse(interval["lost_uncounted"])
            self.assertEqual(interval["calls"], sum(process["calls"] for process in interval["processes"]))
            for process in interval["processes"]:
                sums = told.setdefault(process["pid"], [0, 0])
                sums[0] += process["calls"]
                sums[1] += process["launches"]
        made = {pid: [sum(record.counts.values()), sum(record.counts.get(name, 0) for name in LAUNCHES)]
                for pid, record in harness.records(self.record_folder, inside).items()}
        self.assertTrue(made)
        self.assertEqual({pid: sums for pid, sums in told.items() if sums[0]}, made)

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
