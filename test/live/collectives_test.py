"""Calls of NCCL, by the simulated NCCL's own log. Two layers: each call is counted in its own, and the driver's know which
collective they are within. And communicators: what each is, and the how-manieth of its operations each collective is."""
import collections
import glob
import json
import os
import shutil
import subprocess
import sys

import harness
from harness import LIBRARY, NCCL, NCCL_UNOPTIMIZED

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fake_nccl"))
from steps import PROGRAM, Truth  # noqa: E402  pylint: disable=wrong-import-position

# Collectives of one communicator. The arguments are the driver's library and NCCL's, and "later" if the latter is to be
# loaded only after cuInit.
LAYERS = """
import ctypes, sys
cuda = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
later = sys.argv[3:] == ["later"]
nccl = None if later else ctypes.CDLL(sys.argv[2])
class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]
word, half = ctypes.c_uint64, ctypes.c_int
context = word()
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
nccl = nccl or ctypes.CDLL(sys.argv[2])
comm = word()
nccl.ncclCommInitRank(ctypes.byref(comm), half(2), Id(b"x" * 127), half(1))
for count in range(1, 6):
    nccl.ncclAllReduce(word(0x1000), word(0x2000), word(count), half(9), half(0), comm, word(0))
nccl.ncclGroupStart()
for root in range(3):
    nccl.ncclReduce(word(0x1000), word(0x2000), word(7), half(7), half(5), half(root), comm, word(0))
nccl.ncclGroupEnd()
nccl.ncclBcast(word(0x3000), word(10), half(0), half(1), comm, word(0))
nccl.ncclSend(word(0x4000), word(1), half(2), half(-1), comm, word(0))
nccl.ncclCommFinalize(comm)
nccl.ncclCommDestroy(comm)
cuda.cuCtxSynchronize()
"""
EVERY_COLLECTIVE = [
    ["ncclCommInitRank", "a", 1, 1, 4], ["ncclAllReduce", 5, 9, 0, "a"], ["ncclAllGather", 6, 7, "a"], ["ncclReduceScatter", 7, 6, 4, "a"],
    ["ncclBroadcast", 8, 0, 3, "a"], ["ncclBcast", 9, 1, 2, "a"], ["ncclReduce", 10, 8, 2, 1, "a"], ["ncclAlltoAll", 11, 2, "a"],
    ["ncclGather", 12, 3, 1, "a"], ["ncclScatter", 13, 4, 0, "a"], ["ncclSend", 14, 5, 2, "a"], ["ncclRecv", 15, 10, 0, "a"],
    ["ncclAllReduce", 1 << 34, 11, 7, "a"], ["ncclAllReduceConfig", 0, 9, 0, "a"], ["ncclSend", 1, 0, 2, "a"],
    ["ncclCommFinalize", "a"], ["ncclCommDestroy", "a"]]


class Live(harness.LiveTest):
    def logs(self):
        """By process: what the simulated NCCL wrote down"""
        found = {}
        for path in glob.glob(f"{self.record_folder}/nccl.*.jsonl"):
            with open(path, encoding="utf-8") as file:
                found[int(path.split(".")[-2])] = [json.loads(line) for line in file]
        return found

    def traced_steps(self, *threads, flags=(), libraries=(NCCL,), law=True, fake=None):
        command = [harness.PYTHON, "-c", PROGRAM, LIBRARY, ",".join(libraries), json.dumps(threads)]
        given = [word for library in libraries for word in ("--library", library)]
        trace = self.traced(command, "--library", LIBRARY, *given, *flags, fake=fake)
        if law:
            self.check_law(trace)
        return trace

    def check_equal(self, trace, identities=None):
        """Every collective's line says what NCCL was given, and each communicator has one identity in all processes."""
        identities = {} if identities is None else identities
        made = {}
        for line in trace.lines:
            if line.get("op") == "comm":
                made[line["communicator"]] = line
        for pid, log in self.logs().items():
            truth = Truth(log)
            lines = sorted((call for call in trace.calls if call["pid"] == pid and call["type"] == "collective" and "parent" not in call),
                           key=lambda call: call["ts"])
            self.assertEqual(len(lines), len(truth.lines))
            groups = {}
            for line, true in zip(lines, truth.lines):
                identity, group = true.pop("identity", None), true.pop("call_group")
                found = {key: line.get(key) for key in (*true, "seq")}
                self.assertEqual(found, {"seq": None, **true}, line)
                self.assertEqual(groups.setdefault(group, line.get("call_group")), line.get("call_group"))
                if identity:
                    comm = made[line["communicator"]]
                    self.assertEqual(comm["pid"], pid)
                    known = identities.setdefault(json.dumps(identity), comm["identity"])
                    self.assertEqual(comm["identity"], known, identity)
            self.assertEqual(len(set(groups.values())), len(groups))
        self.assertEqual(len(set(identities.values())), len(identities))
        return made

    def test_every_collective(self):
        trace = self.traced_steps(EVERY_COLLECTIVE)
        self.check_equal(trace)
        inner = [call for call in trace.named("ncclBroadcast") if "parent" in call]
        self.assertEqual(len(inner), 1)
        self.assertEqual({"communicator", "rank", "seq"} & set(inner[0]), set())

    def test_unoptimized(self):
        """Functions that begin otherwise."""
        trace = self.traced_steps(EVERY_COLLECTIVE, libraries=(NCCL_UNOPTIMIZED,))
        self.check_equal(trace)

    def test_communicators(self):
        """However they are made; and the handle of one that has gone is another's."""
        trace = self.traced_steps([
            ["ncclCommInitRankConfig", "a", 1, 3, 8], ["ncclCommInitRankScalable", "b", 5, 0, 2], ["ncclAllReduce", 1, 9, 0, "a"],
            ["ncclAllReduce", 2, 9, 0, "b"], ["ncclCommSplit", "c", "a", 4, 1], ["ncclCommSplit", "d", "a", -1, 0],
            ["ncclCommSplit", "e", "a", 4, 1], ["ncclAllReduce", 3, 9, 0, "c"], ["ncclAllReduce", 4, 9, 0, "e"],
            ["ncclCommUserRank", "c"], ["ncclCommCount", "c"], ["ncclAllReduce", 5, 9, 0, "c"], ["ncclCommShrink", "f", "a", 2, 5],
            ["ncclAllReduce", 6, 9, 0, "f"], ["ncclCommAbort", "b"], ["ncclCommInitRank", "g", 9, 1, 2],
            ["ncclAllReduce", 7, 9, 0, "g"], ["ncclCommDestroy", "g"], ["ncclCommDestroy", "a"]])
        made = self.check_equal(trace)
        self.assertEqual(len(made), 6)
        handles = [call["args"].get("comm") for call in trace.named("ncclCommInitRankScalable") + trace.named("ncclCommInitRank")]
        split = [line for line in made.values() if "color" in line]
        self.assertEqual([(line["from"], line["ordinal"], line["color"], line["key"]) for line in split], [(1, 1, 4, 1), (1, 3, 4, 1)])
        self.assertEqual((split[0]["rank"], split[0]["ranks"]), (1, 0))  # as the simulated NCCL says when it is asked
        self.assertNotIn("rank", split[1])
        self.assertEqual(len(handles), 2)

    def test_init_all(self):
        """One call makes the communicators of all ranks, which are one thread's: in groups, and one after the other."""
        first, second = [["device", 3], ["ncclAllReduce", 8, 9, 0, "a"]], [["device", 1], ["ncclAllReduce", 8, 9, 0, "b"]]
        both = [["ncclGroupStart"], *first, *second, ["ncclGroupEnd"]]
        trace = self.traced_steps([
            ["ncclCommInitAll", ["a", "b"], 3, 1], *both, *first, *second, ["repeat", 40, *both],
            ["ncclCommSplit", "c", "b", 0, 0], ["ncclAllReduce", 5, 9, 0, "c"], ["ncclCommDestroy", "a"], ["ncclCommDestroy", "b"],
            ["ncclCommInitAll", ["a", "b", "silent"]], *both, ["fork", [["ncclCommInitAll", ["a", "b"]], *both]], *both],
            fake={"DEVICES": 4})
        made = self.check_equal(trace)
        by_call = [[line for line in made.values() if line["made_by"] == call["id"]]
                   for call in sorted(trace.named("ncclCommInitAll"), key=lambda call: call["ts"])]
        self.assertEqual([[(line["rank"], line["ranks"], line["device"]) for line in lines] for lines in by_call],
                         [[(0, 2, 3), (1, 2, 1)], [(0, 3, 0), (1, 3, 1), (2, 3, 2)], [(0, 2, 0), (1, 2, 1)]])
        identities = [{line["identity"] for line in lines} for lines in by_call]
        self.assertEqual([len(one) for one in identities], [1, 1, 1])
        self.assertEqual(len(set.union(*identities)), 3)
        self.assertEqual([line for line in trace.lines if line.get("late")], [])
        known = {one["identity"]: one for one in self.answer("ranks")["communicators"]}[identities[0].pop()]
        self.assertEqual([(rank["rank"], rank["pid"], rank["entered"]) for rank in known["recorded"]],
                         [(rank, by_call[0][0]["pid"], 42) for rank in range(2)])

    def test_init_all_of_many(self):
        """Those that the record has no room for are as those that were there before."""
        names = [f"rank {number}" for number in range(40)]
        trace = self.traced_steps([["ncclCommInitAll", names], *(["ncclAllReduce", 8, 9, 0, name] for name in names)])
        lines = [line for line in trace.lines if line.get("op") == "comm"]
        self.assertEqual([(line.get("rank"), line.get("ranks"), line.get("late", False)) for line in lines],
                         [*((rank, 40, False) for rank in range(32)), *[(None, None, True)] * 8])

    def test_ranks(self):
        """Eight processes, each a rank of one communicator and of a part of it."""
        steps = [[["ncclCommInitRank", "a", 1, rank, 8], ["ncclCommSplit", "b", "a", rank % 2, rank], ["ncclAllReduce", 4, 9, 0, "a"],
                  ["ncclAllGather", 4, 9, "b"], ["ncclCommDestroy", "b"], ["ncclCommDestroy", "a"]] for rank in range(8)]
        script = "\n".join(["import subprocess, sys, json", "rest = sys.argv[1:]",
                            "ranks = [subprocess.Popen([sys.executable, '-c', *rest[:3], json.dumps([steps])]) for steps in json.loads(rest[3])]",
                            "sys.exit(max(rank.wait() for rank in ranks))"])
        command = [harness.PYTHON, "-c", script, PROGRAM, LIBRARY, NCCL, json.dumps(steps)]
        trace = self.traced(command, "--library", LIBRARY, "--library", NCCL)
        self.check_law(trace)
        self.assertEqual(len(self.logs()), 8)
        made = self.check_equal(trace)
        by_identity = collections.defaultdict(list)
        for line in made.values():
            by_identity[line["identity"]].append(line)
        self.assertEqual(sorted(map(len, by_identity.values())), [4, 4, 8])
        whole, = (lines for lines in by_identity.values() if len(lines) == 8)
        self.assertEqual(sorted(line["rank"] for line in whole), list(range(8)))

    def test_groups(self):
        trace = self.traced_steps([
            ["ncclCommInitRank", "a", 1, 0, 2], ["ncclGroupStart"], ["ncclSend", 1, 0, 1, "a"], ["ncclRecv", 1, 0, 1, "a"], ["ncclGroupStart"],
            ["ncclAllReduce", 1, 9, 0, "a"], ["ncclGroupEnd"], ["ncclAllReduce", 2, 9, 0, "a"], ["ncclGroupEnd"],
            ["ncclAllReduce", 3, 9, 0, "a"], ["ncclGroupEnd"], ["ncclGroupStart"], ["ncclGroupEnd"], ["ncclGroupStart"],
            ["ncclAllReduce", 4, 9, 0, "a"], ["ncclGroupEnd"]])
        self.check_equal(trace)
        ends = trace.named("ncclGroupEnd")
        self.assertEqual([end.get("call_group") for end in ends], [1, 1, None, 2, 3])
        launch, = (call for call in trace.named("cuLaunchKernel") if call["within"] == ends[1]["id"])
        self.assertGreater(launch["ts"], ends[1]["ts"])

    def test_failures(self):
        """What failed takes no part, and what is no communicator becomes none."""
        trace = self.traced_steps([
            ["ncclCommInitRank", "a", 1, 0, 2], ["ncclAllReduce", 1, 9, 0, "a"], ["ncclSend", 1, 0, -1, "a"], ["ncclSend", 1, 0, 1, "a"],
            ["ncclAllReduce", 2, 9, 0, "a"], ["ncclCommFinalize", "a"], ["ncclAllReduce", 3, 9, 0, "a"], ["ncclCommDestroy", "a"]])
        made = self.check_equal(trace)
        self.assertEqual(len(made), 1)
        self.assertEqual([call["ret"] for call in trace.named("ncclSend")], [4, 0])

    def test_captured(self):
        """Recorded where it is captured, and named by the graph that does it at each launch."""
        trace = self.traced_steps([
            ["ncclCommInitRank", "a", 1, 0, 2], ["ncclAllReduce", 1, 9, 0, "a"], ["capture"], ["ncclAllReduce", 2, 9, 0, "a"],
            ["ncclGroupStart"], ["ncclAllGather", 3, 9, "a"], ["ncclGroupEnd"], ["instantiate"], ["launch"], ["launch"],
            ["ncclAllReduce", 4, 9, 0, "a"]])
        self.check_equal(trace)
        captured = [call for call in trace.calls if call["type"] == "collective" and call.get("captured")]
        self.assertEqual([(call["op"], call["seq"]) for call in captured], [("all_reduce", 2), ("all_gather", 3)])
        content, = (line for line in trace.lines if line["type"] == "graph" and line["op"] == "content")
        self.assertEqual(content["collectives"], [call["id"] for call in captured])
        self.assertEqual([call["graph"] for call in trace.named("cuGraphLaunch")], [content["graph"]] * 2)

    def test_several_libraries(self):
        """A process may have loaded two copies, each with communicators of its own."""
        copy = f"{self.folder}/libnccl.so.2"
        subprocess.run(["cp", NCCL, copy], check=True)
        steps = [["ncclCommInitRank", "a", 1, 0, 2], ["ncclAllReduce", 1, 9, 0, "a"]]
        trace = self.traced_steps(steps, [["ncclCommInitRank", "b", 2, 1, 2], ["ncclAllReduce", 2, 9, 0, "b"], ["ncclCommDestroy", "b"]],
                                  libraries=(NCCL, copy), law=not harness.INSIDE)
        made = [line for line in trace.lines if line.get("op") == "comm"]
        self.assertEqual(sorted(line["rank"] for line in made), [0, 1])
        self.assertEqual(len({line["identity"] for line in made}), 2)

    def test_forked(self):
        """A child has communicators of its own."""
        trace = self.traced_steps([
            ["ncclCommInitRank", "a", 1, 0, 2], ["ncclAllReduce", 1, 9, 0, "a"],
            ["fork", [["ncclCommInitRank", "b", 2, 1, 2], ["ncclAllReduce", 2, 9, 0, "b"]]], ["ncclAllReduce", 3, 9, 0, "a"]])
        self.check_equal(trace)
        self.assertEqual(len(self.logs()), 2)

    def test_only(self):
        """Where the calls are left out that make communicators, they are as those that were there before."""
        trace = self.traced_steps([["ncclCommInitRank", "a", 1, 1, 2], ["ncclAllReduce", 1, 9, 0, "a"], ["ncclAllReduce", 2, 9, 0, "a"]],
                                  flags=("--only", "ncclAllReduce"))
        made, = (line for line in trace.lines if line.get("op") == "comm")
        self.assertEqual((made["late"], made.get("rank"), made.get("identity")), (True, None, None))
        self.assertEqual([call["seq"] for call in trace.calls], [1, 2])

    def test_attached_late(self):
        """What was there before is said to be, and known as far as the program asks."""
        steps = [["ncclCommInitRank", "a", 1, 1, 2], ["ncclAllReduce", 1, 9, 0, "a"], ["wait"], ["ncclAllReduce", 2, 9, 0, "a"],
                 ["ncclCommUserRank", "a"], ["ncclCommCount", "a"], ["ncclAllReduce", 3, 9, 0, "a"]]
        command = [harness.PYTHON, "-c", PROGRAM, LIBRARY, NCCL, json.dumps([steps])]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **self.environment()}) as program:
            self.assertEqual(program.stdout.readline(), b"ready\n")
            tracer = self.start_cudabpf("attach", "-o", self.path, "--pid", str(program.pid), "--profile", "full", "--library", LIBRARY, "--library", NCCL)
            program.stdin.write(b"\n")
            program.stdin.flush()
            self.assertEqual(program.wait(), 0)
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        trace = self.read()
        lines = [line for line in trace.lines if line.get("op") == "comm"]
        self.assertEqual([(line["late"], line.get("rank"), line.get("ranks")) for line in lines],
                         [(True, None, None), (True, 1, None), (True, 1, 2)])
        self.assertEqual([(call["seq"], call.get("rank")) for call in trace.named("ncclAllReduce")], [(1, None), (2, 1)])

    def test_rotated(self):
        """Each file says what its communicators are."""
        steps = [["ncclCommInitRank", "a", 1, 1, 2], *([["ncclAllReduce", 1, 9, 0, "a"]] * 300)]
        done = self.run_cudabpf("run", "-o", self.path, "--rotate-size", "32K", "--library", LIBRARY, "--library", NCCL, "--",
                                harness.PYTHON, "-c", PROGRAM, LIBRARY, NCCL, json.dumps([steps]))
        self.assertEqual(done.returncode, 0, done.stderr)
        files = glob.glob(f"{self.path.removesuffix('.jsonl')}.*.jsonl")
        self.assertGreater(len(files), 1)
        for path in files:
            trace = self.read(path, whole=False)
            named = {call["communicator"] for call in trace.calls if "communicator" in call}
            self.assertEqual(named, {line["communicator"] for line in trace.lines if line.get("op") == "comm"}, path)

    # --- layers

    def traced_program(self, *flags, arguments=()):
        command = [harness.PYTHON, "-c", LAYERS, LIBRARY, NCCL, *arguments]
        trace = self.traced(command, "--library", LIBRARY, "--library", NCCL, *flags)
        if harness.INSIDE and arguments:
            self.check_accounts(trace)
        else:
            self.check_law(trace)
        return trace

    def collectives(self):
        """What the simulated NCCL wrote down, in the order in which calls began."""
        names = [name for name in os.listdir(self.record_folder) if name.startswith("nccl.")]
        with open(f"{self.record_folder}/{names[0]}", encoding="utf-8") as file:
            return sorted(map(json.loads, file), key=lambda call: call["begin_ns"])

    def answer(self, *command):
        done = self.run_cudabpf(*command, self.path, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def check_driver(self, calls):
        counts = self.record().counts
        self.assertEqual(sum(counts.values()), len(calls))
        self.assertEqual({call["name"] for call in calls if "layer" in call or "library" in call}, set())

    def test_nested(self):
        trace = self.traced_program()
        collectives = sorted((call for call in trace.calls if call.get("library") == "nccl"), key=lambda call: call["id"])
        driver = [call for call in trace.calls if call not in collectives]
        self.check_driver(driver)
        truth = self.collectives()
        self.assertEqual([call["name"] for call in collectives], [call["symbol"] for call in truth])
        self.assertEqual([call["ret"] for call in collectives], [call["ret"] for call in truth])
        self.assertEqual({call["layer"] for call in collectives}, {1})
        for call, true in zip(collectives, truth):
            self.assertEqual("parent" in call, true["nested"] > 0, call)
            self.assertLessEqual(call["duration_us"] * 1000 - (true["end_ns"] - true["begin_ns"]), 50_000_000)
            self.assertNotIn("within", call)
        # The driver's calls: whatever was made during a collective is within it, and no call's part in the driver.
        for call in driver:
            around = [one for one in collectives if one["ts"] <= call["ts"] and
                      call["ts"] + call["duration_us"] * 1000 <= one["ts"] + one["duration_us"] * 1000]
            innermost = max(around, key=lambda one: one["id"], default={})
            self.assertEqual(call.get("within"), innermost.get("id"), call)
            self.assertNotIn("parent", call)
        launches = [call for call in driver if call["name"] == "cuLaunchKernel"]
        self.assertEqual(len(launches), 5 + 1 + 1)
        self.assertEqual([call["name"] for call in launches if "within" not in call], [])

    def test_loaded_later(self):
        """From inside, a library that is loaded after cuInit is found at its first calls of the driver, and the trace says
        that calls may be missing."""
        trace = self.traced_program(arguments=["later"])
        names = [call["name"] for call in trace.calls if call.get("library") == "nccl"]
        true = [call["symbol"] for call in self.collectives()]
        if not harness.INSIDE:
            self.assertEqual(sorted(names), sorted(true))
            return
        self.assertEqual(true[0], "ncclCommInitRank")
        self.assertEqual(sorted(names), sorted(true[1:]))
        self.assertEqual(set(trace.end["losses"]), {"late_library"})

    def test_arguments(self):
        trace = self.traced_program()
        first, *_ = trace.named("ncclAllReduce")
        self.assertEqual((first["type"], first["op"], first["size"], first["stream"], first["ret"]),
                         ("collective", "all_reduce", 2, "0x0", 0))
        self.assertEqual((first["count"], first["datatype"], first["reduction"]), (1, "bfloat16", "sum"))
        self.assertEqual(first["args"], {"recvbuff": "0x2000", "comm": hex(self.collectives()[0]["outs"][0])})
        reduced = trace.named("ncclReduce")
        self.assertEqual([call["root"] for call in reduced], [0, 1, 2])
        self.assertEqual([call["reduction"] for call in reduced], [5, 5, 5])  # the program's own
        self.assertEqual(reduced[0]["size"], 28)
        made, = trace.named("ncclCommInitRank")
        self.assertEqual(made["args"], {"comm": hex(self.collectives()[0]["outs"][0]), "nranks": 2, "rank": 1})
        sent, = trace.named("ncclSend")
        self.assertEqual((sent["ret"], sent["error"]), (4, "ncclInvalidArgument"))
        finalized, = trace.named("ncclCommFinalize")
        self.assertEqual((finalized["ret"], finalized["error"]), (7, "ncclInProgress"))
        self.assertEqual({one.get("library") for one in trace.header["libraries"] + trace.libraries}, {"cuda", "nccl"})

    def test_answers(self):
        """Work is counted once in each layer: what a collective launches is launched, and in-progress is no failure."""
        self.traced_program()
        self.assertEqual(self.answer("kernels")["launches"]["count"], 7)
        self.assertEqual(self.answer("kernels")["launches"]["nested"], 0)
        self.assertEqual(self.answer("errors")["failed_calls"], 1)
        device = self.answer("memory")["memory"]["all"]["kinds"]["device"]
        self.assertEqual((device["allocations"], device["held"]), (1, 0))
        self.assertEqual(self.answer("summary")["summary"]["launches"], 7)

    def test_chosen(self):
        """--libraries leaves out the others."""
        trace = self.traced_program("--libraries", "cuda")
        self.check_driver(trace.calls)
        self.assertEqual([call["name"] for call in trace.calls if "within" in call], [])
        shutil.rmtree(self.record_folder)
        os.mkdir(self.record_folder)
        trace = self.traced_program("--libraries", "nccl")
        self.assertEqual({call.get("library") for call in trace.calls}, {"nccl"})
        self.assertEqual(len(trace.calls), len(self.collectives()))
        done = self.run_cudabpf("run", "--libraries", "ncll", "--", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"did you mean nccl?", done.stderr)

    def test_found_ahead(self):
        """Among the packages of the Python that runs, it is probed before the program loads it."""
        python = os.path.basename(os.path.realpath(sys.executable))
        place = f"{self.folder}/lib/{python}/site-packages/nvidia/nccl/lib"
        os.makedirs(place)
        copy = shutil.copy(NCCL, place)
        command = [sys.executable, "-c", LAYERS, LIBRARY, copy]
        done = self.run_cudabpf("run", "-o", self.path, "--profile", "full", "--library", LIBRARY, "--", *command,
                                env={**self.environment(), "VIRTUAL_ENV": self.folder})
        self.assertEqual(done.returncode, 0, done.stderr)
        trace = self.read()
        self.check_law(trace)
        self.assertEqual(sum(call.get("library") == "nccl" for call in trace.calls), len(self.collectives()))


harness.main()
