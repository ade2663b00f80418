"""What takes long: hours of calls, and ends that come at any moment. How long, scripts/attack says; here it is short."""
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
KILLS = int(os.environ.get("ATTACK_KILLS", "6"))
SETTLED = 15  # seconds, after which a tracer takes no more memory
FLAT = 1 << 20
LAUNCHES = 4000


class Live(hostile.Attack):
    def test_soak(self):
        """So many calls into a trace that is rotated: memory stays as it is, and nothing is lost."""
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
        self.assertLessEqual(max(memory) - min(memory), FLAT, memory)

    def test_kills(self):
        """SIGKILL of the tracer, of the program or of both, at any moment: see check_killed."""
        seed = int(os.environ.get("ATTACK_SEED", time.time()))
        print(f"seed {seed}")
        chosen = random.Random(seed)
        for number in range(KILLS):
            victims = chosen.choice((("tracer",), ("program",), ("tracer", "program")))
            with self.subTest(number=number, victims=victims, seed=seed):
                self.killed(number, victims, chosen.uniform(0, 2.5))

    def killed(self, number, victims, when):
        self.record_folder = f"{self.folder}/record-{number}"
        os.mkdir(self.record_folder)
        path = f"{self.folder}/trace-{number}.jsonl"
        storm = [f"{WORKLOADS}/fake_storm", "--library", LIBRARY, "--rate", "2000", "--count", str(LAUNCHES)]
        tracer = self.start([hostile.harness.CUDABPF, "run", "-q", "-o", path, "--library", LIBRARY, "--", *storm],
                            env=self.environment(LOG=None))
        time.sleep(when)
        found = self.records()
        if "program" in victims and found:
            with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                os.kill(next(iter(found)), signal.SIGKILL)
        if "tracer" in victims:
            tracer.signal(signal.SIGKILL)
        status = tracer.wait()
        self.check_killed(path, found, victims, status)

    def check_killed(self, path, found, victims, status):
        """The program's outcome is its own, nothing stays in the kernel, and the trace is whole lines."""
        if victims == ("program",):
            self.assertIn(status, (128 + signal.SIGKILL, 0) if found else (0,))
        if victims == ("tracer",) and found:
            wait_for(lambda: self.record().counts.get("cuLaunchKernel") == LAUNCHES, "at its program's own end")
        self.check_gone(hostile.harness.PATIENCE)
        if not os.path.exists(path) or not os.path.getsize(path):
            return  # it was killed before it began
        trace = self.read(path, whole="tracer" not in victims)
        if "tracer" not in victims:
            self.check_accounts(trace)
            self.assertEqual(trace.end["losses"], {})
        done = self.run_cudabpf("summary", "--json", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["trace"]["malformed"], 0)


if __name__ == "__main__":
    hostile.harness.main()
