"""The systemd unit, under a systemd that boots in a container, on this machine's own files."""
import os
import re
import shutil
import subprocess

import harness
from harness import BUILD, LIBRARY, WORKLOADS

HERE = os.path.dirname(os.path.abspath(__file__))
# CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_PERFMON, CAP_BPF, CAP_CHECKPOINT_RESTORE
LATE_LIBRARY = 1 << 2 | 1 << 19 | 1 << 38 | 1 << 39 | 1 << 40
SCENARIO_UNIT = """[Unit]
Description=What the test does with cudabpf.service
[Service]
Type=oneshot
ExecStart=/bin/bash /check/service_scenario.sh
StandardOutput=file:/check/log
StandardError=file:/check/log
TimeoutStartSec=100
ExecStopPost=systemctl --no-block --force poweroff
"""


class Live(harness.LiveTest):
    def container(self):
        """A copy of this machine's root with cudabpf installed; changes to it stay within the test."""
        for tool in ("systemd-nspawn", "/lib/systemd/systemd"):
            if not shutil.which(tool):
                self.skipTest(f"{tool} not found: it boots a systemd to try the unit under")
        for name in ("changes", "work", "root", "check"):
            os.mkdir(f"{self.folder}/{name}")
        root = f"{self.folder}/root"
        layers = f"lowerdir=/,upperdir={self.folder}/changes,workdir={self.folder}/work"
        done = subprocess.run(["mount", "-t", "overlay", "-o", layers, "overlay", root], check=False,
                              stderr=subprocess.PIPE, text=True)
        if done.returncode:
            self.skipTest(f"no overlay of this machine's root can be mounted: {done.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "--lazy", root], check=True)

        subprocess.run(["cmake", "--install", BUILD, "--prefix", "/usr"], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "DESTDIR": root})
        shutil.copy(LIBRARY, f"{root}/usr/local/lib/libcuda.so.1")
        shutil.copy(f"{BUILD}/test/fake_nvml/libnvidia-ml.so.1", f"{root}/usr/local/lib")
        for path in (f"{WORKLOADS}/fake_calls", f"{HERE}/service_scenario.sh"):
            shutil.copy(path, f"{self.folder}/check")
        # Waiting ten seconds between a failure and the next start is for administrators, not for tests.
        drop_in = f"{root}/etc/systemd/system/cudabpf.service.d"
        os.makedirs(drop_in)
        with open(f"{drop_in}/soon.conf", "w", encoding="utf-8") as file:
            file.write("[Service]\nRestartSec=100ms\n")
        with open(f"{root}/etc/systemd/system/scenario.service", "w", encoding="utf-8") as file:
            file.write(SCENARIO_UNIT)
        return root

    def boot(self, root):
        # Without registering it with machined or systemd; by default, containers may not call bpf().
        command = ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--console=pipe",
                   f"--machine=cudabpf-{os.getpid()}", "--link-journal=no", "--capability=all",
                   "--system-call-filter=bpf perf_event_open", "--private-network",
                   f"--bind={self.folder}/check:/check", "-D", root, "--boot", "systemd.unit=scenario.service"]
        done = subprocess.run(command, check=False, timeout=110, stdin=subprocess.DEVNULL, text=True,
                              errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if not os.path.exists(self.check("log")):
            self.skipTest(f"no systemd boots in a container here: {done.stdout[-2000:]}")
        self.assertTrue(os.path.exists(self.check("passed")), self.result("log") + done.stdout[-2000:])

    def check(self, name):
        return f"{self.folder}/check/{name}"

    def result(self, name):
        with open(self.check(name), encoding="utf-8") as file:
            return file.read()

    def state(self, name):
        return dict(line.split("=", 1) for line in self.result(name).splitlines())

    def test_unit_traces_under_systemd(self):
        root = self.container()
        self.boot(root)

        # Killed, it was started again; stopped, it ended in order; refused, it stayed down.
        self.assertEqual(self.state("restarted"), {"ActiveState": "active", "NRestarts": "1"})
        self.assertEqual(self.state("stopped"), {"Result": "success", "ExecMainStatus": "0"})
        self.assertEqual(self.state("metrics_stopped"), {"Result": "success", "ExecMainStatus": "0"})
        self.assertEqual(self.state("refused"), {"Result": "exit-code", "ExecMainStatus": "2", "NRestarts": "0"})
        journal = self.result("journal")
        self.assertIn("--no-such-option", journal)
        lines = [line for line in journal.splitlines() if line.startswith("cudabpf: ") and not line.startswith("cudabpf: error")]
        for number, line in enumerate(line for line in lines if "tracing" in line):
            self.assertRegex(line, rf"^cudabpf: tracing every process on \S+ into trace_\S+_\d{{8}}T\d{{6}}\.000{number + 1}\.jsonl\.zst: "
                                   r"/usr/local/lib/libcuda\.so\.1 \(\d+ functions\)(, \S+ \(\d+ functions\))*$")
        self.assertEqual(sum("tracing" in line for line in lines), 2, journal)
        ends = [line for line in lines if "the trace ends" in line]
        self.assertEqual(len(ends), 1, journal)
        self.assertRegex(ends[0], r"^cudabpf: the trace ends \(terminated\): \d+ calls in 1 file, .*; nothing lost$")

        # A separate user, with nothing in effect, and with what a late library needs set aside.
        rights = dict(line.split(":\t") for line in self.result("rights").splitlines())
        user = rights["Uid"].split("\t")[0]
        self.assertEqual(rights["Uid"], "\t".join([user] * 4))
        self.assertGreater(int(user), 60000, "of those that systemd gives to a dynamic user")
        self.assertEqual((rights["CapEff"], rights["NoNewPrivs"]), ("0" * 16, "1"))
        self.assertEqual(int(rights["CapPrm"], 16), LATE_LIBRARY)

        # One file from each run, none overwritten, and no other user may read them.
        folder = f"{root}/var/log/private/cudabpf"
        names = sorted(os.listdir(folder))
        for number, name in enumerate(names):
            self.assertRegex(name, rf"^trace_.+_\d{{8}}T\d{{6}}\.000{number + 1}\.jsonl\.zst$")
        self.assertEqual(len(names), 2, journal)
        self.assertEqual(self.result("owners").split("\n")[:-1], [f"750 {user}", f"600 {user}", f"600 {user}"])

        # SIGKILL cut off the first after all of its calls; the second has its end.
        for name, record, whole in ((names[0], "first", False), (names[1], "second", True)):
            text = subprocess.run(["zstd", "-dcq", f"{folder}/{name}"], check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
            with open(self.path, "w", encoding="utf-8") as file:
                file.write(text)
            trace = self.read(whole=whole)
            self.assertEqual(trace.header["sampling"]["source"], "nvml")
            self.assertIn("clock_error", trace.header)  # the unit allows it
            self.record_folder = self.check(record)
            if whole:
                self.check_law(trace)
            profile = harness.profile_symbols("default")
            made = harness.merge(r.counts for r in self.records().values())
            self.assertGreater(made["cuStreamSynchronize"], 99)
            self.assertEqual(dict(trace.counts()), {k: v for k, v in made.items() if k in profile})
            self.assertEqual({(p["uid"], p["exe"]) for p in trace.processes if p["op"] == "start"},
                             {(0, "/check/fake_calls")})

    def test_units_are_confined(self):
        """By systemd's own reckoning, in which 10 is root with everything."""
        if not shutil.which("systemd-analyze"):
            self.skipTest("systemd-analyze not found: install systemd")
        for unit, most in (("cudabpf.service", 3.0), ("cudabpf-metrics.service", 3.3)):  # the second may use the network
            done = subprocess.run(["systemd-analyze", "security", "--no-pager", "--offline=true", f"{HERE}/../../packaging/{unit}"], check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if "--offline" in done.stderr:
                self.skipTest("systemd-analyze here reckons nothing from a file: it takes systemd 250")
            exposure = re.search(rf"Overall exposure level for {unit}: ([0-9.]+)", done.stdout)
            self.assertTrue(exposure, done.stdout + done.stderr)
            self.assertLess(float(exposure[1]), most, done.stdout)


if __name__ == "__main__":
    harness.main()
