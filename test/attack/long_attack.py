"""What takes long: hours of calls, and ends at any moment. scripts/attack says how long; here it is short."""
import concurrent.futures
import contextlib
import glob
import json
import os
import random
import signal
import time

import hostile
from hostile import LIBRARY, WORKLOADS, wait_for

SOAK_MINUTES = float(os.environ.get("ATTACK_SOAK_MINUTES", "0.3"))
SOAK_RATE = int(os.environ.get("ATTACK_SOAK_RATE", "300000"))  # calls a second
KILLS = int(os.environ.get("ATTACK_KILLS", "8"))
AT_ONCE = 8
SETTLED = 15  # seconds after which a tracer's memory no longer grows
FLAT = 1 << 20
# What a trace's writer takes one by one while the disk is behind, and keeps (src/trace/files/output.cpp).
BLOCK, MOST_BLOCKS = 1 << 20, 16
LAUNCHES = 4000


class Trace:
    """A tracer to be killed, or its program, or both."""

    def __init__(self, folder, number, chosen):
        self.number = number
        self.victims = chosen.choice((("tracer",), ("program",), ("tracer", "program")))
        self.when = chosen.uniform(0, 2.5)
        self.path = f"{folder}/trace-{number}.jsonl"
        self.record_folder = f"{folder}/record-{number}"
        self.begun, self.status = False, None
        os.mkdir(self.record_folder)

    def calls(self):
        """The calls that its only program made."""
        record, = hostile.harness.records(self.record_folder).values()
        return record.counts.get("cuLaunchKernel")


class Live(hostile.Attack):
    def test_soak(self):
        """Many calls into a rotated trace: memory stays the same, and nothing is lost."""
        seconds = SOAK_MINUTES * 60
        storm = [f"{WORKLOADS}/fake_storm", "--library", LIBRARY, "--threads", "2", "--rate", str(SOAK_RATE),
                 "--seconds", str(seconds + SETTLED)]
        tracer = self.start([hostile.harness.CUDABPF, "run", "-q", "-o", self.path, "--rotate-size", "64M", "--keep", "3",
                             "--ring-size", "128M", "--profile", "full", "--library", LIBRARY, "--", *storm],
                            env=self.environment(LOG=None))
        time.sleep(SETTLED)
        memory = []
        while tracer.process.poll() is None and len(memory) < seconds:
            memory.append(hostile.memory_of(tracer.pid))
            time.sleep(1)
        self.assertEqual(tracer.wait(60), 0, tracer.stderr())
        with open(sorted(glob.glob(f"{self.folder}/trace.*.jsonl"))[-1], "rb") as file:
            end = json.loads(file.readlines()[-1])
        whole, accounts, made = end["whole"], end["accounts"], self.total()
        print(f"{made:,} calls in {seconds + SETTLED:.0f} s, {min(memory) / 1e6:.1f} to {max(memory) / 1e6:.1f} MB")
        self.assertEqual((whole["losses"], accounts["dropped"]), ({}, 0))
        self.assertEqual((whole["calls"], accounts["received"]), (made, accounts["entered"]))
        rises = [max(0, after - before) for before, after in zip(memory, memory[1:])]
        blocks = sum(round(rise / BLOCK) for rise in rises)  # a block's last page may not be touched yet
        self.assertLessEqual(blocks, MOST_BLOCKS, memory)
        self.assertLessEqual(max(memory) - min(memory) - blocks * BLOCK, FLAT, memory)

    def test_kills(self):
        """SIGKILL for the tracer, the program or both, at any moment, with several traces at once: see check_killed."""
        seed = int(os.environ.get("ATTACK_SEED", time.time()))
        print(f"seed {seed}")
        chosen = random.Random(seed)
        traces = [Trace(self.folder, number, chosen) for number in range(KILLS)]
        for first in range(0, KILLS, AT_ONCE):
            together = traces[first:first + AT_ONCE]
            with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
                list(pool.map(self.kill, together))
            self.check_gone(hostile.harness.PATIENCE)
            for trace in together:
                with self.subTest(number=trace.number, victims=trace.victims, seed=seed):
                    self.check_killed(trace)

    def kill(self, trace):
        storm = [f"{WORKLOADS}/fake_storm", "--library", LIBRARY, "--rate", "2000", "--count", str(LAUNCHES)]
        tracer = self.start([hostile.harness.CUDABPF, "run", "-q", "-o", trace.path, "--library", LIBRARY, "--", *storm],
                            env=self.environment(LOG=None, COUNTS=trace.record_folder))
        time.sleep(trace.when)
        trace.begun = bool(hostile.harness.records(trace.record_folder))
        if "program" in trace.victims and trace.begun:
            with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                os.kill(next(iter(hostile.harness.records(trace.record_folder))), signal.SIGKILL)
        if "tracer" in trace.victims:
            tracer.signal(signal.SIGKILL)
        trace.status = tracer.wait()
        if trace.victims == ("tracer",) and trace.begun:
            wait_for(lambda: trace.calls() == LAUNCHES, "at its program's own end")

    def check_killed(self, trace):
        """The program's outcome is its own, nothing stays in the kernel, and the trace is whole lines."""
        if trace.victims == ("program",):
            self.assertIn(trace.status, (128 + signal.SIGKILL, 0) if trace.begun else (0,))
        if not os.path.exists(trace.path) or not os.path.getsize(trace.path):
            return  # killed before it began
        lines = self.read(trace.path, whole="tracer" not in trace.victims)
        if "tracer" not in trace.victims:
            self.check_accounts(lines)
            self.assertEqual(lines.end["losses"], {})
        done = self.run_cudabpf("summary", "--json", trace.path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["trace"]["malformed"], 0)


if __name__ == "__main__":
    hostile.harness.main()
