#!/usr/bin/env python3
"""cudabpf replay: what it runs, and what it compares.
usage: CUDABPF=build/cudabpf CUDABPF_DRIVER=build/test/fake_libcuda replay_test.py [Replay.test_x]"""
import json
import struct
import unittest

from captures import BASE, Capture, PAGE, UNIT, floats
from replaying import A, B, COUNT, DIFFERENT, OUT, SIZE, TABLE, Replaying


class Replay(Replaying):
    # ----- what is equal

    def test_in_place(self):
        answer = self.replay(self.simple())
        self.assertEqual((answer["verdict"], answer["failed"], answer["not_run"], answer["notes"]), ("equal", [], [], []))
        self.check_memory(answer, compared=SIZE, equal=SIZE, different=0, not_deterministic=0, not_written=0)
        self.assertEqual(len(answer["timing"]["full_model_inference_us"]["runs"]), 2)
        self.assertEqual([(one["kernel"], one["count"]) for one in answer["timing"]["launches"]], [("scale", 2)])

    def test_pointers_in_memory(self):
        capture = Capture()
        kernels = capture.load(["sum_rows", "add"])
        for block, size in ((A, SIZE), (B, SIZE), (OUT, SIZE), (TABLE, 16)):
            capture.block(block, size)
        for memory in (capture.before, capture.after):
            memory.put(A, floats(*[1] * COUNT))
            memory.put(B, floats(*range(COUNT)))
            memory.put(TABLE, struct.pack("<QQ", A, B))
        capture.after.put(OUT, floats(*[2 + i for i in range(COUNT)]))
        capture.launch(kernels["sum_rows"], TABLE, 2, COUNT, OUT)
        capture.launch(kernels["add"], A, OUT, OUT, COUNT)
        self.check_memory(self.replay(capture), compared=3 * SIZE + 16, equal=3 * SIZE + 16)

    def test_packed_parameters(self):
        capture = Capture()
        packed = capture.load(["fill_packed"])["fill_packed"]
        capture.block(A, SIZE)
        capture.after.put(A, floats(*[7] * COUNT))
        capture.launch(packed, 7, A, COUNT)
        self.check_memory(self.replay(capture), compared=SIZE, equal=SIZE)

    def test_variables(self):
        """Their contents come from the capture, not from the image; a copy to one finds it where it is now."""
        for library, ptx in ((True, False), (False, False), (False, True)):
            with self.subTest(library=library, ptx=ptx):
                capture = Capture()
                kernels = capture.load(["scale_by_variable", "count_runs"], library=library, ptx=ptx, variables={
                    "factor": (floats(9), floats(3), floats(5)), "runs": (bytes(4), struct.pack("<I", 41), struct.pack("<I", 42))})
                capture.block(A, SIZE)
                capture.block(OUT, 4)
                capture.before.put(A, floats(*[1] * COUNT))
                capture.after.put(A, floats(*[15] * COUNT))
                capture.after.put(OUT, struct.pack("<I", 42))
                capture.launch(kernels["scale_by_variable"], A, COUNT)
                capture.copy(BASE - UNIT, None, 4, floats(5))
                capture.launch(kernels["scale_by_variable"], A, COUNT)
                capture.launch(kernels["count_runs"], OUT)
                self.folder = self.folder.with_name(f"capture-{library}-{ptx}")
                answer = self.replay(capture)
                self.check_memory(answer, compared=SIZE + 4, equal=SIZE + 4)
                self.assertEqual(answer["comparison"]["variables"]["equal"], 8)

    def test_attributes(self):
        """Of a launch (the cluster's dimension) and of a kernel (its shared memory)."""
        capture = Capture()
        clustered = capture.load(["fill_in_cluster"])["fill_in_cluster"]
        capture.kernels[clustered]["attributes"] = [{"attribute": 8, "value": 100 << 10}]
        capture.block(A, SIZE)
        capture.after.put(A, floats(*[3] * COUNT))
        event = struct.pack("<QII", 0x1234, 0, 0)  # an event of the program's
        capture.launch(clustered, A, COUNT, 3, shared=100 << 10, attributes=[(4, struct.pack("<III", 2, 1, 1)), (7, event)])
        answer = self.replay(capture)
        self.check_memory(answer, equal=SIZE)
        self.assertRegex(answer["notes"][0], "^1 attributes of launches that name events")

    def test_copies_and_fills(self):
        capture = Capture()
        capture.block(A, 4096)
        capture.block(B, 4096)
        rows = b"".join(bytes([i]) * 16 for i in range(4))
        stream = capture.stream(priority=-5)
        capture.manifest["events"] = 1
        capture.set(A, 0x01020304, 64, element=4, stream=stream)
        capture.copy(Capture.place(A + 1024, pitch=128), None, 64, rows, rows=(16, 4, 1), stream=stream)
        capture.operation("record", stream=stream, event=0)
        capture.operation("wait", event=0)
        capture.copy(B, A, 2048)
        capture.copy(None, Capture.place(B + 1024, pitch=128), 64, rows, rows=(16, 4, 1))
        capture.copy(None, B, 64, struct.pack("<I", 0x01020304) * 16)
        for what in ("sync", "drain"):
            capture.operation(what)
        capture.operation("await", event=0)
        for block in (A, B):
            capture.before.put(block, bytes(4096))
            capture.after.put(block, struct.pack("<I", 0x01020304) * 16)
            for i in range(4):
                capture.after.put(block + 1024 + 128 * i, bytes([i]) * 16)
        answer = self.replay(capture)
        self.check_memory(answer, compared=8192, equal=8192)
        self.assertEqual(answer["comparison"]["copies_to_host"], {
            "compared": 128, "equal": 128, "different": 0, "not_deterministic": 0, "not_written": 0})

    def test_graph(self):
        """Its nodes come with the first launch, and with another when they have changed."""
        capture = Capture()
        scale = capture.load(["scale"])["scale"]
        capture.manifest["graphs"] = 1
        capture.block(A, SIZE)
        capture.before.put(A, floats(*[1] * COUNT))
        capture.after.put(A, floats(*[45] * COUNT))
        capture.operation("graph", graph=0, nodes=[{"launch": capture.launched(scale, A, COUNT, 3)}])
        capture.operation("graph", graph=0)
        capture.operation("graph", graph=0, nodes=[{"launch": capture.launched(scale, A, COUNT, 5)}])
        answer = self.replay(capture)
        self.check_memory(answer, equal=SIZE)
        self.assertEqual([one["count"] for one in answer["timing"]["launches"]], [2, 1])  # by what it multiplies with

    def test_memory_that_comes_and_goes(self):
        """What the tape frees is not compared; what it allocates is, as far as it is known; what nobody wrote is not."""
        capture = Capture()
        fill = capture.load(["fill"])["fill"]
        gone, new = capture.block(BASE + UNIT, SIZE), BASE + 2 * UNIT
        capture.before.put(gone, floats(*[1] * COUNT))
        capture.launch(fill, gone, COUNT, 5)
        capture.operation("free", memory={"address": hex(gone), "size": SIZE, "kind": "device", "device": 0})
        capture.operation("alloc", memory={"address": hex(new), "size": 2 * SIZE, "kind": "device", "device": 0})
        capture.launch(fill, new, COUNT, 6)
        capture.after.put(new, floats(*[6] * COUNT))
        self.check_memory(self.replay(capture), compared=2 * SIZE, equal=SIZE, not_written=SIZE, different=0)

    def test_pages(self):
        """A run of pages without contents is of zeroes, and needs no place in the file."""
        capture = self.simple()
        many = capture.block(BASE + UNIT, 5 * PAGE)
        capture.before.put(many, bytes(2 * PAGE) + b"x" * 2 * PAGE + bytes(PAGE))
        capture.after.put(many, b"y" * PAGE + bytes(PAGE) + b"y")
        capture.after.put(many + 2 * PAGE, b"y" + b"x" * (PAGE - 1))
        capture.set(many, ord("y"), PAGE)
        capture.set(many + 2 * PAGE, ord("y"), 1)
        answer = self.replay(capture)
        self.assertEqual([run["pages"] for run in json.loads((self.folder / "manifest.json").read_text())["before"]], [1, 2, 2, 1])
        self.check_memory(answer, compared=SIZE + 5 * PAGE, equal=SIZE + 5 * PAGE)

    # ----- what is not

    def test_not_deterministic(self):
        """All of a value, though its upper bytes are the same in each run, and others than the program's."""
        capture = self.simple()
        kernel = capture.load(["not_deterministic"])["not_deterministic"]
        capture.block(OUT, 16)
        capture.after.put(OUT, bytes([255] * 16))
        capture.launch(kernel, OUT, 2)
        answer = self.replay(capture)
        self.assertEqual((answer["verdict"], answer["comparison"]["runs"]), ("equal", 2))
        self.check_memory(answer, compared=SIZE + 16, equal=SIZE, not_deterministic=16, different=0)

    def test_unknown_inputs(self):
        """What depends on memory that was not captured differs between the two runs."""
        capture = Capture()
        add = capture.load(["add"])["add"]
        for block in (A, BASE + UNIT, BASE + 2 * UNIT):
            capture.block(block, SIZE)
        capture.before.put(A, floats(*[1] * COUNT))
        capture.after.put(BASE + 2 * UNIT, floats(*[2] * COUNT))
        capture.launch(add, A, BASE + UNIT, BASE + 2 * UNIT, COUNT)
        answer = self.replay(capture)
        self.assertEqual(answer["comparison"]["unknown"], SIZE)
        self.assertGreater(answer["comparison"]["memory"]["not_deterministic"], 0)

    def test_wrong_byte(self):
        capture = self.simple()
        capture.after.put(A + 401, b"\x80")
        answer = self.replay(capture, status=DIFFERENT)
        self.assertEqual(answer["verdict"], "different")
        self.check_memory(answer, compared=SIZE, equal=SIZE - 1, different=1)
        self.assertEqual(answer["comparison"]["differences"], [
            {"where": "memory", "at": hex(A + 401), "bytes": 1, "expected": "80", "got": "00"}])
        text = self.start("--runs", "0").stdout
        self.assertIn(f"Different: 1 of {SIZE:,} compared bytes", text)
        self.assertIn(f"byte 401 of the block of {SIZE / 1024:.2f} KiB at {A:#x}", " ".join(text.split()))

    def test_wrong_copy_and_variable(self):
        capture = self.simple()
        capture.load(["count_runs"], variables={"runs": (bytes(4), bytes(4), b"\1\0\0\0")})
        capture.copy(None, A, 8, floats(4, 5))
        answer = self.replay(capture, status=DIFFERENT)
        self.check_memory(answer, different=0)
        self.assertEqual([(one["where"], one["bytes"]) for one in answer["comparison"]["differences"]],
                         [("variable runs", 1), (f"a copy of 8 bytes from {A:#x} to the host (call 102)", 1)])


if __name__ == "__main__":
    unittest.main()
