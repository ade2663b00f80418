#!/usr/bin/env python3
"""cudabpf replay --compare: beside the times in a trace of the same run.
usage: CUDABPF=build/cudabpf CUDABPF_DRIVER=build/test/fake_libcuda replay_compare_test.py [ReplayCompare.test_x]"""
import json
import unittest

from replaying import A, COUNT, DIFFERENT, EQUAL, FAILED, Replaying, USAGE
from captures import floats


class ReplayCompare(Replaying):
    def setUp(self):
        super().setUp()
        self.trace = self.folder.with_name("trace.jsonl")

    def with_copy(self):
        capture = self.simple()
        capture.copy(None, A, 4, floats(4))
        return capture

    def compared(self, capture, *arguments, status=EQUAL, **trace):
        capture.trace(self.trace, **trace)
        return self.replay(capture, "--compare", str(self.trace), *arguments, status=status)

    def test_compare(self):
        out = self.folder.with_name("out")
        answer = self.compared(self.with_copy(), "-o", str(out))
        self.assertEqual(answer["actual"], {"gpu_busy_us": 30, "gpu_sum_us": 30, "gpu_span_us": 50, "wall_us": 0.004, "operations": 3})
        self.assertGreater(answer["full_model_inference_us"], 0)
        launch = answer["launches"][0]
        self.assertEqual((launch["kernel"], launch["count"], launch["measured"], launch["actual_median_us"]), ("scale", 2, 2, 10))
        self.assertAlmostEqual(answer["predicted_from_kernels_us"], 10 + 2 * launch["in_turn_us"], places=2)
        self.assertAlmostEqual(answer["error_percent"], (answer["predicted_from_kernels_us"] - 30) / 30 * 100, places=2)
        self.assertAlmostEqual(answer["full_model_error_percent"], (answer["full_model_inference_us"] - 30) / 30 * 100, places=2)
        tiers = {tier["tier"]: tier for tier in answer["tier_breakdown"]}
        self.assertEqual([(name, tier["unique_kernels"], tier["operations"], tier["actual_us"]) for name, tier in tiers.items()],
                         [("copies and fills", 0, 1, 10), ("GEMM libraries", 0, 0, 0), ("everything else", 1, 2, 20)])
        self.assertEqual(tiers["copies and fills"]["method"], "the trace's own time")
        self.assertEqual(answer["launches_judged"], 2)
        self.assertEqual(json.loads((out / "comparison_report.json").read_text(encoding="utf-8")).keys(), answer.keys())
        self.assertTrue((out / "full_model_timing.json").exists())
        text = " ".join(self.start("--compare", str(self.trace), "--runs", "2").stdout.split())
        for said in ("30.0 us in which the GPU was busy", "Where the differences come from", "No operations overlapped."):
            self.assertIn(said, text)

    def test_graph(self):
        """Its nodes are known by what they launch."""
        capture = self.simple()
        fill = capture.load(["fill"])["fill"]
        capture.manifest["graphs"] = 1
        capture.operation("graph", graph=0, nodes=[{"launch": capture.launched(fill, A, COUNT, 2)},
                                                   {"launch": capture.launched(0, A, COUNT, 2)}])
        capture.after.put(A, floats(*[4] * COUNT))
        answer = self.compared(capture)
        self.assertEqual(sorted((one["kernel"], one["measured"]) for one in answer["launches"]), [("fill", 1), ("scale", 3)])

    def test_not_as_the_program_left(self):
        capture = self.simple()
        capture.after.put(A, floats(5))
        self.assertEqual(self.compared(capture, status=DIFFERENT)["verdict"], "different")

    def test_refused(self):
        capture = self.with_copy()
        capture.write(self.folder)
        for trace, said in (({"gpu": False}, "the trace has no times of GPUs"), ({"pid": 43}, "one of process 43, not of 42"),
                            ({"header": {"gpus": [{"index": 0, "name": "H100", "uuid": "GPU-2"}]}}, "the trace is of H100, and the capture of"),
                            ({"header": {"clocks": {"realtime_ns": 5}}}, "the trace is of another run")):
            capture.trace(self.trace, **trace)
            self.assertIn(said, " ".join(self.refused("--compare", str(self.trace)).split()))
        capture.trace(self.trace, gpu=False)
        self.assertIn("--gpu", self.refused("--compare", str(self.trace)))
        self.refused("--compare", str(self.trace), "--full", status=USAGE)
        capture.operations.pop()
        capture.trace(self.trace)
        self.assertIn("1 of the 3 calls on the tape are not in the trace", " ".join(self.refused("--compare", str(self.trace)).split()))

    def test_another_kind_of_gpu(self):
        capture = self.simple()
        written = capture.write(self.folder) / "manifest.json"
        written.write_text(written.read_text(encoding="ascii").replace("Simulated H200", "Simulated H100"), encoding="ascii")
        capture.trace(self.trace, header={"gpus": []})
        self.assertIn("captured on Simulated H100", " ".join(self.refused("--compare", str(self.trace), status=FAILED).split()))


if __name__ == "__main__":
    unittest.main()
