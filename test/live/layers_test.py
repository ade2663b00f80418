"""Two layers: collectives, and the driver's calls that they make. Each is counted in its own layer, and the driver's know
which collective they are within."""
import json
import os
import shutil
import sys

import harness
from harness import LIBRARY, NCCL

# Collectives of one communicator. The arguments are the driver's library and NCCL's, and "later" if the latter is to be
# loaded only after cuInit.
PROGRAM = """
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


class Live(harness.LiveTest):
    def traced_program(self, *flags, arguments=()):
        command = [harness.PYTHON, "-c", PROGRAM, LIBRARY, NCCL, *arguments]
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
        self.assertEqual(first["args"], {"recvbuff": "0x2000", "count": 1, "datatype": "bfloat16", "op": "sum",
                                         "comm": hex(self.collectives()[0]["outs"][0])})
        reduced = trace.named("ncclReduce")
        self.assertEqual([call["args"]["root"] for call in reduced], [0, 1, 2])
        self.assertEqual([call["args"]["op"] for call in reduced], [5, 5, 5])  # the program's own
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
        command = [sys.executable, "-c", PROGRAM, LIBRARY, copy]
        done = self.run_cudabpf("run", "-o", self.path, "--profile", "full", "--library", LIBRARY, "--", *command,
                                env={**self.environment(), "VIRTUAL_ENV": self.folder})
        self.assertEqual(done.returncode, 0, done.stderr)
        trace = self.read()
        self.check_law(trace)
        self.assertEqual(sum(call.get("library") == "nccl" for call in trace.calls), len(self.collectives()))


harness.main()
