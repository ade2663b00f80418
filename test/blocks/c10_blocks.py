"""Blocks of PyTorch's allocator by its USDT probes, against what the program itself says of them: by eBPF, --blocks."""
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "live"))

import harness  # noqa: E402  pylint: disable=wrong-import-position
from harness import BUILD, LIBRARY, wait_for  # noqa: E402  pylint: disable=wrong-import-position

C10 = f"{BUILD}/test/fake_c10/libc10_cuda.so"
STRANGE = f"{BUILD}/test/fake_c10/strange/libc10_cuda.so"
MIB = 1 << 20
# Steps: [function, argument...]; what passes a probe while it is traced is printed as a line of a trace is to say it.
PROGRAM = """
import ctypes, json, sys, time
cuda = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
c10 = ctypes.CDLL(sys.argv[2])
word = ctypes.c_uint64
c10.reserve.restype = word
context, segments = word(), []
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
def say(**what):
    if c10.probes_raised():
        print(json.dumps(what), flush=True)
def alloc(place, ptr, device, size, stream_id):
    c10.block_allocated(place, word(ptr), device, word(size), word(stream_id))
    say(op="alloc", name="pytorch:malloc", size=size, ptr=hex(ptr), device=device, args={"stream_id": stream_id})
def free(place, ptr):
    c10.block_freed(place, word(ptr))
    say(op="free", name="pytorch:free", ptr=hex(ptr))
def step(function, *arguments):
    if function == "reserve":
        segments.append(c10.reserve(word(arguments[0])))
    elif function == "release":
        c10.release(word(segments.pop(0)))
    elif function == "other":
        c10.other_probes(word(1))
    elif function == "wait":
        print(json.dumps("ready"), flush=True)
        sys.stdin.readline()
    elif function == "raised":
        print(json.dumps(c10.probes_raised()), flush=True)
    elif function == "lowered":
        while c10.probes_raised():
            time.sleep(0.01)
        print(json.dumps("lowered"), flush=True)
    else:
        globals()[function](*arguments)
for one in json.loads(sys.argv[3]):
    step(*one)
"""
# Each place of each probe; the first free is of a block that nobody has seen.
STEPS = [["free", 0, 0x7000], ["alloc", 0, 0x7f0000000000, 0, 512, 0], ["alloc", 1, 0x7f0000100000, 0, 3 << 33, 0xabcd], ["other"],
         ["alloc", 0, 0x7f0000200000, 1, 1, 1 << 63], ["alloc", 2, 0x7f0000300000, 3, MIB, 0], ["alloc", 1, 0x7f0000400000, -1, 77, 5],
         ["free", 1, 0x7f0000000000], ["free", 0, 0x7f0000300000]]
TYPES = {"type": "block", "library": "c10", "layer": 2}


class Live(harness.LiveTest):
    def command(self, steps, c10=C10):
        return [harness.PYTHON, "-c", PROGRAM, LIBRARY, c10, json.dumps(steps)]

    def traced_blocks(self, steps, *flags, c10=C10, fake=None):
        """-> (the trace, its blocks in their order, what the program said)"""
        output = f"{self.folder}/said"
        os.environ["OUTPUT"] = output
        command = ["/bin/sh", "-c", 'exec "$@" > "$OUTPUT"', "sh", *self.command(steps, c10)]
        trace = self.traced(command, "--library", LIBRARY, "--library", c10, *flags, fake=fake)
        with open(output, encoding="utf-8") as file:
            said = [json.loads(line) for line in file]
        return trace, self.blocks(trace), said

    def blocks(self, trace):
        return sorted((call for call in trace.calls if call["type"] == "block"), key=lambda call: call["ts"])

    def check_equal(self, blocks, said):
        shown = [{key: value for key, value in line.items() if key not in {"id", "ts", "pid", "tid"}} for line in blocks]
        self.assertEqual(shown, [{**TYPES, **true} for true in said])

    def library_of(self, trace, c10=C10):
        return next(one for one in [*trace.header["libraries"], *trace.lines] if one.get("path") == c10)

    def answer(self, *words):
        return json.loads(subprocess.run([harness.CUDABPF, *words, "--json", self.path], check=True, stdout=subprocess.PIPE).stdout)

    def test_each_block(self):
        trace, blocks, said = self.traced_blocks(STEPS, "--blocks")
        self.check_law(trace)
        self.assertEqual(len(said), len(STEPS) - 1)
        self.check_equal(blocks, said)
        self.assertTrue(trace.header["blocks"])
        library = self.library_of(trace)
        self.assertEqual((library["library"], library["functions"], library["skipped"]), ("c10", 2, 1))

    def test_without_sessions(self):
        trace, blocks, said = self.traced_blocks(STEPS, "--blocks", "--no-feature", "uprobe_session")
        self.check_law(trace)
        self.assertEqual(len(said), len(STEPS) - 1)
        self.check_equal(blocks, said)

    def test_single_links(self):
        # The kernel may take its time to remove these: no other test has this copy.
        c10 = shutil.copy(C10, self.folder)
        trace, blocks, said = self.traced_blocks(STEPS, "--blocks", "--libraries", "c10", "--no-feature", "uprobe_multi", c10=c10)
        self.check_law(trace)
        self.assertEqual(len(said), len(STEPS) - 1)
        self.check_equal(blocks, said)
        self.check_gone(100)

    def test_not_asked_for(self):
        trace, blocks, said = self.traced_blocks([*STEPS, ["raised"]])
        self.assertEqual((blocks, said), ([], [0]))
        self.assertNotIn("blocks", trace.header)

    def attached(self, steps, end, machine=False):
        """Attaches to a program that waits, or traces the machine, until the program has said `ready` again; `end` ends the tracer, after which
        the probes' semaphores must be lowered."""
        pathlib.Path(self.path).unlink(missing_ok=True)
        program = self.start(self.command([*STEPS, ["wait"], *steps, ["wait"], ["lowered"]]), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(program.process.stdout.readline(), b'"ready"\n', program.stderr())
        tracer = self.start_cudabpf(*(() if machine else ("attach", "--pid", program.pid)), "--blocks", "-o", self.path)
        program.send_line()
        said = [json.loads(program.process.stdout.readline()) for _ in range(len(steps) + 1)]
        self.assertEqual(said.pop(), "ready")
        end(tracer, len(steps))
        program.send_line()
        self.assertEqual(program.wait(), 0, program.stderr())
        self.assertEqual(program.process.stdout.read(), b'"lowered"\n')
        return said

    def test_attach(self):
        """What was allocated before is not known; its frees are counted."""
        def interrupt(tracer, count):
            del count
            tracer.signal(signal.SIGINT)
            self.assertEqual(tracer.wait(), 0, tracer.stderr())
        for machine in (False, True):
            with self.subTest(machine=machine):
                said = self.attached([["free", 0, 0x7f0000100000], ["alloc", 0, 0x7f0000100000, 0, 9, 0], ["free", 1, 0x7f0000100000]],
                                     interrupt, machine)
                trace = self.read()
                (self.check_accounts if machine else self.check_law)(trace)
                self.check_equal(self.blocks(trace), said)

    def test_killed(self):
        def kill(tracer, count):
            wait_for(lambda: pathlib.Path(self.path).read_text(encoding="utf-8").count('"type":"block"') == count, "the blocks' lines")
            tracer.kill()
        self.attached([["alloc", 0, 0x7f0000100000, 0, 9, 0]], kill)

    def test_reserved_and_allocated(self):
        steps = [["reserve", 40 * MIB], ["alloc", 0, 0x1000, 0, 10 * MIB, 0], ["alloc", 1, 0x2000, 0, 25 * MIB, 0], ["free", 0, 0x1000],
                 ["reserve", 30 * MIB], ["free", 1, 0x2000], ["release"], ["reserve", 8 * MIB], ["alloc", 2, 0x3000, 0, MIB, 0], ["free", 0, 0x9000]]
        trace, _, _ = self.traced_blocks(steps, "--blocks", fake={"MEMORY": 64 * MIB})
        self.check_accounts(trace)
        blocks = self.answer("memory")["memory"]["blocks"]
        self.assertEqual(blocks["frees_without_allocation"], 1)
        one, = blocks["allocators"]
        self.assertEqual((one["device"], one["reserved_by"], one["allocations"], one["frees"]), (0, "allocator", 3, 2))
        levels = {moment: [one[moment][what] for what in ("blocks", "allocated", "reserved", "unused")]
                  for moment in ("most_allocated", "most_reserved", "most_unused", "end")}
        self.assertEqual(levels, {"most_allocated": [2, 35 * MIB, 40 * MIB, 5 * MIB], "most_reserved": [2, 35 * MIB, 40 * MIB, 5 * MIB],
                                  "most_unused": [0, 0, 40 * MIB, 40 * MIB], "end": [1, MIB, 8 * MIB, 7 * MIB]})
        moment, = self.answer("errors")["ran_out"]["first"]
        self.assertEqual(moment["blocks"], {"allocated": 25 * MIB, "reserved": 40 * MIB, "unused": 15 * MIB})
        picture = json.loads(subprocess.run([harness.CUDABPF, "export", "-o", "-", self.path], check=True, stdout=subprocess.PIPE).stdout)
        counted = [event["args"]["bytes"] for event in picture["traceEvents"] if event["ph"] == "C" and event["name"] == "PyTorch's blocks, GPU 0"]
        self.assertEqual(counted, [10 * MIB, 35 * MIB, 25 * MIB, 0, MIB, 0])
        # Neither is a call of the driver's, or memory of it.
        self.assertEqual(self.answer("memory")["memory"]["all"]["kinds"]["device"]["allocations"], 2)

    def test_strange_place(self):
        trace, blocks, said = self.traced_blocks([["alloc", 0, 0x1000, 0, 1, 0], ["alloc", 3, 0x2000, 0, 2, 0], ["free", 0, 0x2000]], "--blocks",
                                                 c10=STRANGE)
        self.check_accounts(trace)
        self.check_equal(blocks, [said[0], said[2]])
        self.assertEqual(self.library_of(trace, STRANGE)["left_out"], 1)
        self.assertEqual(trace.end["losses"], {"functions_left_out": 1})
        self.assertIn("left out, being not understood: 1", " ".join(self.stderr.split()))

    def test_not_inside(self):
        for flags in (["--blocks"], ["--libraries", "c10"]):
            done = self.run_cudabpf("run", "--inside", *flags, "-o", self.path, "--", "true")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(" ".join([*flags, "works only with eBPF"]), done.stderr.decode())

    def test_hostile_notes(self):
        """Whatever the notes say, the program runs, and what is not sound is not recorded."""
        with open(C10, "rb") as file:
            library = file.read()
        notes = [at for at in range(len(library)) if library[at:at + 8] == b"stapsdt\0" and library[at - 4:at] == struct.pack("<I", 3)]
        self.assertGreaterEqual(len(notes), 7)
        changes = {"place": (8, struct.pack("<Q", 1 << 40)), "semaphore": (24, struct.pack("<Q", 1 << 40)), "name": (-12, struct.pack("<I", 1 << 31)),
                   "content": (-8, b"\xff\xff\xff\xff"), "text": (32, b"\xff" * 16)}
        for what, (at, value) in changes.items():
            with self.subTest(what):
                folder = f"{self.folder}/{what}"
                os.mkdir(folder)
                changed = bytearray(library)
                for note in notes:
                    changed[note + at:note + at + len(value)] = value
                with open(f"{folder}/libc10_cuda.so", "wb") as file:
                    file.write(changed)
                trace, blocks, said = self.traced_blocks([["alloc", 0, 0x1000, 0, 1, 0], ["raised"]], "--blocks", c10=f"{folder}/libc10_cuda.so")
                self.check_accounts(trace)
                self.assertEqual((blocks, said), ([], [0]))
                self.assertIn("error", self.library_of(trace, f"{folder}/libc10_cuda.so"))


harness.main()
