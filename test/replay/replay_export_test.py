#!/usr/bin/env python3
"""cudabpf replay: one kernel in a folder of its own, and other code in its place.
usage: CUDABPF=build/cudabpf CUDABPF_DRIVER=build/test/fake_libcuda replay_export_test.py [ReplayExport.test_x]"""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import unittest

import captures
from captures import BASE, Capture, PAGE, UNIT, floats, images
from replaying import A, B, COUNT, DIFFERENT, DRIVER, EQUAL, FAILED, NO_TARGET, OUT, SIZE, TABLE, USAGE, Replaying

OUTPUT_FAILED = 124
OTHER = BASE + UNIT  # what the kernel has nothing to do with
COMPILER = os.environ.get("CXX", "g++")


class ReplayExport(Replaying):
    def setUp(self):
        super().setUp()
        self.kernel = self.folder.with_name("kernel")

    @staticmethod
    def adds():
        """Three additions, the last of another shape, among other work."""
        capture = Capture()
        kernels = capture.load(["add", "scale"])
        ones, numbers = [1.0] * COUNT, [float(i) for i in range(COUNT)]
        for block in (A, B, OUT, TABLE, OTHER):
            capture.block(block, SIZE)
        for memory in (capture.before, capture.after):
            memory.put(B, floats(*numbers))
            memory.put(OTHER, b"x" * SIZE)
        capture.before.put(A, floats(*ones))
        capture.launch(kernels["add"], A, B, OUT, COUNT)
        capture.launch(kernels["scale"], A, COUNT, 3)
        capture.launch(kernels["add"], A, B, OUT, COUNT)
        capture.launch(kernels["add"], OUT, A, TABLE, COUNT, grid=[2, 1, 1])
        capture.after.put(A, floats(*[3.0] * COUNT))
        capture.after.put(OUT, floats(*[3 + i for i in numbers]))
        capture.after.put(TABLE, floats(*[6 + i for i in numbers]))
        return capture

    def export(self, capture, pattern, *more, status=EQUAL, **environment):
        if not self.folder.exists():
            capture.write(self.folder)
        done = self.start("--export", pattern, "-o", str(self.kernel), "--json", "--timeout", "20s", *more, **environment)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def alone(self, *arguments, folder=None, **environment):
        """cudabpf replay of the export."""
        kept, self.folder = self.folder, folder or self.kernel
        done = self.start(*arguments, **environment)
        self.folder = kept
        return done

    def equal(self, **sums):
        done = self.alone("--json", "--runs", "1")
        self.assertEqual(done.returncode, EQUAL, done.stdout + done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual((answer["verdict"], answer["not_run"], answer["failed"]), ("equal", [], []))
        self.assertEqual({name: answer["comparison"]["copies_to_host"][name] for name in sums}, sums)
        return answer

    def manifest(self):
        return json.loads((self.kernel / "manifest.json").read_text())

    def tape(self):
        return [json.loads(line) for line in (self.kernel / "tape.jsonl").read_text().splitlines()]

    def image(self, *kernels, kind="fatbin", variables=None):
        path = self.folder.with_name("candidate." + kind)
        made = {"cubin": images.cubin, "ptx": images.ptx, "fatbin": lambda *what: images.fat_binary(images.cubin(*what))}
        path.write_bytes(made[kind](list(kernels), variables or {}))
        return str(path)

    def with_code(self, file, *more, status=EQUAL, timeout="20s", runs="2", folder=None, **environment):
        done = self.alone("--with", file, "--json", "--runs", runs, "--timeout", timeout, *more, folder=folder, **environment)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return json.loads(done.stdout)

    # ----- --export

    def test_export(self):
        """A folder with this kernel alone, which can be run like any other."""
        answer = self.export(self.adds(), "a*d")
        self.assertEqual((answer["verdict"], answer["kernel"], answer["launches"], answer["memory"], answer["blocks"]),
                         ("equal", "add", 3, "from pointers", 4))
        self.assertEqual([(one["call"], one["grid"]) for one in answer["occurrences"]], [(100, [1, 1, 1]), (102, [1, 1, 1]), (103, [2, 1, 1])])
        self.assertEqual([pointer["offset"] for pointer in answer["occurrences"][0]["pointers"]], [0, 8, 16])
        self.assertEqual(self.kernel.stat().st_mode & 0o777, 0o700)
        manifest = self.manifest()
        self.assertEqual(sorted(int(block["address"], 16) for block in manifest["blocks"]), [A, B, OUT, TABLE])
        self.assertEqual([kernel["name"] for kernel in manifest["kernels"]], ["add"])
        self.assertNotIn(b"x" * 64, (self.kernel / "memory").read_bytes())
        self.assertEqual([one["op"] for one in self.tape() if one["op"] != "copy"], ["launch"] * 3)
        self.equal(compared=3 * SIZE, equal=3 * SIZE)
        timed = json.loads(self.alone("--isolated", "--json", "--runs", "2").stdout)
        self.assertEqual((timed["verdict"], [one["count"] for one in timed["launches"]]), ("equal", [2, 1]))
        self.assertIn("3 launches", self.alone("--list").stdout)

    def test_texts(self):
        answer = self.export(self.adds(), "add", "--occurrences", "2")
        self.assertEqual([one["call"] for one in answer["occurrences"]], [100, 103])
        text = (self.kernel / "README.md").read_text()
        for said in ("# add\n", "2 launches of the 3", "Iteration 12 of `python3 model.py`", "| 103 | 2x1x1 | 32x1x1 | 0 |",
                     f"| 100 | 16 | {OUT:#x} |", "holds data of the program", "g++ -O2 -o launch launch.cpp -lcuda"):
            self.assertIn(said, text)
        shutil.rmtree(self.kernel)
        done = self.start("--export", "add", "-o", str(self.kernel))
        self.assertEqual(done.returncode, EQUAL, done.stderr)
        self.assertIn("Exported: add is in", done.stdout)

    def test_one_kernel(self):
        capture = self.adds()
        capture.write(self.folder)
        said = self.refused("--export", "*", "-o", str(self.kernel), status=NO_TARGET)
        self.assertIn("2 kernels have names that are like *: add, scale", said)
        self.assertIn("no kernel's name is like x*", self.refused("--export", "x*", "-o", str(self.kernel), status=NO_TARGET))
        self.assertIn("name it with -o", self.refused("--export", "add", status=USAGE))
        self.kernel.mkdir()
        (self.kernel / "mine").write_text("mine")
        self.assertIn("is there already", self.refused("--export", "add", "-o", str(self.kernel), status=OUTPUT_FAILED))
        self.assertEqual(os.listdir(self.kernel), ["mine"])
        self.refused("--export", "add", "--isolated", status=USAGE)
        for count in ("0", "65"):
            self.assertIn(f"--occurrences {count}: 1 to 64", self.refused("--export", "add", "--occurrences", count, status=USAGE))

    def test_memory_behind_a_table(self):
        """A table of pointers leads to what the kernel needs, too."""
        capture = Capture()
        rows = capture.load(["sum_rows"])["sum_rows"]
        for block in (A, B, OUT, TABLE):
            capture.block(block, SIZE)
        for memory in (capture.before, capture.after):
            memory.put(A, floats(*[1] * COUNT))
            memory.put(B, floats(*[2] * COUNT))
            memory.put(TABLE, struct.pack("<QQ", A, B))
        capture.after.put(OUT, floats(*[3] * COUNT))
        capture.launch(rows, TABLE, 2, COUNT, OUT)
        answer = self.export(capture, "sum_rows")
        self.assertEqual((answer["memory"], answer["blocks"], len(answer["occurrences"][0]["pointers"])), ("from pointers", 4, 2))
        self.equal(equal=SIZE)

    def test_all_memory(self):
        """Where pointers are not found, the export is made with all live memory, and says so."""
        capture = Capture()
        rows, count = capture.load(["sum_rows"])["sum_rows"], 9000  # more than are looked through
        capture.block(A, 64)
        capture.block(OTHER, 64)
        capture.block(OUT, 64)
        capture.block(TABLE, 8 * count)
        for memory in (capture.before, capture.after):
            memory.put(A, floats(*[1] * 16))
            memory.put(OTHER, floats(*[2] * 16))
            memory.put(TABLE, struct.pack(f"<{count}Q", *[A] * (count - 1), OTHER))
        capture.after.put(OUT, floats(*[count + 1] * 16))
        capture.launch(rows, TABLE, count, 16, OUT)
        answer = self.export(capture, "sum_rows")
        self.assertEqual((answer["verdict"], answer["memory"], answer["blocks"]), ("equal", "all", 4))
        self.assertIn("CUDA_ERROR_ILLEGAL_ADDRESS", answer["why_all_memory"])
        self.assertIn("It has all 4 blocks of memory", (self.kernel / "README.md").read_text())
        self.equal(equal=64)

    def test_not_deterministic(self):
        """What is not the same each time is named, and not compared."""
        capture = Capture()
        kernel = capture.load(["not_deterministic"])["not_deterministic"]
        capture.block(OUT, 4096)
        capture.before.put(OUT, b"x" * 4096)
        capture.after.put(OUT, b"y" * 16 + b"x" * 4080)
        capture.launch(kernel, OUT, 2)
        answer = self.export(capture, "not_det*")
        self.assertEqual(answer["occurrences"][0]["not_deterministic"], [{"at": hex(OUT), "bytes": 16}])
        self.equal(compared=4080, equal=4080)

    def test_variables(self):
        """Each occurrence has what was in them at its place."""
        capture = Capture()
        kernels = capture.load(["scale_by_variable", "count_runs"], variables={
            "factor": (floats(9), floats(3)), "runs": (bytes(4), struct.pack("<I", 41), struct.pack("<I", 43))})
        capture.block(OUT, 4)
        capture.before.put(OUT, bytes(4))
        capture.after.put(OUT, struct.pack("<I", 43))
        for _ in range(2):
            capture.launch(kernels["count_runs"], OUT)
        self.export(capture, "count_runs")
        answer = self.equal(compared=16, equal=16)
        self.assertEqual(answer["comparison"]["variables"]["equal"], 8)
        copied = [one["copy"] for one in self.tape() if one["op"] == "copy"]
        self.assertEqual(len(copied), 8)
        self.compile()
        self.assertEqual(self.launch().returncode, 0)

    def test_graph_and_memory_of_the_tape(self):
        """A node of a graph, and memory that the tape allocates; attributes of both kinds."""
        capture = Capture()
        fill = capture.load(["fill_in_cluster"])["fill_in_cluster"]
        capture.kernels[fill]["attributes"] = [{"attribute": 8, "value": 100 << 10}]
        capture.manifest["graphs"] = 1
        gone, new = capture.block(OTHER, SIZE), BASE + 2 * UNIT
        capture.before.put(gone, bytes(SIZE))
        capture.operation("free", memory={"address": hex(gone), "size": SIZE, "kind": "device", "device": 0})
        capture.operation("alloc", memory={"address": hex(new), "size": SIZE, "kind": "device", "device": 0})
        node = capture.launched(fill, new, COUNT, 6, shared=100 << 10, attributes=[(4, struct.pack("<III", 2, 1, 1))])
        capture.operation("graph", graph=0, nodes=[{"launch": node}])
        capture.after.put(new, floats(*[6] * COUNT))
        answer = self.export(capture, "fill*")
        self.assertEqual((answer["verdict"], answer["blocks"]), ("equal", 1))
        self.equal(equal=SIZE)
        self.compile()
        self.assertEqual(self.launch().returncode, 0)

    def test_host_memory(self):
        for pinned in (BASE + 4 * UNIT, BASE + 3 * PAGE):
            with self.subTest(hex(pinned)):
                self.folder, self.kernel = (path.with_name(f"{path.name}-{pinned:x}") for path in (self.folder, self.kernel))
                capture = Capture()
                add = capture.load(["add"])["add"]
                capture.block(A, SIZE)
                capture.block(pinned, 8192, kind="pinned")
                capture.before.put(A, floats(*[1] * COUNT))
                capture.before.put(pinned, floats(*[2] * 2048))
                capture.launch(add, A, pinned, A, COUNT)
                capture.after.put(A, floats(*[3] * COUNT))
                self.export(capture, "add")
                self.equal(equal=SIZE)
                self.compile()
                self.assertEqual(self.launch().returncode, 0)

    def test_what_fails(self):
        capture = self.adds()
        capture.launch(capture.load(["fault"])["fault"])
        capture.write(self.folder)
        said = self.refused("--export", "fault", "-o", str(self.kernel))
        self.assertIn("fault (call 104): cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700)", said)
        self.folder = self.folder.with_name("nothing")
        capture = Capture()
        capture.block(A, SIZE)
        capture.before.put(A, floats(*[1] * COUNT))
        capture.launch(capture.load(["fill"])["fill"], A, COUNT, 1)
        capture.write(self.folder)
        self.assertIn("it changes no memory", self.refused("--export", "fill", "-o", str(self.kernel)))

    # ----- launch.cpp

    def compile(self):
        done = subprocess.run([COMPILER, "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-o", self.kernel / "launch", self.kernel / "launch.cpp",
                               DRIVER / "libcuda.so.1"], check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout)

    def launch(self, *arguments):
        given = {**os.environ, "LD_LIBRARY_PATH": str(DRIVER), "FAKE_CUDA_COMPUTE": "1"}
        return subprocess.run([self.kernel / "launch", *arguments], check=False, text=True, env=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def test_launch_program(self):
        self.export(self.adds(), "add")
        self.compile()
        done = self.launch()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.count("equal"), 3)
        self.assertRegex(done.stdout, r"^add\ncall 100  grid 1x1x1  block 32x1x1  [0-9.]+ us  equal\n")
        self.assertEqual(self.launch("--image", self.image("add add_slowly")).returncode, 0)
        self.assertEqual(self.launch("--image", self.image("plus add"), "--kernel", "plus").returncode, 0)
        self.assertEqual(self.launch("--image", self.image("add add_off")).returncode, 1)
        self.assertEqual(self.launch("--image", self.image("plus add")).returncode, 2)
        copied = [one["copy"] for one in self.tape() if one["op"] == "copy" and "address" in one["copy"]["from"]]
        data = bytearray((self.kernel / "data").read_bytes())
        data[copied[-1]["data"]["offset"]] ^= 1
        (self.kernel / "data").write_bytes(data)
        done = self.launch("--runs", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("different: 1 bytes", done.stdout)

    # ----- --with

    def test_same(self):
        self.export(self.adds(), "add")
        for kind in ("cubin", "fatbin", "ptx"):
            answer = self.with_code(self.image("add", kind=kind))
            self.assertEqual((answer["verdict"], answer["failed"], answer["notes"]), ("same", [], []))
            for one in answer["occurrences"]:
                self.assertEqual((one["compared"], one["poisoned"], one["inputs_too"], one["rounds_different"]), (SIZE, SIZE, 0, 0))
        self.assertEqual([one["count"] for one in answer["launches"]], [2, 1])
        slow = self.with_code(self.image("add add_slowly"))
        self.assertEqual(slow["verdict"], "same")
        for one in slow["launches"]:
            self.assertLess(one["speed_up"]["warm"]["median"], 1)
            self.assertLessEqual(one["speed_up"]["warm"]["min"], one["speed_up"]["warm"]["max"])
            self.assertEqual(len(one["original"]["cold_us"]["runs"]), len(one["candidate"]["cold_us"]["runs"]))
        self.assertIn("Same: it leaves all bytes", self.alone("--with", self.image("add")).stdout)

    def test_off(self):
        """By one step of a float: different, unless a tolerance allows it."""
        self.export(self.adds(), "add")
        file = self.image("add add_off")
        answer = self.with_code(file, status=DIFFERENT)
        self.assertEqual(answer["verdict"], "different")
        for one in answer["occurrences"]:
            self.assertEqual((one["not_written"], one["rounds_different"], one["errors"]["f32"]["values"]), (0, one["rounds"], 1))
            self.assertLess(one["errors"]["f32"]["max_relative"], 1e-6)
            self.assertGreater(one["errors"]["f32"]["max_absolute"], 0)
            self.assertEqual(int(one["first_difference"], 16) % 4096 // 4, COUNT // 2)
        self.assertEqual(self.with_code(file, "--as", "f32", "--tolerance", "1e-6")["verdict"], "within tolerance")
        self.with_code(file, "--as", "f32", "--tolerance", "1e-9", status=DIFFERENT)
        text = self.alone("--with", file)
        self.assertIn("Different: it does not leave", text.stdout)
        self.assertIn("bf16", text.stdout)
        self.assertEqual(self.alone("--with", file, "--as", "f32").returncode, USAGE)

    def test_half(self):
        """What it does not write is named as such."""
        self.export(self.adds(), "add")
        for one in self.with_code(self.image("add add_half"), status=DIFFERENT)["occurrences"]:
            self.assertGreater(one["not_written"], SIZE // 4)
            self.assertEqual(one["different"], one["not_written"])

    def test_inputs_changed(self):
        """What it is not to write is compared, too: what it is given, and all other memory."""
        self.export(self.adds(), "add")
        answer = self.with_code(self.image("add add_over_inputs"), status=DIFFERENT)
        self.assertGreater(answer["changed_elsewhere"], 0)
        self.assertGreater(answer["occurrences"][0]["changed_elsewhere"], 0)
        self.assertIn("it changes memory that the original does not", self.alone("--with", self.image("add add_over_inputs")).stdout)

    def test_cached(self):
        """It computes the first answer, and gives that again."""
        self.export(self.adds(), "add")
        answer = self.with_code(self.image("add add_cached"), status=DIFFERENT)
        self.assertEqual([one["rounds_different"] for one in answer["occurrences"]].count(0), 1)

    def test_failing(self):
        self.export(self.adds(), "add")
        answer = self.with_code(self.image("add fault"), status=FAILED)
        self.assertEqual(answer["verdict"], "failed")
        self.assertRegex(answer["failed"][0]["what"], r"^the candidate, in place of add \(call 10[023]\)$")
        self.assertIn("CUDA_ERROR_ILLEGAL_ADDRESS", answer["failed"][0]["why"])
        answer = self.with_code(self.image("add hang"), status=FAILED, timeout="500ms")
        self.assertEqual(answer["failed"][0]["why"], "it did nothing for 0.5 s")

    def test_names(self):
        self.export(self.adds(), "add")
        answer = self.with_code(self.image("plus add"))
        self.assertEqual(answer["verdict"], "same")
        self.assertIn("has no kernel add: its only one, plus, takes its place", answer["notes"][0])
        answer = self.with_code(self.image("plus add", "minus add"), status=FAILED)
        self.assertIn("has no kernel add, but several others: plus, minus", answer["failed"][0]["why"])
        nothing = self.folder.with_name("nothing")
        nothing.write_bytes(b"nothing")
        self.assertIn("is no cubin", self.with_code(str(nothing), status=FAILED)["failed"][0]["why"])
        self.assertIn("No such file", self.with_code(str(nothing) + "x", status=FAILED)["failed"][0]["why"])

    def test_in_place(self):
        """What is read before it is written is left alone."""
        capture = self.simple()
        capture.before.put(A, floats(*range(COUNT)))
        capture.after.put(A, floats(*[4 * i for i in range(COUNT)]))
        self.export(capture, "scale")
        for one in self.with_code(self.image("scale"))["occurrences"]:
            self.assertEqual((one["poisoned"], one["inputs_too"] > 0), (0, True))
        self.assertEqual(self.with_code(self.image("scale fill"), status=DIFFERENT)["verdict"], "different")

    def test_poison_that_fails(self):
        """A kernel that follows a pointer where it writes cannot be poisoned."""
        capture = Capture()
        advance = capture.load(["advance"])["advance"]
        capture.block(OUT, 8)
        capture.block(OTHER, 64)
        capture.before.put(OTHER, b"x" * 64)
        for memory, to in ((capture.before, OTHER), (capture.after, OTHER + 16)):
            memory.put(OUT, struct.pack("<Q", to))
        capture.launch(advance, OUT, 8)
        capture.launch(advance, OUT, 8)
        self.export(capture, "advance")
        answer = self.with_code(self.image("advance"), runs="0")
        self.assertEqual(answer["verdict"], "same")
        self.assertIn("could not be poisoned", answer["notes"][0])

    def test_one_occurrence(self):
        self.export(self.adds(), "add", "--occurrences", "1")
        self.assertIn("would not be noticed", self.with_code(self.image("add"))["notes"][0])

    def test_candidate_without_variable(self):
        capture = Capture()
        kernel = capture.load(["scale_by_variable"], variables={"factor": (floats(9), floats(3))})["scale_by_variable"]
        capture.block(A, SIZE)
        capture.before.put(A, floats(*[1] * COUNT))
        capture.after.put(A, floats(*[9] * COUNT))
        for _ in range(2):
            capture.launch(kernel, A, COUNT)
        self.export(capture, "scale*")
        self.assertEqual(self.with_code(self.image("scale_by_variable", variables={"factor": floats(0)}))["verdict"], "same")
        answer = self.with_code(self.image("scale_by_variable"), status=FAILED)
        self.assertEqual(answer["notes"], ["the candidate has no variable factor of 4 bytes"])

    def test_whole_capture(self):
        """It is exported first, to a folder that is gone afterwards."""
        self.adds().write(self.folder)
        temporary = self.folder.with_name("temporary")
        temporary.mkdir()
        answer = self.with_code(self.image("add"), "--match", "add", folder=self.folder, TMPDIR=str(temporary))
        self.assertEqual((answer["verdict"], len(answer["occurrences"])), ("same", 3))
        self.assertEqual(os.listdir(temporary), [])
        done = self.start("--with", self.image("add"))
        self.assertEqual(done.returncode, NO_TARGET)
        self.assertIn("2 kernels are in the capture: add, scale", done.stderr)
        self.assertEqual(self.start("--match", "add").returncode, USAGE)

    def test_hostile_export(self):
        """Its tape says what it likes: an answer or an error, but no signal."""
        self.export(self.adds(), "add")
        good = (self.kernel / "tape.jsonl").read_text()
        lines = [json.loads(line) for line in good.splitlines()]
        for number, one in enumerate(lines):
            if one["op"] == "copy":
                place = one["copy"]["to" if "address" in one["copy"]["to"] else "from"]
                kept, place["address"] = place["address"], hex(1 << 45)
                (self.kernel / "tape.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
                done = self.alone("--with", self.image("add"), "--runs", "0")
                self.assertIn(done.returncode, (EQUAL, DIFFERENT, FAILED), (number, done.stdout, done.stderr))
                place["address"] = kept


if __name__ == "__main__":
    assert pathlib.Path(captures.__file__).exists()
    unittest.main()
