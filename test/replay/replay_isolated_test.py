#!/usr/bin/env python3
"""cudabpf replay: kernels by themselves, and what is in a folder.
usage: CUDABPF=build/cudabpf CUDABPF_DRIVER=build/test/fake_libcuda replay_isolated_test.py [ReplayIsolated.test_x]"""
import json
import struct
import subprocess
import unittest

from captures import BASE, PAGE, UNIT, floats
from replaying import A, COUNT, CUDABPF, EQUAL, FAILED, NO_TARGET, OUT, SIZE, USAGE, Replaying


class ReplayIsolated(Replaying):
    # ----- --isolated

    def test_isolated(self):
        """Each launch is timed with the inputs of its place, and leaves the tape as it was."""
        capture = self.simple()
        kernels = capture.load(["scale_by_variable", "count_runs", "fill"], variables={
            "factor": (floats(9), floats(3)), "runs": (bytes(4), bytes(4), b"\1\0\0\0")})
        capture.block(OUT, 4)
        capture.launch(kernels["scale_by_variable"], A, COUNT)
        capture.launch(kernels["count_runs"], OUT)
        capture.after.put(A, floats(*[12] * COUNT))
        capture.after.put(OUT, b"\1\0\0\0")
        capture.copy(None, A, 4, floats(12))
        answer = self.replay(capture, "--isolated")
        self.assertEqual((answer["verdict"], answer["failed"], answer["comparison"]["variables"]["equal"]), ("equal", [], 8))
        self.check_memory(answer, equal=SIZE + 4)
        self.assertEqual([(one["kernel"], one["count"]) for one in answer["launches"]],
                         [("scale", 2), ("scale_by_variable", 1), ("count_runs", 1)])
        for one in answer["launches"]:
            for times in (one["warm_us"], one["cold_us"], one["in_turn_us"]):
                self.assertEqual(len(times["runs"]), 2)
                self.assertLessEqual(times["min"], times["median"])
        few = json.loads(self.start("--isolated", "--json", "--match", "*runs").stdout)
        self.assertEqual([one["kernel"] for one in few["launches"]], ["count_runs"])
        self.assertIn("no kernel's name is like x*", self.refused("--isolated", "--match", "x*", status=NO_TARGET))
        text = self.start("--isolated", "--runs", "3").stdout
        self.assertRegex(text, r"scale_by_variable +[0-9.]+ +[0-9.]+ +[0-9.]+-[0-9.]+ ")

    def test_isolated_by_chance_the_same(self):
        """Values that were the same before the launches ran by themselves, and no longer are."""
        capture = self.simple()
        kernel = capture.load(["seldom_deterministic"])["seldom_deterministic"]
        capture.block(OUT, 16)
        capture.after.put(OUT, bytes(16))
        capture.launch(kernel, OUT, 2)
        answer = self.replay(capture, "--isolated")
        self.assertGreater(answer["comparison"]["runs"], 2)
        self.check_memory(answer, compared=SIZE + 16, equal=SIZE, not_deterministic=16, different=0)

    def counting(self, is_zeroed):
        """A kernel that has something to do only while a counter is zero. -> the answer's last launch"""
        capture = self.simple()
        kernel = capture.load(["fill_by_counter"])["fill_by_counter"]
        capture.block(OUT, 24)
        capture.after.put(OUT, floats(7, 7) + bytes(8) + struct.pack("<Q", 1))
        if is_zeroed:
            capture.set(OUT + 16, 0, 8)
        capture.launch(kernel, OUT, 2, 7, OUT + 16)
        answer = self.replay(capture, "--isolated")
        self.check_memory(answer, equal=SIZE + 24)
        return answer["launches"][-1]

    def test_isolated_with_its_fill(self):
        """What the program zeroes right before a launch is zeroed before each that is timed."""
        launch = self.counting(is_zeroed=True)
        for times in ("warm_us", "cold_us", "in_turn_us"):
            self.assertGreater(launch[times]["median"], 250, times)
        self.assertNotIn("does_less_again", launch)

    def test_isolated_does_less_again(self):
        """Where nothing zeroes it, the launch is timed with memory as it was, once in each sample."""
        launch = self.counting(is_zeroed=False)
        self.assertGreater(launch["in_turn_us"]["median"], 250)
        self.assertTrue(launch["does_less_again"] and "warm_us" not in launch and "cold_us" not in launch, launch)
        self.assertIn("1 launch does less when run over and over", self.start("--isolated").stdout)

    def test_isolated_without_room(self):
        """Where memory cannot be kept on the GPU, the tape is run again up to the launch."""
        answer = self.replay(self.simple(), "--isolated", FAKE_CUDA_MEMORY=str(3 << 20))
        self.assertEqual((answer["verdict"], len(answer["launches"][0]["warm_us"]["runs"])), ("equal", 2))

    def test_isolated_failures(self):
        """What faults on the tape is named and left out; so is what the driver refuses; the rest is timed."""
        capture = self.simple()
        kernels = capture.load(["fault", "fill_in_cluster", "fill"])
        capture.launch(kernels["fault"])
        capture.launch(kernels["fill_in_cluster"], A, COUNT, 9)
        capture.launch(kernels["fill"], A, 10, 4)
        answer = self.replay(capture, "--isolated", status=FAILED)
        self.assertEqual([one["what"] for one in answer["failed"]], ["fault (call 102)"])
        self.assertEqual([(one["kernel"], "warm_us" in one) for one in answer["launches"]],
                         [("scale", True), ("fault", False), ("fill_in_cluster", False), ("fill", True)])
        self.assertEqual(sorted(one["what"] for one in answer["not_run"]), ["fault", "fill_in_cluster"])
        self.check_memory(answer, equal=SIZE, different=0)

    def test_isolated_fault(self):
        """A kernel that only faults if it is run more often than in the program ends its process, and no other."""
        capture = self.simple()
        kernels = capture.load(["advance", "fill"], variables={})
        capture.block(OUT, 8)
        capture.before.put(OUT, struct.pack("<Q", BASE + UNIT // 2))
        capture.block(BASE + UNIT // 2, 8)
        capture.after.put(OUT, struct.pack("<Q", BASE + UNIT // 2 + PAGE))
        capture.launch(kernels["advance"], OUT, PAGE)
        capture.launch(kernels["fill"], A, 10, 4)
        answer = self.replay(capture, "--isolated", status=FAILED)
        self.assertEqual([one["what"] for one in answer["failed"]], ["advance (call 102)"])
        self.assertRegex(answer["failed"][0]["why"], r"CUDA_ERROR_ILLEGAL_ADDRESS \(700\), run by itself$")
        self.assertEqual([(one["kernel"], "warm_us" in one) for one in answer["launches"]],
                         [("scale", True), ("advance", False), ("fill", True)])
        self.assertEqual(["in_turn_us" in one for one in answer["launches"]], [True, False, False])
        self.check_memory(answer, different=0)

    # ----- --list

    def test_list(self):
        capture = self.simple()
        kernels = capture.load(["fill"])
        capture.kernels[kernels["fill"]]["refused"] = "a collective"
        capture.manifest["refused"] = [{"what": "cuLaunchHostFunc", "why": "it calls the program", "count": 3}]
        capture.launch(kernels["fill"], A, COUNT, 9)
        capture.copy(None, A, 8, floats(4, 4))
        capture.write(self.folder)
        answer = json.loads(self.start("--list", "--json").stdout)
        self.assertEqual((answer["capture"]["host"], answer["capture"]["iteration"], answer["capture"]["command"]),
                         ("node7", 12, ["python3", "model.py"]))
        self.assertEqual([(one["kernel"], one["grid"], one["count"], one.get("refused")) for one in answer["launches"]],
                         [("scale", [1, 1, 1], 2, None), ("fill", [1, 1, 1], 1, "a collective")])
        self.assertEqual(answer["operations"]["copies_to_host"], {"count": 1, "bytes": 8})
        self.assertEqual(answer["memory"], {"device": {"count": 1, "bytes": SIZE}, "before_bytes": PAGE, "after_bytes": PAGE})
        self.assertEqual([(one["what"], one["count"]) for one in answer["refused"]], [("fill", 1), ("cuLaunchHostFunc", 3)])
        self.assertEqual(answer["here"], {"gpu": "Simulated H200", "driver": "13.0", "why": []})
        done = self.start("--list")
        self.assertEqual((done.returncode, done.stderr), (EQUAL, ""))
        for said in ("Iteration 12 of `python3 model.py`", "3 launches", "It can be run on this machine's Simulated H200"):
            self.assertIn(said, done.stdout)
        done = self.start("--list", LD_LIBRARY_PATH="/nonexistent")
        self.assertEqual(done.returncode, EQUAL)
        self.assertIn("It cannot be run here: libcuda.so.1", " ".join(done.stdout.split()))

    def test_output(self):
        out = self.folder.with_name("out")
        answer = self.replay(self.simple(), "-o", str(out))
        self.assertEqual(json.loads((out / "full_model_timing.json").read_text()), answer["timing"])
        self.assertIn("Excludes", self.refused("--list", "--full", status=USAGE).replace("excludes", "Excludes"))

    def test_process_is_not_for_users(self):
        done = subprocess.run([CUDABPF, "__replay_worker"], text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stdout), (USAGE, ""))


if __name__ == "__main__":
    unittest.main()
