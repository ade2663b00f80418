"""Metrics of programs that share a GPU, against CUPTI's account of each; and what a dump of the flight recorder costs a model."""
import collections
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

import fidelity
import toolkit
import turns

sys.path.append(os.path.join(toolkit.HERE, "../metrics"))
from page import Page  # noqa: E402  pylint: disable=wrong-import-position

SHARING = {  # names, and what they are copies of
    "storm-of-one": ("launch_storm", "--launches", "200000"),
    "storm-of-three": ("launch_storm", "--launches", "100000", "--threads", "3", "--streams", "2"),
    "copying": ("copies",),
    "allocating": ("allocations",),
}
CLASSES = {  # and CUPTI's names of their functions
    "launch": r"cu(LaunchKernel|LaunchKernelEx|LaunchCooperativeKernel|GraphLaunch)(_ptsz)?",
    "copy_to_device": r"cuMemcpyHto[DA](Async)?_v2(_pt[sd][sz])?",
    "copy_to_host": r"cuMemcpy[DA]toH(Async)?_v2(_pt[sd][sz])?",
    "wait": r"cu(Ctx|Stream|Event)Synchronize(_ptsz|_v2)?",
}
MOST_ADDED = 0.01  # of a token's time, by a dump, if that can be told from nothing at all
SECONDS, TURN = 40, 1.0


class Metrics:
    def __init__(self, machine, check, skipped, folder):
        self.machine, self.check, self.skipped, self.folder = machine, check, skipped, folder

    @contextlib.contextmanager
    def exporter(self, *arguments):
        """cudabpf as an exporter -> its process, and what returns a page"""
        said = f"{self.folder}/metrics.said"
        with open(said, "w", encoding="utf-8") as errors, \
                subprocess.Popen([self.machine.cudabpf, "metrics", "--listen", "127.0.0.1:0", *arguments], stderr=errors) as exporter:
            def address():
                with open(said, encoding="utf-8") as file:
                    found = re.search(r"http://\S+/metrics", file.read())
                return found and found[0]
            while not address():
                if exporter.poll() is not None:
                    sys.exit(f"cudabpf metrics: status {exporter.returncode}")
                time.sleep(0.05)

            def page():
                with urllib.request.urlopen(address(), timeout=30) as answer:
                    return Page(answer.read().decode())
            try:
                yield exporter, page
            finally:
                exporter.terminate()

    def sharing(self):
        """Programs that share the GPU have numbers of their own, which are CUPTI's."""
        prefix, env = self.machine.with_cupti()
        with self.exporter("--kernel") as (_, page):
            started = {}
            for name, (program, *arguments) in SHARING.items():
                shutil.copy(f"{self.folder}/{program}", f"{self.folder}/{name}")
                started[name] = subprocess.Popen([f"{self.folder}/{name}", *arguments], env=env, stdout=subprocess.DEVNULL)
            statuses = {name: one.wait() for name, one in started.items()}
            found = page()
        self.check("metrics: the programs end well", not any(statuses.values()), statuses)
        truth = fidelity.read_truth(prefix)
        for name, one in started.items():
            seen = [line for line in truth[one.pid] if "name" in line and "failed" not in line]
            for kind, functions in CLASSES.items():
                calls = [line for line in seen if re.fullmatch(functions, line["name"])]
                counted = found.of("cudabpf_calls_total", program=name, function_class=kind)
                self.check(f"metrics: {name}, {kind}: {len(calls)} calls, as CUPTI has it", counted == len(calls), counted)
            failed = sum("failed" in line for line in truth[one.pid])
            counted = found.of("cudabpf_failed_calls_total", program=name)
            self.check(f"metrics: {name}: {failed} failed calls", counted == failed, counted)
            copied = sum(line["size"] for line in seen if re.fullmatch(CLASSES["copy_to_device"], line["name"]))
            counted = found.of("cudabpf_copy_requested_bytes_total", program=name, function_class="copy_to_device")
            self.check(f"metrics: {name}: {copied} bytes to the device", counted == copied, counted)
        self.check_machine(found)

    def check_machine(self, found):
        calls, sums = found.of("cudabpf_node_calls_total"), found.of("cudabpf_calls_total")
        self.check(f"metrics: {calls:.0f} calls of the machine, the sum over all programs", calls and calls == sums, sums)
        lost = found.of("cudabpf_lost_events_total") + found.of("cudabpf_uncounted_losses_total")
        self.check("metrics: nothing is lost", lost == 0, lost)
        self.check("metrics: ioctls of the programs", found.of("cudabpf_ioctls_total", program="copying") > 100)
        listed = subprocess.run(["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"], check=True, stdout=subprocess.PIPE, text=True)
        named = {dict(key)["gpu_uuid"] for key in found.samples["cudabpf_gpu_power_watts"]}
        self.check("metrics: power of each GPU, by nvidia-smi's UUID", named == set(listed.stdout.split()), named)
        figures = collections.Counter(name for name in found.samples if name.startswith("cudabpf_gpu_"))
        print(f"        of GPUs: {', '.join(sorted(figures))}; cudabpf itself: {found.of('process_cpu_seconds_total')} s, "
              f"{found.of('process_resident_memory_bytes') / 2**20:.0f} MiB")

    def dump(self):
        """A model decodes, and every second turn the flight recorder writes what it keeps: the tokens of such turns take no longer."""
        kept = f"{self.folder}/kept.jsonl.zst"
        command = [sys.executable, f"{toolkit.HERE}/../../scripts/workloads/loops.py", "--rounds", "100000000", "--only", "decode", "--part", "0.05"]
        with self.exporter("--keep-last", "5s", "-o", kept) as (exporter, page), open(f"{self.folder}/rounds", "w+", encoding="utf-8") as output, \
                subprocess.Popen(command, stdout=output) as program:
            try:
                while not os.path.getsize(output.name):
                    if program.poll() is not None:
                        sys.exit(f"{' '.join(command)}: status {program.returncode}")
                    time.sleep(0.1)
                time.sleep(5)  # so that it keeps as much as it will
                dumped = []
                for number in range(int(SECONDS / TURN) | 1):
                    if number % 2:
                        exporter.send_signal(signal.SIGUSR1)
                    dumped.append(turns.Turn("dump" if number % 2 else "none", lambda _: time.sleep(TURN), program.pid))
                lost = page().of("cudabpf_lost_events_total")
            finally:
                program.terminate()
            output.seek(0)
            turns.take_rounds(dumped, output, margin=TURN / 20)
        written = [file for file in os.listdir(self.folder) if file.startswith("kept")]
        wanted = sum(turn.name == "dump" for turn in dumped)
        self.check(f"metrics: {len(written)} dumps while a model decodes", len(written) >= wanted - 1, wanted)
        self.check("metrics: nothing is lost meanwhile", lost == 0, lost)
        found = turns.added(dumped, rate=True)
        if not found:
            self.check("metrics: enough turns of the model", False, [len(turn.figures) for turn in dumped])
            return
        base, middle, low, high, count = found
        self.check(f"metrics: a dump adds {middle:+.1f} µs to a token of {base:.0f} µs ({100 * middle / base:+.2f} %, "
                   f"{100 * low / base:+.2f} to {100 * high / base:+.2f}; {count} dumps)", low < MOST_ADDED * base)

    def run(self):
        if self.machine.cupti:
            self.sharing()
        else:
            self.skipped("metrics: programs that share a GPU", "the toolkit has no CUPTI")
        if toolkit.sees_gpu("torch, transformers"):
            self.dump()
        else:
            self.skipped("metrics: a dump while a model decodes", "PyTorch or transformers are not installed")
