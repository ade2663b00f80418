"""The books under fault, against the simulated driver's own count: rings that are too small, a tracer that is stopped,
programs that are killed, more threads than there are rings. What is missing is counted, call by call."""
import collections
import json
import os
import signal
import subprocess

import hostile
from hostile import LIBRARY, WORKLOADS, wait_for

SECONDS = 3  # of calls in each scenario
RINGS = 1024  # CI_RINGS in include/cudabpf/inside.h
WAYS = {"bpf": ("--library", LIBRARY), "inside": ("--inside",), "merged": ("--inside", "--kernel")}


class Live(hostile.Attack):
    def begin(self, way, *flags, threads, rate=0, seconds=SECONDS):
        self.way, self.threads = way, threads
        self.path = f"{self.folder}/trace.jsonl.zst"
        storm = [f"{WORKLOADS}/fake_storm", "--library", LIBRARY, "--threads", threads, "--seconds", seconds, "--rate", rate]
        self.tracer = self.start([hostile.harness.CUDABPF, "run", *WAYS[way], "-q", "--profile", "full", "-o", self.path, *flags, "--", *storm],
                                 env=self.environment(LOG=None))
        wait_for(self.program, "a program that calls")

    def program(self):
        """The program's pid, once it calls."""
        return next((int(name.split(".")[1]) for name in os.listdir(self.record_folder) if name.startswith("counts.")), None)

    def stopped(self, until):
        """Stops the tracer until this holds."""
        self.tracer.signal(signal.SIGSTOP)
        try:
            wait_for(until, "over while the tracer is stopped", 180)
        finally:
            self.tracer.signal(signal.SIGCONT)

    def kill(self):
        os.kill(self.program(), signal.SIGKILL)

    def made(self):
        """How many calls the program has made that this way can see, and how many of them it may not have seen."""
        records = hostile.harness.records(self.record_folder, self.way != "bpf").values()  # none before its first call
        return tuple(sum(sum(counts.values()) for counts in kind)
                     for kind in ([record.counts for record in records], [record.doubtful for record in records if self.way != "bpf"]))

    def check_books(self, status=0, under_way=0):
        """Each call is in the trace or counted as lost, but for those that threads may have been making when they were killed."""
        self.assertEqual(self.tracer.wait(120), status, self.tracer.stderr())
        lines, last = collections.Counter(), b"{}"
        with subprocess.Popen(["zstdcat", self.path], stdout=subprocess.PIPE) as trace:
            for line in trace.stdout:
                if line.startswith(b'{"id":'):
                    lines["without their beginning" if b'"entry_lost":true' in line else "whole"] += 1
                last = line
        end = json.loads(last)
        accounts, losses = end["accounts"], end["losses"]
        self.assertEqual(end["type"], "end")
        self.assertEqual((accounts["entered"], accounts["received"]), (accounts["emitted"] + accounts["dropped"], accounts["emitted"]))
        self.assertEqual(accounts["dropped"], sum(count for reason, count in losses.items() if reason.startswith("ring_full_")))
        self.assertEqual(end["calls"], sum(lines.values()))
        made, doubtful = self.made()
        missing = made - lines["whole"] - losses.get("ring_full_entry", 0)
        self.assertTrue(-under_way - doubtful <= missing <= under_way, f"{missing} of {made} calls are missing: {dict(lines)}, {losses}")
        print(f"{made:,} calls, {lines['whole']:,} in the trace, {accounts['dropped']:,} records lost")
        return losses

    # --- rings that are too small

    def test_small_rings(self):
        self.begin("bpf", "--ring-size", "64K", threads=8)
        self.assertIn("ring_full_entry", self.check_books())

    def test_smallest_rings(self):
        self.begin("bpf", "--ring-size", "8K", threads=8)
        self.assertIn("ring_full_entry", self.check_books())

    def test_small_rings_inside(self):
        self.begin("inside", "--ring-size", "64K", threads=8)
        self.assertIn("ring_full_entry", self.check_books())

    def test_more_threads_than_rings(self):
        """A ring is for one thread, and the program's first has one, too."""
        self.begin("inside", threads=RINGS, rate=50_000)
        self.assertIn("ring_full_entry", self.check_books())

    # --- a tracer that is stopped

    def check_stopped(self, way, *flags, threads=4):
        self.begin(way, *flags, threads=threads)
        begun = wait_for(lambda: self.made()[0], "calls that are recorded")
        self.stopped(lambda: self.made()[0] > begun + 1_000_000)
        self.assertIn("ring_full_entry", self.check_books())

    def test_stopped(self):
        self.check_stopped("bpf", "--ring-size", "1M")

    def test_stopped_inside(self):
        self.check_stopped("inside")

    def test_stopped_merged(self):
        self.check_stopped("merged")

    # --- programs that are killed

    def check_killed(self, way, rate, threads=16):
        self.begin(way, threads=threads, rate=rate, seconds=600)
        wait_for(lambda: self.made()[0] > 20_000, "calls")
        self.kill()
        self.check_books(128 + signal.SIGKILL, under_way=threads)

    def test_killed(self):
        self.check_killed("bpf", 20_000)

    def test_killed_inside(self):
        self.check_killed("inside", 100_000)

    def test_killed_merged(self):
        self.check_killed("merged", 50_000)

    def test_killed_while_the_tracer_is_stopped(self):
        self.begin("inside", threads=4, rate=400_000, seconds=600)
        wait_for(lambda: self.made()[0] > 20_000, "calls")

        def killed():
            self.kill()
            return True
        self.stopped(killed)
        self.check_books(128 + signal.SIGKILL, under_way=4)


if __name__ == "__main__":
    hostile.harness.main()
