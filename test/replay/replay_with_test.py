#!/usr/bin/env python3
"""cudabpf replay --with: other code in a kernel's place.
usage: CUDABPF=build/cudabpf CUDABPF_DRIVER=build/test/fake_libcuda replay_with_test.py [ReplayWith.test_x]"""
import json
import os
import struct
import unittest

from captures import Capture, floats
from exporting import Exporting, OTHER
from replaying import A, COUNT, DIFFERENT, EQUAL, FAILED, NO_TARGET, OUT, SIZE, USAGE


class ReplayWith(Exporting):
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

    def test_with_its_fill(self):
        """What is zeroed before the launch is zeroed before each that is timed, too."""
        capture = Capture()
        fill = capture.load(["fill_by_counter"])["fill_by_counter"]
        capture.block(OUT, 24)
        capture.after.put(OUT, floats(7, 7) + bytes(8) + struct.pack("<Q", 1))
        capture.set(OUT + 16, 0, 8)
        capture.launch(fill, OUT, 2, 7, OUT + 16)
        self.export(capture, "fill_by_counter")
        answer = self.with_code(self.image("fill_by_counter"))
        self.assertEqual(answer["verdict"], "same")
        for side in ("original", "candidate"):
            for times in ("warm_us", "cold_us"):
                self.assertGreater(answer["launches"][0][side][times]["median"], 250)

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
        answer = self.with_code(self.image("add hang"), status=FAILED, timeout="2s")
        self.assertEqual(answer["failed"][0]["why"], "it did nothing for 2 s")

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

    def test_poison_that_fails_in_part(self):
        """Where it reads what it writes, and fails with anything else there, the rest is poisoned nevertheless."""
        capture = Capture()
        fill = capture.load(["fill_in_turn"])["fill_in_turn"]
        capture.block(OUT, SIZE)
        capture.block(OTHER, 64)
        capture.before.put(OUT, b"x" * SIZE)
        capture.before.put(OTHER, struct.pack("<Q", 0))
        capture.launch(fill, OUT, COUNT, 3.0, OTHER)
        capture.after.put(OUT, floats(*[3.0] * COUNT))
        capture.after.put(OTHER, struct.pack("<Q", 1))
        self.export(capture, "fill_in_turn")
        answer = self.with_code(self.image("fill_in_turn"), runs="0")
        self.assertEqual(answer["verdict"], "same")
        self.assertRegex(answer["notes"][0], f"^64 of {SIZE + 64} bytes that it writes could not be poisoned")
        self.assertGreaterEqual(answer["occurrences"][0]["poisoned"], SIZE)

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
    unittest.main()
