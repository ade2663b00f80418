#!/usr/bin/env python3
"""cudabpf replay --export: one kernel in a folder of its own.
usage: CUDABPF=build/cudabpf CUDABPF_DRIVER=build/test/fake_libcuda replay_export_test.py [ReplayExport.test_x]"""
import json
import os
import shutil
import struct
import unittest

from captures import BASE, Capture, PAGE, UNIT, floats
from exporting import Exporting, OTHER
from replaying import A, B, COUNT, EQUAL, FAILED, NO_TARGET, OUT, SIZE, TABLE, USAGE

OUTPUT_FAILED = 124


class ReplayExport(Exporting):
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
        self.assertIn("CUDA_ERROR_ILLEGAL_ADDRESS", answer["why_more_memory"])
        self.assertIn("It has the 4 blocks of memory that were live then", (self.kernel / "README.md").read_text())
        self.equal(equal=64)

    def test_memory_in_pieces(self):
        """Memory that was mapped piece by piece comes whole."""
        capture = Capture()
        rows = capture.load(["sum_rows"])["sum_rows"]
        for block in (A, A + 4096, OUT, OTHER):
            capture.block(block, 4096)
        capture.block(TABLE, 8)
        for memory in (capture.before, capture.after):
            memory.put(A, floats(*[1] * 2048))
            memory.put(TABLE, struct.pack("<Q", A))
        capture.block(OUT + 4096, 4096)
        capture.after.put(OUT, floats(*[1] * 2048))
        capture.launch(rows, TABLE, 1, 2048, OUT)
        answer = self.export(capture, "sum_rows")
        self.assertEqual((answer["verdict"], answer["memory"], answer["blocks"]), ("equal", "touching", 5))
        self.assertIn("that follow without a gap", (self.kernel / "README.md").read_text())

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
        self.with_code(self.image("not_deterministic"))
        shutil.rmtree(self.kernel)
        shutil.rmtree(self.folder)
        capture = Capture()
        capture.block(OUT, 4096)
        capture.before.put(OUT, b"x" * 4096)
        capture.launch(capture.load(["not_deterministic"])["not_deterministic"], OUT, 512)
        self.export(capture, "not_det*")
        done = self.alone("--with", self.image("not_deterministic"))
        self.assertEqual(done.returncode, FAILED)
        self.assertIn("so nothing can be compared", done.stderr)

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

    def test_pointer_in_a_variable(self):
        """What a variable of the kernel's code points to is needed, too."""
        capture = Capture()
        kernel = capture.load(["scale_by_variable"], variables={"factor": (bytes(8), struct.pack("<Q", OTHER))})["scale_by_variable"]
        for block in (A, B, OTHER):
            capture.block(block, SIZE)
        capture.before.put(A, floats(*[1] * COUNT))
        capture.before.put(OTHER, b"x" * SIZE)
        capture.after.put(A, floats(*[0] * COUNT))
        capture.launch(kernel, A, COUNT)
        self.assertEqual(self.export(capture, "scale*")["blocks"], 2)
        self.assertEqual(sorted(int(block["address"], 16) for block in self.manifest()["blocks"]), [A, OTHER])

    def test_hostile_captures(self):
        """Sizes that nothing has: an answer or an error, but no signal, and soon."""
        for what, change in (("block", lambda capture: capture.block(1 << 44, 1 << 55)),
                             ("pinned", lambda capture: capture.block(1 << 44, 1 << 55, kind="pinned")),
                             ("variable", lambda capture: capture.modules[0]["variables"].append(
                                 {"name": "v", "address": hex(A), "size": 1 << 60})),
                             ("free", lambda capture: capture.operation("free", memory={
                                 "address": hex(A), "size": 1 << 55, "kind": "device", "device": 0}))):
            with self.subTest(what):
                self.folder, self.kernel = (path.with_name(what + path.name) for path in (self.folder, self.kernel))
                capture = self.adds()
                change(capture)
                capture.write(self.folder)
                done = self.start("--export", "add", "-o", str(self.kernel))
                self.assertIn(done.returncode, (EQUAL, FAILED), done.stderr)

    # ----- launch.cpp

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


if __name__ == "__main__":
    unittest.main()
