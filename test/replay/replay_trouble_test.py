#!/usr/bin/env python3
"""cudabpf replay: what fails, what cannot be run, and folders that are not what they say.
usage: CUDABPF=build/cudabpf CUDABPF_DRIVER=build/test/fake_libcuda replay_trouble_test.py [ReplayTrouble.test_x]"""
import json
import pathlib
import unittest

from captures import BASE, PAGE, UNIT, floats
from replaying import A, B, COUNT, DIFFERENT, EQUAL, FAILED, SIZE, Replaying


class ReplayTrouble(Replaying):
    def test_kernel_that_prints(self):
        """The answer is alone on standard output."""
        capture = self.simple()
        capture.launch(capture.load(["print"])["print"])
        capture.write(self.folder)
        done = self.start("--json", "--runs", "1")
        self.assertEqual((done.returncode, json.loads(done.stdout)["verdict"]), (EQUAL, "equal"))
        self.assertIn("from a kernel", done.stderr)

    def test_fault(self):
        """The kernel that faults is named, though the driver reports it in a later call; the rest is run."""
        capture = self.simple()
        fault = capture.load(["fault"])["fault"]
        capture.launch(fault)
        capture.launch(capture.load(["fill"])["fill"], A, 10, 4)
        answer = self.replay(capture, status=FAILED)
        self.assertEqual(len(answer["failed"]), 1)
        self.assertEqual(answer["failed"][0]["what"], "fault (call 102)")
        self.assertIn("CUDA_ERROR_ILLEGAL_ADDRESS (700)", answer["failed"][0]["why"])
        self.assertEqual((answer["verdict"], len(answer["not_run"])), ("equal, but incomplete", 1))
        self.assertEqual([one["kernel"] for one in answer["timing"]["launches"]], ["scale", "fill"])

    def test_hang(self):
        capture = self.simple()
        capture.launch(capture.load(["hang"])["hang"])
        answer = self.replay(capture, status=FAILED, timeout="500ms")
        self.assertEqual(answer["failed"], [{"what": "hang (call 102)", "why": "it did nothing for 0.5 s"}])
        self.check_memory(answer, equal=SIZE)

    def test_refused(self):
        """By the capture, as a kernel or as a launch, and by the driver."""
        capture = self.simple()
        kernels = capture.load(["fill", "add", "fill_in_cluster"])
        capture.kernels[kernels["add"]]["refused"] = "a collective"
        capture.launch(kernels["add"], A, A, A, COUNT)
        capture.operation("launch", launch=capture.launched(kernels["fill"], A, COUNT, 9), refused="it waits for the host")
        capture.launch(kernels["fill_in_cluster"], A, COUNT, 9)
        capture.launch(capture.kernel("nowhere", 0))
        answer = self.replay(capture)
        self.assertEqual(answer["verdict"], "equal, but incomplete")
        self.assertEqual(sorted((one["what"], one["why"], one["count"], one["call"]) for one in answer["not_run"]), [
            ("add", "a collective", 1, 102), ("fill", "it waits for the host", 1, 103),
            ("fill_in_cluster", "cuLaunchKernelEx: CUDA_ERROR_INVALID_CLUSTER_SIZE (912)", 1, 104),
            ("nowhere", "cuLibraryGetKernel: CUDA_ERROR_NOT_FOUND (500)", 1, 105)])

    def test_addresses_that_are_taken(self):
        """The driver gives others and says nothing. Another process may get them; if none does, it is said which."""
        taken = pathlib.Path(self.folder).with_name("taken")
        taken.write_text(f"{A:x} {A + PAGE:x}\n", encoding="ascii")
        answer = self.replay(self.simple(), FAKE_CUDA_TAKEN=str(taken))
        self.assertEqual(answer["verdict"], "equal")
        self.assertFalse(taken.exists())
        never = self.simple()
        never.block(1 << 50, SIZE)
        self.folder = self.folder.with_name("never")
        never.write(self.folder)
        self.assertIn(f"where none of 8 processes got any: {1 << 50:#x} (32.0 MiB)", self.refused())

    def test_host_memory(self):
        """Pinned memory is where it was, also between a GPU's memory; it is not compared, since the program itself may
        write it."""
        for pinned in (BASE + 4 * UNIT, BASE + 3 * PAGE, BASE + UNIT - 2048):
            with self.subTest(hex(pinned)):
                self.folder = self.folder.with_name(f"capture-{pinned:x}")
                capture = self.simple()
                capture.block(pinned, 4096, kind="pinned")
                capture.before.put(pinned, floats(*[8] * 1024))
                capture.after.put(pinned, floats(*[9] * 1024))
                capture.copy(A, pinned + 4092, 4)
                capture.after.put(A, floats(8))
                self.check_memory(self.replay(capture), compared=SIZE, equal=SIZE)
                self.assertEqual(self.replay(capture, "--isolated")["verdict"], "equal")

    def test_without_contents(self):
        capture = self.simple()
        capture.manifest["contents"] = False
        capture.before, capture.after = type(capture.before)(), type(capture.after)()
        answer = self.replay(capture)
        self.assertEqual((answer["verdict"], "comparison" in answer), ("not compared", False))
        self.assertEqual([one["count"] for one in answer["timing"]["launches"]], [2])

    def test_several_gpus(self):
        capture = self.simple()
        capture.write(self.folder)
        path = self.folder / "manifest.json"
        manifest = json.loads(path.read_text())
        manifest["devices"] *= 2
        manifest["blocks"].append({"address": hex(B), "size": 4, "kind": "device", "device": 1})
        path.write_text(json.dumps(manifest))
        self.assertIn("work on several GPUs", self.refused())

    def test_no_driver(self):
        self.simple().write(self.folder)
        self.assertIn("libcuda.so.1", self.refused(LD_LIBRARY_PATH="/nonexistent"))
        self.assertIn("CUDA_ERROR_NO_DEVICE (100)", self.refused(FAKE_CUDA_FAIL="cuInit=100@*"))
        self.assertIn("cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY (2)", self.refused(FAKE_CUDA_FAIL="cuMemCreate=2@*"))
        self.assertIn("and Simulated H200 has 1.00 MiB", self.refused(FAKE_CUDA_MEMORY=str(1 << 20)))

    def test_broken_folders(self):
        capture = self.simple()
        capture.write(self.folder)
        for name, change, said in (("memory", lambda text: text[:-1], "is cut off"), ("data", lambda text: b"", "is cut off"),
                                   ("tape.jsonl", lambda text: text[:-9], "is cut off"),
                                   ("tape.jsonl", lambda text: text.replace(b'"kernel": 0', b'"kernel": 7'), "kernel is none"),
                                   ("manifest.json", lambda text: text[:-9], "is not JSON")):
            path = self.folder / name
            good = path.read_bytes()
            path.write_bytes(change(good))
            for mode in ("--list", "--full"):
                with self.subTest(name, mode=mode):
                    self.assertIn(said, self.refused(mode))
            path.write_bytes(good)
        image = next((self.folder / "images").iterdir())
        image.write_bytes(image.read_bytes()[:-1] + b"x")
        answer = self.replay(capture, status=DIFFERENT)
        self.assertIn("is not what its name says", answer["not_run"][0]["why"])

    def test_hostile_folders(self):
        """Sizes that nothing has: an answer or an error, but no signal, and soon."""
        for what, change in (("block", lambda capture: capture.block(1 << 44, 1 << 55)),
                             ("pinned", lambda capture: capture.block(1 << 44, 1 << 55, kind="pinned")),
                             ("copy", lambda capture: capture.operation("copy", copy={
                                 "rows": {"width": 1, "height": 1 << 30, "depth": 1 << 26}, "to": capture.place(A),
                                 "from": capture.place(B)})),
                             ("limit", lambda capture: capture.manifest.update(limits=[{"limit": 1 << 31, "value": 1 << 63}])),
                             ("graphs", lambda capture: capture.manifest.update(graphs=(1 << 32) - 1))):
            with self.subTest(what):
                self.folder = self.folder.with_name(what)
                capture = self.simple()
                change(capture)
                capture.write(self.folder)
                self.assertIn(self.start("--runs", "1").returncode, (EQUAL, DIFFERENT, FAILED))


if __name__ == "__main__":
    unittest.main()
