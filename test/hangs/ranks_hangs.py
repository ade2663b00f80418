"""`--watch-hang`: ranks that hang on purpose, each in another way. Who is named, of which collective, and why; and nobody where
nothing hangs, or where it cannot be known.

The simulated NCCL does not wait for other ranks. A rank that waits is one whose cuStreamSynchronize takes seconds."""
import concurrent.futures
import glob
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "live"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "fake_nccl"))

import harness  # noqa: E402  pylint: disable=wrong-import-position
from harness import LIBRARY, NCCL  # noqa: E402  pylint: disable=wrong-import-position
from steps import PROGRAM  # noqa: E402  pylint: disable=wrong-import-position

# Starts the ranks, one of these programs each, and ends when all have ended; those that are stopped are killed.
LAUNCHER = """
import json, os, signal, subprocess, sys, time
program, *rest = sys.argv[1:4]
ranks = [subprocess.Popen([sys.executable, "-c", program, *rest, json.dumps([steps])]) for steps in json.loads(sys.argv[4])]
while any(rank.poll() is None for rank in ranks):
    time.sleep(0.05)
    left = [rank for rank in ranks if rank.poll() is None]
    if all(open(f"/proc/{rank.pid}/stat").read().rsplit(")", 1)[1].split()[0] == "T" for rank in left):
        for rank in left:
            rank.kill()
"""
LIMIT, LATE = 1.0, 7.0  # seconds: --watch-hang, and how long waiting takes
RANKS = 3
SUM, GATHER = ["ncclAllReduce", 64, 9, 0, "a"], ["ncclAllGather", 64, 9, "a"]


def ranks(*last, of=RANKS):
    """Programs of ranks that do the same, up to their last steps, before which they meet, as NCCL's ranks do when they make a communicator"""
    return [[["ncclCommInitRank", "a", 7, rank, of], SUM, SUM, ["meet", len(last)], *steps] for rank, steps in enumerate(last)]


WAITS = [SUM, ["sync"]]
GRAPH = [["capture"], SUM, GATHER, SUM, ["instantiate"], ["launch"]]
# By name: the programs, and what must be found: the kind, the ranks that are named, the number of the collective.
HANGS = {
    "late": (ranks(WAITS, [["sleep", LATE - 0.5], SUM], WAITS), "missing_enter", {1}, 3),
    "several": (ranks([["sleep", LATE]], WAITS, [["sleep", LATE]]), "missing_enter", {0, 2}, 3),
    "other_function": (ranks(WAITS, [GATHER, ["sync"]], WAITS), "mismatch", {1}, 3),
    "other_count": (ranks(WAITS, WAITS, [["ncclAllReduce", 65, 9, 0, "a"], ["sync"]]), "mismatch", {2}, 3),
    "other_root": (ranks([["ncclBroadcast", 1, 9, 0, "a"], ["sync"]], [["ncclBroadcast", 1, 9, 2, "a"], ["sync"]],
                         [["ncclBroadcast", 1, 9, 0, "a"], ["sync"]]), "mismatch", {1}, 3),
    "stopped": (ranks(WAITS, WAITS, [["stop"]]), "stopped", {2}, 3),
    "ended": (ranks(WAITS, [["exit", 3]], WAITS), "gone", {1}, 3),
    "group_without_end": (ranks(WAITS, [["ncclGroupStart"], SUM, ["sleep", LATE]], WAITS), "group_open", {1}, 3),
    "no_peer": (ranks([["ncclSend", 1, 0, 1, "a"], ["sync"]], [["sleep", LATE]], [["sleep", LATE]]), "missing_peer", {1}, 2),
    "all_entered": (ranks(WAITS, WAITS, WAITS), "all_entered", set(), 3),
    # By then each rank has called NCCL equally often, and the others have launched once more.
    "graph": (ranks([*GRAPH, ["launch"], ["sync"]], [*GRAPH, ["sleep", LATE]], [*GRAPH, ["launch"], ["sync"]]), "missing_enter", {1}, 5),
    "graph_ended": (ranks([*GRAPH, ["launch"], ["sync"]], [*GRAPH, ["exit", 3]], [*GRAPH, ["launch"], ["sync"]]), "gone", {1}, 5),
    "graph_all": (ranks(*[[*GRAPH, ["launch"], ["sync"]]] * 3), "all_entered", set(), 5),
    # One rank has the same in two graphs.
    "graph_parts": (ranks([*GRAPH, ["launch"], ["sync"]], [["capture"], SUM, GATHER, ["instantiate"], ["launch"], ["launch"],
                                                          ["capture"], SUM, ["instantiate"], ["launch"], ["launch"], ["sync"]]),
                    "all_entered", set(), 5),
    "elsewhere": (ranks(WAITS, WAITS, of=8), "all_entered", set(), 3),
    "no_collective": ([[["sync"]]], "waiting", set(), None),
}


class Live(harness.LiveTest):
    def hang(self, name, programs, *flags, fake=None, limit=LIMIT):
        """Traces these ranks, and returns what was reported: the files, and the messages."""
        path = f"{self.folder}/{name}.jsonl"
        record = f"{self.folder}/record-{name}"
        os.mkdir(record)
        os.chmod(record, 0o777)
        environment = self.environment(**({"LATENCY": f"cuStreamSynchronize={int(LATE * 1e9)}"} if fake is None else fake))
        environment.update(FAKE_CUDA_LOG=record, MEET=record)
        done = self.run_cudabpf("run", "-o", path, "--watch-hang", f"{limit:g}s", "--library", LIBRARY, "--library", NCCL, *flags, "--",
                                harness.PYTHON, "-c", LAUNCHER, PROGRAM, LIBRARY, NCCL, json.dumps(programs), env=environment)
        reports = []
        for file in sorted(glob.glob(f"{self.folder}/{name}.hang*.json")):
            with open(file, encoding="utf-8") as text:
                reports.append(json.load(text))
        return reports, done.stderr.decode()

    def check_hang(self, name):
        programs, kind, named, sequence = HANGS[name]
        reports, messages = self.hang(name, programs)
        self.assertEqual(len(reports), 1, f"{name}: {messages}")
        report, = reports
        self.assertEqual(report["kind"], kind, report)
        self.assertIn(f"hang: {report['says']}", messages)
        self.assertIn(f"written: {self.folder}/{name}.hang1.json", messages)
        self.assertGreaterEqual(report["open_s"], LIMIT)
        if sequence is None:
            self.assertEqual(report["communicators"], [])
            return
        stuck = report["communicators"][0]
        self.assertEqual({member["rank"] for member in stuck["members"] if "named" in member}, named, report)
        self.assertEqual({member["named"] for member in stuck["members"] if "named" in member}, {kind} if named else set())
        self.assertEqual(stuck["seq"], sequence)
        self.assertEqual((stuck["recorded"], stuck["ranks"]), (len(programs), programs[0][0][-1]))

    def check_one_process(self):
        """Ranks that one thread has: it waits for the first, and has forgotten the other."""
        both = [["ncclAllReduce", 64, 9, 0, name] for name in "ab"]
        reports, messages = self.hang("one_process", [[["ncclCommInitAll", ["a", "b"]], *both, *WAITS]])
        self.assertEqual([report["kind"] for report in reports], ["missing_enter"], messages)
        stuck, = reports[0]["communicators"]
        self.assertEqual([(member["rank"], member.get("named")) for member in stuck["members"]], [(0, None), (1, "missing_enter")])
        self.assertEqual((stuck["seq"], stuck["recorded"], stuck["ranks"]), (2, 2, 2))

    def check_nobody(self):
        """Ranks that are late by less than the limit, for longer than that"""
        steps = [SUM, ["sleep", 0.3], GATHER, ["sync"]] * 12
        other = [SUM, GATHER, ["sleep", 0.5], ["sync"]] * 12
        reports, messages = self.hang("clean", ranks(steps, other), fake={"LATENCY": "cuStreamSynchronize=200000000"}, limit=5)
        self.assertEqual(reports, [])
        self.assertNotIn("hang", messages)

    def check_over(self):
        """The late rank comes, and that is said."""
        programs = ranks([SUM, ["sync"], ["sleep", 2]], [["sleep", LATE - 1], SUM, ["sleep", 3]])
        reports, messages = self.hang("over", programs)
        self.assertEqual([report["kind"] for report in reports], ["missing_enter"], messages)
        self.assertIn("warning: the hang is over, after ", messages)

    def test_who_is_named(self):
        """All at once: they take seconds, and hardly any of the processor's time."""
        with concurrent.futures.ThreadPoolExecutor(len(HANGS) + 3) as pool:
            others = (self.check_nobody, self.check_over, self.check_one_process)
            for done in [*map(pool.submit, others), *(pool.submit(self.check_hang, name) for name in HANGS)]:
                done.result()

    def test_losses(self):
        """Where records were lost, nobody is named."""
        if harness.INSIDE and not harness.MERGED:
            self.skipTest("a thread's ring of its own holds these calls")
        storm = ["repeat", 20000, ["ncclGroupStart"], ["ncclGroupEnd"]]
        programs = ranks([storm, ["sleep", 2], *WAITS], [storm, ["sleep", LATE]])
        reports, messages = self.hang("losses", programs, "--ring-size", "8K", "--profile", "full")
        self.assertEqual([report["kind"] for report in reports], ["unknown"], messages)
        self.assertGreater(reports[0]["records_lost"], 0)
        self.assertEqual([member for stuck in reports[0]["communicators"] for member in stuck["members"] if "named" in member], [])


harness.main()
