"""What samples of a GPU say of a load with known times, and what taking them costs."""
import json
import os
import subprocess
import sys
import time


class Costs:
    """The CPU time of a process's threads, as long as it runs."""

    def __init__(self, pid):
        self.pid, self.of_threads, self.began, self.seen = pid, {}, {}, {}

    def look(self):
        try:
            for tid in os.listdir(f"/proc/{self.pid}/task"):
                with open(f"/proc/{self.pid}/task/{tid}/comm", encoding="utf-8") as file:
                    name = file.read().strip()
                with open(f"/proc/{self.pid}/task/{tid}/schedstat", encoding="utf-8") as file:
                    used = int(file.read().split()[0])
                self.began.setdefault(name, (time.monotonic(), used))
                self.seen[name] = (time.monotonic(), used)
        except OSError:
            pass  # it has ended meanwhile

    def share(self, name):
        """A thread's share of a CPU, from the first look at it to the last; None: it was not seen."""
        if name not in self.seen:
            return None
        (begin, before), (end, after) = self.began[name], self.seen[name]
        return (after - before) / 1e9 / (end - begin) if end > begin else None


def run(cudabpf, path, workload, *flags, program=()):
    """-> the trace's lines, what the workload printed, the costs"""
    with subprocess.Popen([cudabpf, "run", "-q", "-o", path, *flags, "--", sys.executable, workload, *program],
                          stdout=subprocess.PIPE, text=True) as tracer:
        costs = Costs(tracer.pid)
        while tracer.poll() is None:
            costs.look()
            time.sleep(0.2)
        printed = tracer.stdout.read()
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return lines, json.loads(printed.splitlines()[-1]), costs


def of(lines, device, begin, end):
    """A device's samples that lie between two times on CLOCK_MONOTONIC, with their windows."""
    shift = lines[0]["clocks"]["monotonic_ns"]
    return [line for line in lines if line["type"] == "gpu" and line["gpu"] == device and
            begin <= line["ts"] + shift - line.get("window_ms", 0) * 1e6 and line["ts"] + shift <= end]


def mean(samples, field):
    values = [sample[field] for sample in samples if field in sample]
    return sum(values) / len(values) if values else None


def energy(samples):
    """-> joules by the counter, between its first and last reading, and by the power sampled between them"""
    read = [sample for sample in samples if "energy_j" in sample]
    if len(read) < 2:
        return 0, 0
    powered = [s for s in samples if read[0]["ts"] <= s["ts"] <= read[-1]["ts"] and "power_w" in s]
    by_power = sum((a["power_w"] + b["power_w"]) / 2 * (b["ts"] - a["ts"]) / 1e9 for a, b in zip(powered, powered[1:]))
    return read[-1]["energy_j"] - read[0]["energy_j"], by_power
