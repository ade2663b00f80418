"""`run --capture`: an iteration is captured whole, and the program does not notice.

What is in a capture is compared with the simulated driver's own log, and what its replay leaves with what the program left.
"""
import collections
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys

TEST = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(TEST / "live"))
# pylint: disable=wrong-import-position
import harness  # noqa: E402
import insiders  # noqa: E402
from harness import AS_USER, CUDABPF, LIBRARY, PYTHON, Program, wait_for  # noqa: E402

PROGRAM = [TEST / "workloads/computing.py", TEST / "fake_libcuda/compute/images.py"]
ITERATION = ["fill"] * 3 + ["sum_rows", "add", "scale_by_variable", "add", "fill_packed", "count_runs", "add"]
ACTIONS = {"launch": len(ITERATION), "copy": 3, "set": 1, "record": 1, "wait": 1, "sync": 1}
# Calls from a second thread, as fast as it can, until the first has ended.
BESIDE = """
import threading
import computing
def call():
    while True:
        gpu.cuda.cuCtxSynchronize()
gpu = None
made = computing.Gpu.__init__
def begin(self, library):
    global gpu
    made(self, library)
    gpu = self
    threading.Thread(target=call, daemon=True).start()
computing.Gpu.__init__ = begin
computing.main()
"""
# A program with a copy of NVTX, which loads its tool before the program calls cuInit.
NAMED = """
import ctypes, os
import computing
Functions = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
class Callbacks(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("functions", Functions)]
callbacks = Callbacks(ctypes.sizeof(Callbacks), Functions(lambda module, places, count: 0))
table = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)(lambda which: ctypes.addressof(callbacks))
if tool := os.environ.get("NVTX_INJECTION64_PATH"):
    assert ctypes.CDLL(tool).InitializeInjectionNvtx2(table)
computing.main()
# Gigabytes of cudabpf's beside libcuda would leave no room within reach of its functions' jumps.
with open("/proc/self/maps") as file:
    maps = [(int(line.split("-")[0], 16), int(line.split("-")[1].split()[0], 16), line) for line in file]
driver = [(begin, end) for begin, end, line in maps if "libcuda.so" in line]
for begin, end, line in maps:
    if "memfd:cudabpf" in line and end - begin > 1 << 30:
        assert end < driver[0][0] - (8 << 30) or begin > driver[-1][1] + (8 << 30), line
"""
NEVER_TWICE = "setup; module m; function f m k; function g m l; launch f 1 1 1 1 1 1 0 0; launch g 1 1 1 1 1 1 0 0"


class Live(insiders.InsideTest):
    def setUp(self):
        super().setUp()
        for file in PROGRAM:
            shutil.copy(file, self.folder)
        self.capture = f"{self.folder}/capture"

    def command(self, *arguments):
        return [PYTHON, "-B", f"{self.folder}/computing.py", LIBRARY, *arguments]

    def computing(self, **more):
        return self.environment(COMPUTE=1, **more)

    def captured(self, *flags, command=None, status=0, **environment):
        """Captures; returns what cudabpf said, and checks that the program did the same as without it."""
        command = command or self.command()
        plain = self.untraced(command, env=self.computing(COUNTS=None, LOG=None))
        done = self.run_cudabpf("run", "--capture", self.capture, "-o", self.path, *flags, "--", *command,
                                env=self.computing() | environment)
        self.assertEqual((done.returncode, done.stdout.decode()), (status, plain.stdout.decode()), done.stderr)
        return done.stderr.decode()

    def manifest(self):
        return json.loads(pathlib.Path(self.capture, "manifest.json").read_text(encoding="utf-8"))

    def tape(self):
        return [json.loads(line) for line in pathlib.Path(self.capture, "tape.jsonl").read_text(encoding="utf-8").splitlines()]

    def replay(self, *arguments, folder=None):
        done = self.run_cudabpf("replay", folder or self.capture, "--json", "--runs", "2", *arguments,
                                env=self.computing(COUNTS=None, LOG=None) | {"LD_LIBRARY_PATH": os.path.dirname(LIBRARY)})
        self.assertEqual(done.returncode, 0, (done.stdout, done.stderr))
        return json.loads(done.stdout)

    def check_whole_iteration(self, number=None):
        manifest, tape = self.manifest(), self.tape()
        self.assertEqual(manifest["refused"], [])
        self.assertEqual(collections.Counter(operation["op"] for operation in tape), collections.Counter(ACTIONS))
        names = [kernel["name"] for kernel in manifest["kernels"]]
        self.assertEqual([names[operation["launch"]["kernel"]] for operation in tape if operation["op"] == "launch"], ITERATION)
        if number:
            self.assertEqual(manifest["iteration"]["number"], number)
        self.check_calls_of(tape)
        return manifest, tape

    def check_calls_of(self, tape):
        """The tape has the very calls that the driver got between its first and its last, by their ids in the trace."""
        trace = self.read()
        self.check_accounts(trace)
        self.check_law(trace)
        # cudabpf has asked the driver, too, but never for these.
        counts = self.record().counts
        for name in ("cuLaunchKernel", "cuMemcpyHtoD_v2", "cuMemcpyDtoD_v2", "cuMemsetD32_v2", "cuModuleLoadData", "cuStreamSynchronize"):
            self.assertEqual(sum(harness.symbol_of(call) == name for call in trace.calls), counts[name], name)
        by_id = {call["id"]: call for call in trace.calls}
        calls = [by_id[operation["call"]] for operation in tape]
        self.assertEqual([call["name"] for call in calls if call["type"] == "kernel"], ["cuLaunchKernel"] * len(ITERATION))
        ids = {call["id"] for call in calls}
        between = {call["id"] for call in trace.calls if min(ids) <= call["id"] <= max(ids) and "layer" not in call}
        self.assertEqual(ids, between)

    def test_times(self):
        """The trace's GPU times are those of the tape's launches, which a replay is compared with."""
        self.captured("--gpu", CUDABPF_CUPTI=f"{harness.BUILD}/test/fake_cupti/libcupti.so.13")
        answer = self.replay("--compare", self.path)
        ran = {work["call"]: work for work in self.read().of("gpu") if work["op"] in ("kernel", "copy", "set") and "call" in work}
        taken = [ran[operation["call"]]["duration_us"] for operation in self.tape() if operation["op"] in ("launch", "copy", "set")]
        self.assertEqual(answer["actual"]["operations"], len(taken))
        self.assertAlmostEqual(answer["actual"]["gpu_sum_us"], sum(taken), places=2)
        counts, measured = collections.Counter(), collections.Counter()
        for one in answer["launches"]:
            counts[one["kernel"]] += one["count"]
            measured[one["kernel"]] += one["measured"]
        self.assertEqual((counts, measured), (collections.Counter(ITERATION),) * 2)
        self.assertEqual(sum(tier["operations"] for tier in answer["tier_breakdown"]), len(taken))

    def test_first_steady(self):
        said = self.captured()
        self.assertRegex(said, r"iteration \d+ is in ")
        manifest, tape = self.check_whole_iteration()
        self.assertEqual(os.stat(self.capture).st_mode & 0o777, 0o700)
        self.assertEqual([variable["name"] for variable in manifest["modules"][0]["variables"]], ["factor", "runs"])
        runs = manifest["modules"][0]["variables"][1]
        data = pathlib.Path(self.capture, "data").read_bytes()
        before, after = (int.from_bytes(data[part["offset"]:part["offset"] + 4], "little") for part in (runs["before"], runs["after"]))
        self.assertEqual(after, before + 1)
        self.assertEqual(before, 7 + manifest["iteration"]["number"] - 1)
        comparison = self.replay("--full")["comparison"]
        self.assertEqual([comparison[what]["different"] for what in ("memory", "copies_to_host", "variables")], [0, 0, 0], comparison)
        self.assertGreater(comparison["memory"]["equal"], 2 << 20)
        packed = [operation for operation in tape if operation["op"] == "launch"][7]["launch"]["parameters"]
        self.assertEqual(packed["size"], 13)

    def test_named_before_init(self):
        """A process that gets its rings before its cuInit is captured, too."""
        named = f"{self.folder}/named.py"
        pathlib.Path(named).write_text(NAMED, encoding="utf-8")
        self.captured("--at", "12", command=[PYTHON, "-B", named, LIBRARY])
        self.check_whole_iteration(12)

    def test_by_number(self):
        self.captured("--at", "12")
        self.check_whole_iteration(12)

    def test_by_time(self):
        self.captured("--at", "1ms")
        self.check_whole_iteration()

    def test_graph(self):
        """Its nodes are on the tape, with what the program gave one of them last."""
        self.captured(command=self.command("--with", "graph"))
        manifest, tape = self.manifest(), self.tape()
        self.assertEqual((manifest["refused"], manifest["graphs"]), ([], 1))
        launched, = (operation for operation in tape if operation["op"] == "graph")
        kinds = [next(iter(node)) for node in launched["nodes"]]
        self.assertEqual((kinds[0], sorted(kinds[1:3]), kinds[3]), ("launch", ["copy", "set"], "launch"))
        names = [kernel["name"] for kernel in manifest["kernels"]]
        fill, total = (node["launch"] for node in launched["nodes"] if "launch" in node)
        self.assertEqual([names[fill["kernel"]], names[total["kernel"]]], ["fill", "sum_rows"])
        data = pathlib.Path(self.capture, "data").read_bytes()
        part = fill["parameters"]
        row, count, number = struct.unpack("<QIf", data[part["offset"]:part["offset"] + part["size"]])
        part, = (operation["copy"]["data"] for operation in tape if operation["op"] == "copy" and "from" in operation["copy"]
                 and "address" not in operation["copy"]["from"])
        copied, = struct.unpack_from("<f", data, part["offset"])
        # An iteration may begin within one of the program's: at its wait.
        self.assertIn((count, number, copied), [(1000, 1 + i % 3, i % 7) for i in range(manifest["iteration"]["number"] + 1)])
        copy, = (node["copy"] for node in launched["nodes"] if "copy" in node)
        self.assertEqual(int(copy["from"]["address"], 16), row)
        environment = {**self.computing(COUNTS=None, LOG=None), "LD_LIBRARY_PATH": os.path.dirname(LIBRARY)}
        replayed = self.run_cudabpf("replay", self.capture, env=environment)
        self.assertEqual(replayed.returncode, 0, replayed.stderr)
        self.assertIn(b"Equal: all", replayed.stdout)

    def test_launch_within_a_library(self):
        """What a library of products launches is captured as all else is: with its parameters."""
        self.captured(command=self.command("--products", harness.CUBLAS))
        self.check_whole_iteration()
        trace = self.read()
        products = {call["id"] for call in trace.named("cublasSgemm_v2")}
        within = [call for call in trace.named("cuLaunchKernel") if call.get("within") in products]
        self.assertEqual(len(within), 40)
        self.assertEqual(self.replay("--full")["comparison"]["memory"]["different"], 0)

    def test_rows(self):
        """Copies of rows that lie apart: with the bytes of the rows alone, whatever lies between them."""
        self.captured(command=self.command("--with", "rows"))
        self.assertEqual(self.manifest()["refused"], [])
        rows = [operation["copy"] for operation in self.tape() if operation.get("copy", {"rows": {"height": 1}})["rows"]["height"] == 5]
        self.assertEqual([(copy["rows"], "address" in copy["from"], "address" in copy["to"]) for copy in rows],
                         [({"width": 48, "height": 5, "depth": depth}, *on_gpu) for depth, on_gpu in
                          ((2, (False, True)), (1, (False, True)), (2, (True, True)), (1, (True, False)), (1, (True, False)))])
        data = pathlib.Path(self.capture, "data").read_bytes()
        kept = [data[copy["data"]["offset"]:copy["data"]["offset"] + copy["data"]["size"]] for copy in rows if "data" in copy]
        memory = bytes((kept[0][0] - 8 + i) % 251 for i in range(2048))
        given = [memory[1024 * plane + 128 * row + 8:][:48] for plane in (0, 1) for row in range(5)]
        self.assertEqual(kept[0], b"".join(given))
        self.assertEqual(kept[1], b"".join(memory[128 * row:][:48] for row in range(1, 6)))
        self.assertEqual(kept[2], b"".join(given[:5]))
        # What lies from the 60th byte on was written by the second copy, from the 64th.
        for row in range(4):
            self.assertEqual(kept[3][48 * row + 4:][:44], memory[128 * (row + 2):][:44])
        comparison = self.replay("--full")["comparison"]
        self.assertEqual([comparison[what]["different"] for what in ("memory", "copies_to_host", "variables")], [0, 0, 0], comparison)
        self.assertEqual(comparison["copies_to_host"]["equal"], 4000 + 2 * 240)

    def test_attribute_that_changes(self):
        """Before each launch the program says how much shared memory it may have, and at the end less than some had."""
        self.captured("--at", "12", command=self.command("--with", "shared"))
        self.assertEqual([launch["shared"] for launch in (operation["launch"] for operation in self.tape() if operation["op"] == "launch")
                          if launch["shared"]], [24 << 10, 96 << 10, 48 << 10])
        self.assertEqual(self.replay("--full")["not_run"], [])

    def test_number_that_never_comes(self):
        said = self.captured("--at", "1000")
        self.assertIn("no iteration was captured", said)
        self.assertFalse(os.path.exists(f"{self.capture}/manifest.json"))

    def test_no_iterations(self):
        done = self.run_cudabpf("run", "--capture", self.capture, "-o", self.path, "--", *harness.calls(NEVER_TWICE))
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"no iteration was captured: no iterations could be told in 2 launches", done.stderr)
        self.check_whole(self.read())

    def test_no_contents(self):
        self.captured("--contents", "none", "--redact")
        manifest, tape = self.check_whole_iteration()
        self.assertEqual((manifest["contents"], manifest["before"], manifest["memory_pages"]), (False, [], 0))
        self.assertFalse([operation for operation in tape if "data" in operation.get("copy", {})])

    def test_memory_limit(self):
        said = self.captured("--max-memory", "1M")
        self.assertIn("no iteration was captured: its memory of 2.03 MiB is more than --max-memory allows", said)

    def test_other_threads_are_held(self):
        beside = f"{self.folder}/beside.py"
        pathlib.Path(beside).write_text(BESIDE, encoding="utf-8")
        said = self.captured(command=[PYTHON, "-B", beside, LIBRARY])
        self.assertRegex(said, r"iteration \d+ is in ")
        manifest, tape = self.manifest(), self.tape()
        self.assertEqual(manifest["refused"], [])
        self.assertEqual(sum(operation["op"] == "launch" for operation in tape), len(ITERATION))

    def test_processes(self):
        """Each has a folder of its own; of a helper that launches nothing, nothing is said."""
        several = f"{self.folder}/several.py"
        commands = [[str(word) for word in command] for command in (self.command(), harness.calls("setup"), self.command())]
        pathlib.Path(several).write_text("import subprocess\n"
                                         f"for child in [subprocess.Popen(command) for command in {commands}]: assert child.wait() == 0\n",
                                         encoding="utf-8")
        done = self.run_cudabpf("run", "--capture", self.capture, "-o", self.path, "--", PYTHON, several, env=self.computing())
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        pids = set()
        for folder in (self.capture, self.capture + ".2"):
            manifest = json.loads(pathlib.Path(folder, "manifest.json").read_text(encoding="utf-8"))
            self.assertEqual(manifest["operations"], sum(ACTIONS.values()))
            self.assertIn(f"iteration {manifest['iteration']['number']} of pid {manifest['iteration']['pid']} is in {folder}: ", done.stderr.decode())
            pids.add(manifest["iteration"]["pid"])
        calls = self.read().calls
        self.assertEqual(pids, {call["pid"] for call in calls if call["name"] == "cuLaunchKernel"})
        self.assertEqual(len({call["pid"] for call in calls}), 3)
        self.assertNotIn("no iteration", done.stderr.decode())

    def test_killed(self):
        """cudabpf is killed while the program runs, and perhaps stands: the program goes on."""
        for _ in range(5):
            self.setUp()
            tracer = Program([CUDABPF, "run", "--capture", self.capture, "-q", "-o", self.path, "--", *self.command("--iterations", "400")],
                             env=self.computing(COUNTS=None), stdout=subprocess.PIPE, **AS_USER)
            self.addCleanup(tracer.kill)
            wait_for(lambda: os.path.exists(f"{self.capture}/memory") and os.path.getsize(f"{self.capture}/memory"), "a page that is copied")
            tracer.signal(signal.SIGKILL)
            self.assertIn(b"\n399 ", tracer.process.stdout.read())

    def test_refused(self):
        os.mkdir(self.capture)
        pathlib.Path(self.capture, "other").write_text("", encoding="utf-8")
        os.chmod(self.capture, 0o777)
        for flags, why in ((("--capture", self.capture), "is there already, and is not an empty folder"),
                           (("--capture", self.folder + "/new", "--redact"), "a capture holds all of the program's data"),
                           (("--capture", self.folder + "/new", "--no-returns"), "what calls return is needed"),
                           (("--capture", self.folder + "/new", "--at", "0"), "iterations are counted from 1")):
            done = self.run_cudabpf("run", "-o", self.path, *flags, "--", *self.command())
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(why, done.stderr.decode())


if __name__ == "__main__":
    harness.main()
