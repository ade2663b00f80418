"""`replay --energy`: what launches and the whole tape use, by the counter of the simulated NVML, which counts its readings."""
import json
import os
import pathlib
import unittest

from replaying import A, COUNT, DRIVER, EQUAL, USAGE, Replaying

NVML = pathlib.Path(os.environ.get("CUDABPF_NVML", DRIVER.parent / "fake_nvml")).resolve()


class ReplayEnergy(Replaying):
    def setUp(self):
        super().setUp()
        self.readings = self.folder.with_name("readings")

    def measured(self, capture, *arguments, **environment):
        return self.replay(capture, "--energy", "--window", "100ms", *arguments, LD_LIBRARY_PATH=f"{DRIVER}:{NVML}",
                           FAKE_NVML_RECORD=str(self.readings), **environment)

    def test_energy(self):
        """A window begins and ends where the counter has counted: here, from one reading to the next but one."""
        out = self.folder.with_name("out")
        capture = self.simple()
        fill = capture.load(["fill"])["fill"]
        capture.launch(fill, A, COUNT, 4)
        energy = self.measured(capture, "-o", str(out))["energy"]
        self.assertEqual(json.loads((out / "gpu_energy_report.json").read_text(encoding="utf-8")), energy)
        self.assertEqual([(one["kernel"], one["count"]) for one in sorted(energy["kernels"], key=lambda one: one["kernel"])],
                         [("fill", 1), ("scale", 2)])
        self.assertEqual((energy["launches_measured"], energy["launches_not_measured"]), (3, 0))
        read = [int(line.split()[-1]) for line in self.readings.read_text(encoding="utf-8").splitlines() if "energy" in line]
        differences = {round((b - a) / 1000, 3) for a, b in zip(read, read[2:])}
        for one in energy["kernels"]:
            joules = one["energy_uj"] * one["launches"] / 1e6
            self.assertIn(round(joules, 3), differences)
            self.assertAlmostEqual(one["mean_power_w"], joules / one["window_s"], places=3)
            self.assertAlmostEqual(one["counter_error_uj"], one["mean_power_w"] * 0.1 / one["launches"] * 1e6, places=3)
            above = (one["mean_power_w"] - energy["idle_power_w"]) * one["window_s"] / one["launches"] * 1e6
            self.assertAlmostEqual(one["warm_above_idle_uj"], above, places=3)
            low, high = sorted((one["warm_above_idle_uj"], one["cold_above_idle_uj"]))
            self.assertTrue(max(low, 0) <= one["in_turn_above_idle_uj"] <= max(high, 0), one)
        launches = sum(one["in_turn_above_idle_uj"] * one["count"] for one in energy["kernels"])
        self.assertAlmostEqual(energy["above_idle_j"] * 1e6, launches, places=2)
        tape = energy["iteration"]
        self.assertAlmostEqual(tape["each_us"], tape["window_s"] / tape["iterations"] * 1e6, places=3)
        predicted = energy["idle_power_w"] * tape["each_us"] / 1e6 + energy["above_idle_j"]
        self.assertAlmostEqual(tape["predicted_from_kernels_j"], predicted, places=6)
        self.assertAlmostEqual(tape["error_percent"], (predicted - tape["energy_j"]) / tape["energy_j"] * 100, places=6)

    def test_match(self):
        """What was not measured is left out of the prediction, and counted."""
        capture = self.simple()
        capture.launch(capture.load(["fill"])["fill"], A, COUNT, 4)
        energy = self.measured(capture, "--match", "fill")["energy"]
        self.assertEqual([one["kernel"] for one in energy["kernels"]], ["fill"])
        self.assertEqual((energy["launches_measured"], energy["launches_not_measured"]), (1, 2))

    def test_no_counter(self):
        energy = self.measured(self.simple(), FAKE_NVML_LACKS="energy")["energy"]
        self.assertEqual((energy["why_not"], energy["kernels"], energy["iteration"]), ("this GPU has no energy counter", [], None))

    def test_counter_goes_back(self):
        """It is read when it is looked for, then for the first launch, when it goes back; later it counts again."""
        energy = self.measured(self.simple(), FAKE_NVML_BACK="3")["energy"]
        self.assertEqual((energy["why_not"], energy["kernels"]), ("the energy counter went back", []))
        self.assertGreater(energy["iteration"]["energy_j"], 0)

    def test_no_nvml(self):
        energy = self.replay(self.simple(), "--energy", "--window", "100ms")["energy"]
        self.assertRegex(energy["why_not"], "libnvidia-ml")

    def test_text(self):
        self.simple().write(self.folder)
        done = self.start("--energy", "--window", "100ms", LD_LIBRARY_PATH=f"{DRIVER}:{NVML}")
        self.assertEqual(done.returncode, EQUAL, done.stderr)
        for said in (r"Equal: all", r"idle +[0-9.]+ W within", r"the tape +[0-9.]+ J ± ", r"predicted from its kernels: [0-9.]+ J, [+-]",
                     r"scale +[0-9.]+ +[-0-9.]+ +[-0-9.]+ "):
            self.assertRegex(done.stdout, said)

    def test_usage(self):
        self.simple().write(self.folder)
        for arguments in (["--energy", "--window", "1ms"], ["--window", "1s"], ["--match", "x"], ["--energy", "--isolated"]):
            self.refused(*arguments, status=USAGE)


if __name__ == "__main__":
    unittest.main()
