"""Programs that are killed at any moment, by each way of recording: what they called until then is in the trace."""
import contextlib
import glob
import os
import random
import signal
import time

import hostile
from hostile import LIBRARY, WORKLOADS, wait_for

KILLS = int(os.environ.get("ATTACK_KILLS", "40"))  # by each way
STORM = [f"{WORKLOADS}/fake_storm", "--library", LIBRARY, "--count", "200000"]
UNDER_WAY = 1  # calls that a thread may have begun that only one side has counted


class Killed:
    """A program that was killed, and what was recorded of it."""

    def __init__(self, folder, number):
        self.folder = f"{folder}/{number}"
        self.records, self.path = f"{self.folder}/records", f"{self.folder}/trace.jsonl"
        os.makedirs(self.records)

    def pid(self):
        """The program's record, once it calls."""
        for path in glob.glob(f"{self.records}/counts.*.tsv"):
            return int(path.rsplit("/", 1)[1].split(".")[1])
        return None


class Live(hostile.Attack):
    def kill_many(self, begin, inside):
        """`begin` starts a program that is recorded, and returns what is to be waited for."""
        seed = int(os.environ.get("ATTACK_SEED", time.time()))
        print(f"seed {seed}")
        chosen = random.Random(seed)
        made = missing = 0
        for number in range(KILLS):
            killed = Killed(self.folder, number)
            started = begin(killed, [*STORM, "--rate", chosen.choice(("20000", "300000", "0"))])
            pid = wait_for(killed.pid, "a program that calls")
            time.sleep(chosen.choice((chosen.uniform(0, 0.03), chosen.uniform(0, 0.3))))
            with contextlib.suppress(ProcessLookupError):  # it has made all its calls
                os.kill(pid, signal.SIGKILL)
            started.wait()
            with self.subTest(number=number, seed=seed):
                called, lacking = self.check_killed(killed, inside)
                made, missing = made + called, missing + lacking
        wait_for(lambda: not list(self.each_reader()), "rid of every reader")
        print(f"{KILLS} kills, {made:,} calls, {missing} under way")

    def check_killed(self, killed, inside):
        """The books hold, and no call is missing but the one that was under way; how many calls there were, and are missing."""
        def whole():
            if not os.path.exists(killed.path):
                return False
            with open(killed.path, encoding="utf-8") as file:
                return '\n{"type":"end",' in file.read()
        records = hostile.harness.records(killed.records, inside)
        self.assertEqual(len(records), 1)
        (pid, record), = records.items()
        made = sum(record.counts.values())
        if not made:
            return 0, 0  # by variables alone, there is no trace before a library comes in
        wait_for(whole, "at the trace's end")
        trace = self.read(killed.path)
        self.check_accounts(trace)
        reported = sum(1 for call in trace.calls if call["pid"] == pid and not call.get("entry_lost"))
        missing = made - reported - trace.end["losses"].get("ring_full_entry", 0)
        # Whether those at the moment in which the jumps were written were recorded is not known.
        doubtful = sum(record.doubtful.values()) if inside else 0
        self.assertTrue(-UNDER_WAY - doubtful <= missing <= UNDER_WAY, f"{missing} of {made} calls are missing; {trace.end['losses']}")
        ends = [process for process in trace.processes if process["pid"] == pid and process["op"] == "exit"]
        self.assertLessEqual({process.get("signal") for process in ends}, {signal.SIGKILL, None})
        return made, max(0, missing)

    def each_reader(self):
        """The pids of what reads the records of programs that record themselves."""
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                with open(path, "rb") as file:
                    words = file.read().split(b"\0")
                with open(path.replace("cmdline", "environ"), "rb") as file:
                    ours = self.folder.encode() in file.read()
            except OSError:
                continue
            if ours and words[1:2] == [b"inside-reader"]:
                yield int(path.split("/")[2])

    # --- the ways

    def run_it(self, killed, command, *flags):
        return self.start([hostile.harness.CUDABPF, "run", *flags, "-q", "--profile", "full", "-o", killed.path, "--", *command],
                          env=self.environment(LOG=None, COUNTS=killed.records))

    def test_by_bpf(self):
        self.kill_many(lambda killed, command: self.run_it(killed, command, "--library", LIBRARY), False)

    def test_inside(self):
        self.kill_many(lambda killed, command: self.run_it(killed, command, "--inside"), True)

    def test_alone(self):
        """A program that records itself, by variables alone."""
        def begin(killed, command):
            env = self.environment(LOG=None, COUNTS=killed.records)
            env.update({"CUDA_INJECTION64_PATH": hostile.harness.INSIDE_LIBRARY, "CUDABPF_OUTPUT": killed.path,
                        "CUDABPF_OPTIONS": "--profile full"})
            return self.start(command, env=env)
        self.kill_many(begin, True)


if __name__ == "__main__":
    hostile.harness.main()
