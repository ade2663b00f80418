"""Requests to the driver, seen at system calls: devices that any machine has stand in for the driver's here."""
import collections
import glob
import json
import os
import sys

import harness
from expected import TABLE
from harness import BUILD, LIBRARY, WORKLOADS

TABLES = os.path.join(os.path.dirname(TABLE), "../driver")

DEVICES = "1:3=nvidiactl,1:5=nvidia-uvm,1:7=nvidia0"  # /dev/null, zero and full, where an ioctl fails with ENOTTY
FAKE_DRIVER = "nvidiactl=/dev/null,nvidia-uvm=/dev/zero,nvidia0=/dev/full"
NAMES = {"nr": "escapes", "uvm": "uvm", "control": "controls", "class": "classes"}


def newest_names(table):
    """{number: name} for an unknown driver."""
    names = {}
    with open(f"{TABLES}/{table}.tsv", encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    until = lines[0].index("until")
    for row in lines[1:]:
        if row[until] == "-" or int(row[0], 16) not in names:
            names[int(row[0], 16)] = row[1]
    return names

ASK = """
import ctypes, mmap, os, select, struct, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
def ioctl(fd, command, argument): return libc.ioctl(fd, ctypes.c_ulong(command), argument)
ctl = os.open("/dev/null", os.O_RDWR)
uvm = os.open("/dev/zero", os.O_RDWR)
control = struct.pack("IIIIQII", 0xc1d00001, 0x5c000002, 0xa06c0101, 0, 0, 0, 0)
ioctl(ctl, 0xc020462a, control)
ioctl(ctl, 0xc02046ee, control)
inner = ctypes.create_string_buffer(control)
ioctl(ctl, 0xc01046d3, struct.pack("IIQ", 0x2a, 32, ctypes.addressof(inner)))
ioctl(ctl, 0xc020462a, None)
ioctl(uvm, 73, struct.pack("QQII", 0x7f0000000000, 4096, 0, 0))
other = os.open("/dev/urandom", os.O_RDWR)
ioctl(other, 0xc020462a, control)
mmap.mmap(uvm, 8192).close()
poll = select.poll(); poll.register(uvm); poll.poll(10)
thread = threading.Thread(target=lambda: ioctl(uvm, 0x30000001, bytes(16))); thread.start(); thread.join()
os.close(uvm)
os.close(other)
"""


class Live(harness.LiveTest):
    program = f"{BUILD}/test/live/cudabpf"  # CUDABPF_DEVICES names its driver's devices

    def trace_requests(self, *flags):
        env = dict(self.environment(), CUDABPF_DEVICES=DEVICES)
        done = self.run_cudabpf("run", "-q", "-o", self.path, "--kernel", *flags, "--", os.path.realpath(sys.executable),
                                "-c", ASK, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        trace = self.read()
        self.check_accounts(trace)
        requests = [line for line in trace.lines if line["type"] == "kernel"]
        self.assertEqual(trace.end["driver_calls"], len(requests))
        return trace, requests

    def test_operations(self):
        """Every operation on the devices, decoded, and none on others."""
        trace, requests = self.trace_requests()
        self.check_law(trace)
        # The interpreter's own start opens neither device; what it does with its standard input does not count.
        first = next(i for i, line in enumerate(requests) if line["op"] == "ioctl" and line["name"].startswith("NV_ESC"))
        opens = [line for line in requests[:first] if line["op"] == "open"]
        self.assertEqual([line["device_file"] for line in opens[-2:]], ["nvidiactl", "nvidia-uvm"])
        ioctls = [line for line in requests[first:] if line["op"] == "ioctl"]
        reported = [(line["name"], line.get("control"), line["device_file"], line.get("error")) for line in ioctls]
        self.assertEqual(reported, [
            ("NV_ESC_RM_CONTROL", "NVA06C_CTRL_CMD_GPFIFO_SCHEDULE", "nvidiactl", "ENOTTY"),
            ("0xee", None, "nvidiactl", "ENOTTY"),
            ("NV_ESC_RM_CONTROL", "NVA06C_CTRL_CMD_GPFIFO_SCHEDULE", "nvidiactl", "ENOTTY"),
            ("NV_ESC_RM_CONTROL", None, "nvidiactl", "ENOTTY"),
            ("UVM_CREATE_EXTERNAL_RANGE", None, "nvidia-uvm", "ENOTTY"), ("UVM_INITIALIZE", None, "nvidia-uvm", "ENOTTY")])
        self.assertEqual({line["group"] for line in (ioctls[0], ioctls[2])}, {"scheduling"})
        self.assertEqual((ioctls[0]["client"], ioctls[0]["object"]), ("0xc1d00001", "0x5c000002"))
        self.assertEqual([i for i, line in enumerate(ioctls) if "read_fault" in line], [3])
        self.assertEqual(trace.end["read_faults"], 1)
        self.assertEqual((ioctls[4]["base"], ioctls[4]["size"]), ("0x7f0000000000", 4096))
        self.assertNotEqual(ioctls[5]["tid"], ioctls[5]["pid"])
        self.assertFalse([line for line in requests if "call" in line or "status" in line])
        others = [(line["op"], line.get("size"), line["ret"]) for line in requests[first:] if line["op"] != "ioctl"]
        self.assertIn(("mmap", 8192, 0), others)
        self.assertIn(("poll", None, 1), others)
        self.assertIn(("close", None, 0), others)
        self.assertTrue(all(line["duration_us"] > 0 for line in requests))

    def check_record(self, trace, records):
        """Each operation in the simulated driver's record has one line, inside the same call, and there is no other."""
        names = {kind: newest_names(table) for kind, table in NAMES.items()}
        calls = {call["id"]: call for call in trace.calls}
        wanted, reported = collections.Counter(), collections.Counter()
        for path in glob.glob(f"{self.record_folder}/ioctls.*.jsonl"):
            with open(path, encoding="utf-8") as file:
                for line in map(json.loads, file):
                    symbol = line.get("symbol")
                    if harness.INSIDE and symbol == "cuInit":  # which loads the library that records
                        if not harness.MERGED:
                            continue
                        symbol = None
                    name = line["op"]
                    if name == "ioctl":
                        name = names["uvm" if line["device"] == "nvidia-uvm" else "nr"][line["nr"]]
                    result = line["result"] if line["op"] in ("ioctl", "poll") or line["result"] < 0 else 0
                    wanted[(line["tid"], line["device"], line["op"], name, names["control"].get(line.get("control")),
                            names["class"].get(line.get("class")), result, symbol)] += 1
        pids = {record.pid for record in records}
        for line in trace.lines:
            if line["type"] != "kernel" or line["op"] == "launch" or line["pid"] not in pids:
                continue
            call = calls[line["call"]] if "call" in line else None
            if call:
                self.assertEqual((call["pid"], call["tid"]), (line["pid"], line["tid"]))
                self.assertLessEqual(call["ts"], line["ts"])
                self.assertLessEqual(line["ts"] + line["duration_us"] * 1000, call["ts"] + call["duration_us"] * 1000 + 1)
            made = line.get("class") if line["name"] != "NV_ESC_RM_FREE" else None  # there, it is an object made before
            reported[(line["tid"], line["device_file"], line["op"], line["name"], line.get("control"), made, line["ret"],
                  call and harness.symbol_of(call))] += 1
        # What the program opens for itself (its output) is not the driver's device.
        self.assertEqual(wanted - reported, collections.Counter())
        self.assertEqual({key for key in reported - wanted if key[2] == "ioctl" or key[7]}, set())
        return wanted

    def test_inference(self):
        """Each ioctl of the simulated driver, with the call that it was made in, and how many each call made."""
        env = dict(self.environment(DRIVER=FAKE_DRIVER), CUDABPF_DEVICES=DEVICES)
        done = self.run_cudabpf("run", "-q", "--kernel", "--profile", "full", "-o", self.path, "--library", LIBRARY, "--",
                                f"{WORKLOADS}/fake_inference", "--library", LIBRARY, "--tokens", "3", "--threads", "2",
                                "--processes", "2", env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        trace = self.read()
        self.check_whole(trace)
        wanted = self.check_record(trace, self.records().values())
        self.assertGreater(sum(wanted.values()), 200)
        made = collections.Counter(line["call"] for line in trace.lines if line["type"] == "kernel" and
                                   line["op"] == "ioctl" and "call" in line)
        for call in trace.calls:
            if call["op"] == "launch":
                self.assertNotIn("ioctls", call)
            if not any(other.get("parent") == call["id"] for other in trace.calls):
                self.assertEqual(call.get("ioctls", 0), made[call["id"]], call)
                if "ioctls" in call:
                    self.assertLess(call["ioctl_us"], call["duration_us"])

    def test_not_asked_for(self):
        """Without --kernel there are none."""
        done = self.run_cudabpf("run", "-q", "-o", self.path, "--", os.path.realpath(sys.executable), "-c", ASK,
                                env=dict(self.environment(), CUDABPF_DEVICES=DEVICES))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line for line in self.read().lines if line["type"] == "kernel"], [])

    def test_machine(self):
        """All processes that make requests to the driver, each announced; the others are not in the trace."""
        nvml_record = f"{self.folder}/nvml.tsv"
        env = dict(self.environment(), CUDABPF_DEVICES="1:9=nvidiactl", LD_LIBRARY_PATH=self.simulated_nvml(),
                   FAKE_NVML_ASKS="/dev/urandom", FAKE_NVML_RECORD=nvml_record)
        tracer = self.start_cudabpf("--kernel", "-o", self.path, env=env)
        thread = self.start([os.path.realpath(sys.executable), "-c", ASK])
        self.assertEqual(thread.wait(), 0, thread.stderr())
        self.run_cudabpf("doctor")
        tracer.signal(2)
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        trace = self.read()
        self.check_law(trace)
        requests = [line for line in trace.lines if line["type"] == "kernel" and line["pid"] == thread.pid]
        self.assertEqual([line["op"] for line in requests], ["open", "ioctl", "close"])
        self.assertEqual([p["op"] for p in trace.processes if p["pid"] == thread.pid], ["start", "exit"])
        # cudabpf itself makes requests to the driver, too, for samples of the GPUs.
        self.assertGreater(os.path.getsize(nvml_record), 0)
        self.assertFalse([line for line in trace.lines if line.get("pid") == tracer.pid])

    def test_gpu_errors_of_the_log(self):
        """What the kernel's log says while tracing, and nothing from before or after."""
        def log(number):
            try:
                with open("/dev/kmsg", "w", encoding="utf-8") as kmsg:
                    kmsg.write(f"NVRM: Xid (PCI:0000:3b:00): {number}, pid=4321, name=python3, Ch 00000008\n")
            except OSError as error:
                self.skipTest(f"the kernel's log cannot be written to: {error}")
        log(13)
        tracer = self.start_cudabpf("--kernel", "-o", self.path)
        log(31)
        log(79)
        tracer.signal(2)
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        log(43)
        trace = self.read()
        self.check_law(trace)
        errors = [line for line in trace.lines if line["type"] == "error"]
        self.assertEqual([(e["op"], e["xid"], e["pid"], e["comm"], e["bus_id"]) for e in errors],
                         [("xid", number, 4321, "python3", "0000:3b:00") for number in (31, 79)])
        self.assertTrue(all(0 < e["ts"] < trace.end["ts"] and e["meaning"] for e in errors), errors)
        self.assertRegex(tracer.stderr(), r"Errors: the GPU reported 2 errors \(Xid\)\. See `cudabpf errors`\.")

    def test_without_tracepoints(self):
        done = self.run_cudabpf("run", "-o", self.path, "--kernel", "--no-feature", "syscall_tracepoints", "--", "true")
        self.assertEqual(done.returncode, 121, done.stderr)
        self.assertIn("--kernel", done.stderr.decode())
        self.assertFalse(os.path.exists(self.path))

    def test_losses(self):
        """A ring that is too small: everything lost is counted, to the last record."""
        ask = ASK[:ASK.index("ioctl(ctl, 0xc020462a")] + "for i in range(20000): ioctl(ctl, 0xc020462a, control)"
        done = self.run_cudabpf("run", "-q", "-o", self.path, "--kernel", "--ring-size", "8K", "--",
                                os.path.realpath(sys.executable), "-c", ask,
                                env=dict(self.environment(), CUDABPF_DEVICES=DEVICES))
        self.assertEqual(done.returncode, 0, done.stderr)
        trace = self.read()
        self.check_accounts(trace)
        lost = trace.end["losses"].get("ring_full_driver", 0)
        self.assertGreater(lost, 0)
        self.assertEqual(sum(line["count"] for line in trace.lost if line["reason"] == "ring_full_driver"), lost)
        requests = [line for line in trace.lines if line["type"] == "kernel" and line["op"] == "ioctl"]
        # An ioctl whose beginning was lost has one record less: its end is not waited for.
        self.assertLess(len(requests), 20000)
        self.assertGreaterEqual(len(requests) + lost, 20000)
        for line in requests:
            self.assertTrue("ret" in line or "return_lost" in line or "unfinished" in line, line)


if __name__ == "__main__":
    harness.main()
