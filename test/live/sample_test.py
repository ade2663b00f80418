"""How busy, how hot, how much: a trace's samples of GPUs against what the simulated NVML returned."""
import collections
import os
import re
import time

import harness
from harness import LIBRARY, WORKLOADS

# Fields, what the simulated NVML calls them, and its units in one of the field's, with the field's decimals.
FIGURES = (("power_w", "instant", 1000, 1), ("energy_j", "energy", 1000, 3), ("sm_clock_mhz", "sm_clock", 1, 0),
           ("mem_clock_mhz", "mem_clock", 1, 0), ("temperature_c", "temperature", 1, 0), ("memory_used", "memory", 1, 0),
           ("sm_active", "metric2", 1, 1), ("sm_occupancy", "metric3", 1, 1),
           ("tensor_active", "metric5", 1, 1), ("dram_active", "metric10", 1, 1),
           ("pcie_tx", "metric20", 1 / 2**20, 0), ("pcie_rx", "metric21", 1 / 2**20, 0))
THROTTLES = {0x4: "power_cap", 0x8: "hardware", 0x10: "sync_boost", 0x20: "thermal", 0x40: "hardware_thermal", 0x80: "power_brake"}


def command(seconds):
    return ["sh", "-c", f"'{WORKLOADS}/fake_calls' --library '{LIBRARY}' 'setup; malloc a 4K; free a'; sleep {seconds}"]


class Live(harness.LiveTest):
    def sampled(self, *flags, seconds=1.3, **nvml):
        """Traces a command that calls CUDA and sleeps, where NVML is the simulated one."""
        self.nvml_record = f"{self.folder}/nvml.tsv"
        settings = {f"FAKE_NVML_{name}": str(value) for name, value in {"RECORD": self.nvml_record, **nvml}.items()}
        env = dict(self.environment(), LD_LIBRARY_PATH=self.simulated_nvml(), **settings)
        done = self.run_cudabpf("run", "-o", self.path, "--library", LIBRARY, *flags, "--", *command(seconds), env=env)
        self.stderr = done.stderr.decode()
        self.assertEqual(done.returncode, 0, self.stderr)
        trace = self.read()
        self.check_accounts(trace)
        self.assertEqual(trace.counts()["cuMemFree_v2"], 1)
        return trace

    def values_returned(self):
        returned = collections.defaultdict(list)
        with open(self.nvml_record, encoding="utf-8") as file:
            for what, device, value in (line.rstrip("\n").split("\t") for line in file):
                returned[what, int(device)].append(float(value) if value else None)
        return returned

    def check_device(self, trace, device, returned):
        samples = [line for line in trace.of("gpu") if line["gpu"] == device]
        for field, what, scale, decimals in FIGURES:
            # The first value was read before the trace began, to see whether NVML has it at all.
            wanted = [round(value / scale, decimals) for value in returned[what, device][1:]]
            self.assertEqual([sample[field] for sample in samples if field in sample], wanted, f"{field} of GPU {device}")
            self.assertTrue(wanted, field)
        wanted = [[name for bit, name in THROTTLES.items() if int(bits) & bit] for bits in returned["throttle", device][1:]]
        self.assertEqual([sample["throttle"] for sample in samples if "throttle" in sample], wanted)
        return samples

    def test_samples(self):
        trace = self.sampled("--sample=50", GPUS=2, PIDS="4242,7")
        self.check_law(trace)
        sampling = trace.header["sampling"]
        self.assertEqual((sampling["source"], sampling["period_ms"], sampling["window_ms"], sampling["slow_ms"]),
                         ("nvml", 50, 100, 1000))
        for index, gpu in enumerate(sampling["gpus"]):
            self.assertEqual(gpu, {"gpu": index, "name": "Simulated H100", "uuid": f"GPU-5a1e0000-{index}",
                                   "bus_id": f"00000000:{0x3b + index:02X}:00.0", "activity": "gpm", "power": "instant",
                                   "lacks": ["nvlink_rx", "nvlink_tx"]})
        self.assertEqual(len(sampling["gpus"]), 2)
        returned = self.values_returned()
        for device in range(2):
            samples = self.check_device(trace, device, returned)
            times = [sample["ts"] for sample in samples]
            self.assertGreater(len(times), 8)
            self.assertTrue(all(b - a >= 50e6 for a, b in zip(times, times[1:-1])), times)
            windows = [sample["window_ms"] for sample in samples if "window_ms" in sample]
            self.assertTrue(windows and min(windows) >= 100, windows)
            self.assertIn("energy_j", samples[0])
            self.assertIn("energy_j", samples[-1])
            named = [sample["processes"] for sample in samples if "processes" in sample]
            memory = returned["processes", device][1:]
            self.assertEqual(named, [[{"pid": 4242, "memory": of}, {"pid": 7}] for of in memory])
            self.assertLessEqual(times[-1], trace.end["ts"])
        self.assertIn(("shutdown", 0), returned)
        self.assertRegex(self.stderr, r"GPUs \(NVML\)(?s:.)*GPU 0 .* W(?s:.)*GPU 1 ")

    def test_old_gpu(self):
        """One without GPM, the counter of energy and power at an instant: the header says what is read instead."""
        trace = self.sampled(LACKS="gpm,energy,instant")
        self.check_law(trace)
        gpu, = trace.header["sampling"]["gpus"]
        self.assertEqual((gpu["activity"], gpu["why"], gpu["power"], gpu["lacks"]),
                         ("utilization", "this GPU has no GPM", "average", ["energy"]))
        returned, samples = self.values_returned(), trace.of("gpu")
        self.assertEqual([sample["utilization"] for sample in samples if "utilization" in sample], returned["utilization", 0][1:])
        self.assertEqual([sample["power_w"] for sample in samples], [round(mw / 1000, 1) for mw in returned["average", 0][1:]])
        self.assertEqual([sample for sample in samples if {"sm_active", "energy_j", "window_ms"} & set(sample)], [])

    def test_failing(self):
        """Readings that fail are counted as losses; the others are there."""
        trace = self.sampled(FAILS="temperature:2")
        self.assertGreaterEqual(trace.end["losses"].pop("gpu_sample"), 2)
        self.assertEqual(trace.end["losses"], {})
        self.assertEqual([line for line in trace.of("gpu") if "temperature_c" in line], [])
        self.assertEqual({loss["detail"] for loss in trace.lost}, {"GPU 0: temperature could not be read (error 999)"})
        self.assertTrue(all("power_w" in line for line in trace.of("gpu")))

    def test_lost_gpu(self):
        trace = self.sampled(GPUS=2, LOST=80)
        self.assertEqual(trace.end["losses"], {"gpu_sample": 1})
        self.assertEqual(trace.lost[0]["detail"], "GPU 0 is lost")
        ends = {device: max(line["ts"] for line in trace.of("gpu") if line["gpu"] == device) for device in range(2)}
        self.assertLess(ends[0], ends[1])

    def test_odd_figures(self):
        for odd, lost in (("nan", False), ("negative", True), ("huge", True)):
            with self.subTest(odd):
                trace = self.sampled(ODD=odd)
                self.assertEqual([line for line in trace.of("gpu") if "sm_active" in line], [])
                self.assertEqual("gpu_sample" in trace.end["losses"], lost)

    def test_hanging(self):
        """NVML that does not answer holds up nothing for long, nor does cudabpf miss what others map meanwhile."""
        self.start(["sh", "-c", "while :; do /bin/true; done"])
        for what in ("init", "energy"):
            with self.subTest(what):
                begin = time.monotonic()
                trace = self.sampled(seconds=0.1, HANGS=what)
                self.assertLess(time.monotonic() - begin, 20)
                if what == "init":
                    self.assertEqual(trace.header["sampling"], {"source": "none", "why": "NVML did not answer within 3 s"})
                else:
                    self.assertEqual([loss["count"] for loss in trace.lost], [None])
                self.assertEqual(trace.of("gpu"), [])

    def test_redacted(self):
        trace = self.sampled("--redact")
        self.assertEqual([gpu["uuid"] for gpu in trace.header["sampling"]["gpus"]], [""])
        self.assertTrue(trace.of("gpu"))

    def test_energy(self):
        """`cudabpf energy` shows the difference between the counter's first and last readings in the run."""
        self.sampled(seconds=2.2)
        returned = self.values_returned()["energy", 0][1:]
        done = self.run_cudabpf("energy", "--json", self.path)
        self.assertEqual(done.returncode, 0, done.stderr)
        gpu = harness.json.loads(done.stdout)["gpu_energy_report"]["gpus"][0]
        self.assertAlmostEqual(gpu["all"]["energy_j"], (returned[-1] - returned[0]) / 1000, 3)

    def test_no_sample(self):
        trace = self.sampled("--no-sample")
        self.assertEqual(trace.header["sampling"], {"source": "none", "why": "--no-sample"})
        self.assertEqual(trace.of("gpu"), [])
        self.assertFalse(os.path.exists(self.nvml_record))

    def test_switches(self):
        """Where the driver's records of context switches cannot be read, the header and the page say why, and nothing else changes."""
        if os.path.exists("/dev/nvidiactl"):
            self.skipTest("this machine has an NVIDIA driver")
        plain, trace = self.sampled(), self.sampled("--switches")
        self.check_law(trace)
        self.assertEqual(trace.header["sampling"].pop("switches_why"), "no NVIDIA driver is loaded")
        self.assertEqual(trace.header["sampling"], plain.header["sampling"])
        self.assertTrue(trace.of("gpu"))
        self.assertEqual([line for line in trace.of("gpu") if "residents" in line], [])
        self.assertEqual(trace.end["losses"], {})
        self.assertRegex(self.stderr, "which processes have the GPUs is not recorded: no NVIDIA driver is loaded")
        self.assertIn("Which processes had the GPUs was not recorded: no NVIDIA driver is loaded.", self.stderr)
        done = self.run_cudabpf("summary", self.path)
        self.assertIn(b"Which processes had the GPUs was not recorded: no NVIDIA driver is loaded.", done.stdout)
        done = self.run_cudabpf("run", "-o", self.path, "--no-sample", "--switches", "--", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"--switches", done.stderr)

    def test_no_nvml(self):
        """Without NVML nothing changes, unless samples were requested."""
        for flags in ((), ("--sample",), ("--sample=20",)):
            done = self.run_cudabpf("run", "-o", self.path, "--library", LIBRARY, *flags, "--", *command(0))
            self.assertEqual(done.returncode, 0, done.stderr)
            trace = self.read()
            self.check_law(trace)
            sampling = trace.header["sampling"]
            if sampling["source"] != "none":
                self.skipTest("this machine has NVML and a GPU")
            self.assertEqual(trace.of("gpu"), [])
            self.assertEqual(bool(re.search("the GPUs are not sampled: .", done.stderr.decode())), bool(flags))
        for period in ("5", "19ms", "61s", "often", ""):
            done = self.run_cudabpf("run", "-o", self.path, f"--sample={period or '-1'}", "--", "true")
            self.assertEqual(done.returncode, 2, period)
            self.assertIn(b"--sample", done.stderr)


if __name__ == "__main__":
    harness.main()
