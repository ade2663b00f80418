"""GPU times in windows (--gpu=TIME/TIME): whether all that is submitted in them is recorded, each operation with its very call, what
metrics count by them, and what they cost a model."""
import concurrent.futures
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import time

import metrics
import times
import toolkit

LAUNCHES = re.compile(r"cu(Launch(Cooperative)?Kernel(Ex)?|GraphLaunch)(_ptsz)?$")
LENGTH, PERIOD = 0.5, 2.0  # of the windows by which the cost is measured, in seconds
EDGE = 0.15  # around a window, in which CUPTI is switched on and off
USUAL_PERIOD = 10


def windows_of(lines):
    """When they began and ended, in the trace's ns."""
    return [(line["ts"], line["ts"] + round(line["duration_us"] * 1000)) for line in lines if line["type"] == "gpu" and line["op"] == "window"]


def ended(call):
    return call["ts"] + call.get("duration_us", 0) * 1000


class Windows:
    def __init__(self, machine, check, folder):
        self.machine, self.check, self.folder = machine, check, folder

    def exact(self, name, command, flags, graphs=False):
        """Launches in windows and recorded operations are the same; kernels are told from their like by their shared memory. Of a
        graph that runs while a window closes, CUPTI loses kernels; those that the GPU itself launches have no call."""
        status, lines = self.machine.traced(*command, flags=["--gpu=100ms/300ms", *flags])
        windows = windows_of(lines)
        operations = times.operations_of(lines)
        wrong = [one for one in times.joined_wrongly(lines) if not graphs or one[0].get("unjoined") != "gpu_launched"]
        answered = {work.get("call") for work in operations}
        inside = [line for line in lines if "id" in line and LAUNCHES.match(line["name"]) and not line.get("captured") and
                  any(line["ts"] >= begin and ended(line) <= end for begin, end in windows)]
        missing = [call for call in inside if call["id"] not in answered]
        self.check(f"{name}: {len(windows)} windows, {len(operations)} kernels, each with its call",
                   status == 0 and len(windows) > 1 and operations and not wrong, (status, len(windows), len(operations), wrong[:2]))
        self.check(f"{name}: {len(inside)} calls in windows, of which {len(missing)} lack what they led to",
                   inside and len(missing) <= (len(windows) if graphs else 0), missing[:2])
        invalid = lines[-1]["gpu_operations"]["invalid"]
        self.check(f"{name}: nothing is lost, and {invalid} kernels have no times",
                   lines[-1]["losses"] == {} and invalid <= (0.002 * len(operations) if graphs else 0), lines[-1])

    def counted(self, command):
        """Metrics of a program that has the library: as many kernels as a trace of it would have by its windows."""
        listener = f"{self.folder}/run/inside"
        environment = dict(os.environ, CUDA_INJECTION64_PATH=toolkit.inside_library(self.machine.cudabpf), CUDABPF_LISTENER=listener)
        exporters = metrics.Metrics(self.machine, self.check, None, self.folder)
        with exporters.exporter("--gpu=100ms/300ms", "--listener", listener) as (_, page):
            subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
            time.sleep(1)  # the last sums come
            found = page()
        windows, kernels, seconds = (found.of(f"cudabpf_gpu_{name}") for name in ("window_seconds_total", "kernels_total", "kernel_seconds_total"))
        self.check(f"metrics: {kernels:.0f} kernels of {seconds:.3f} s in {windows:.2f} s of windows", windows > 0.2 and kernels > 1000 and seconds > 0)
        load, error = found.of("cudabpf_gpu_load_ratio"), found.of("cudabpf_gpu_load_error_ratio")
        self.check(f"metrics: load {load:.3f} ± {error:.3f}", 0 < load < 4 and abs(load - seconds / windows) < 5 * error + 0.02)

    def profiled(self):
        """The program's own profiler takes CUPTI, and finds all; windows go on before, and the trace says why there are none later."""
        program = """if True:
            import time, torch
            from torch.profiler import ProfilerActivity, profile
            x = torch.ones(1024, device="cuda")
            def work(seconds):
                count, end = 0, time.time() + seconds
                while time.time() < end:
                    torch.relu(x + x)
                    count += 1
                torch.cuda.synchronize()
                return count
            work(2)
            with profile(activities=[ProfilerActivity.CUDA]) as profiled:
                count = work(0.3)
            print(2 * count, sum(event.count for event in profiled.key_averages() if "elementwise" in event.key))
            work(1)"""
        done = subprocess.run([self.machine.cudabpf, "run", "-q", "-o", self.machine.path, "--inside", "--gpu=100ms/300ms", "--", sys.executable,
                               "-c", program], check=False, stdout=subprocess.PIPE, text=True)
        expected, found = (int(word) for word in done.stdout.split())
        self.check(f"torch.profiler beside windows: {found} of {expected} kernels", done.returncode == 0 and found == expected)
        with open(self.machine.path, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        self.check("torch.profiler beside windows: operations with their calls", not times.joined_wrongly(lines) and times.operations_of(lines))

    def survive(self, programs, seconds=60):
        """Programs run on, however often CUPTI is switched on and off: all at once, so that it happens at every moment."""
        training = """if True:
            import time, torch
            model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(8)]).cuda()
            optimiser, batch, end = torch.optim.AdamW(model.parameters()), torch.randn(64, 256), time.time() + 20
            while time.time() < end:
                loss = model(batch.pin_memory().cuda(non_blocking=True)).square().mean()
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                loss.item()"""
        commands = [[f"{programs}/gpu_order", "--launches", "400000"], [f"{programs}/gpu_order", "--threads", "6", "--launches", "200000"],
                    [f"{programs}/gpu_order", "--threads", "1", "--launches", "800000"],
                    [f"{programs}/launch_storm", "--launches", "500000", "--streams", "3", "--threads", "3"], [f"{programs}/graphs", "--replays", "40000"]]
        if toolkit.sees_gpu("torch"):
            commands.append([sys.executable, "-c", training])
        end = time.time() + seconds

        def repeated(number, command):
            statuses, windows, path = [], 0, f"{self.folder}/survive-{number}.jsonl"
            while time.time() < end and not any(statuses):
                done = subprocess.run([self.machine.cudabpf, "run", "-q", "-o", path, "--inside", "--only", "cuInit", "--gpu=50ms/75ms", "--", *command],
                                      check=False, stdout=subprocess.DEVNULL)
                statuses.append(done.returncode)
                with open(path, encoding="utf-8") as file:
                    windows += sum('"op":"window"' in line for line in file)
                os.unlink(path)
            return statuses, windows
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for command, (statuses, windows) in zip(commands, pool.map(repeated, itertools.count(), commands)):
                name = " ".join([os.path.basename(command[0]), *command[1:]])[:40].split("\n")[0]
                self.check(f"{name}: {len(statuses)} runs with {windows} windows, none of which crashed", windows > 50 and not any(statuses), statuses)

    def run(self, programs):
        for flags in ([], ["--inside"]):
            way = " ".join(flags) or "eBPF"
            self.exact(f"gpu_order, {way}", [f"{programs}/gpu_order", "--launches", "100000"], flags)
            self.exact(f"launch_storm, {way}", [f"{programs}/launch_storm", "--launches", "300000", "--streams", "3", "--threads", "3"], flags)
            self.exact(f"graphs, {way}", [f"{programs}/graphs", "--replays", "8000"], flags, graphs=True)
        self.survive(programs)
        self.counted([f"{programs}/launch_storm", "--launches", "600000"])
        if toolkit.sees_gpu("torch"):
            self.profiled()


def cost(cudabpf, command, folder, seconds):
    """What windows add to a loop that prints tokens a second: in them, beside the time around, and by all that is lost around one."""
    trace = f"{folder}/windows.jsonl"
    with subprocess.Popen([cudabpf, "run", "-q", "-o", trace, "--inside", "--only", "cuInit", f"--gpu={LENGTH}s/{PERIOD}s", "--", *command],
                          stdout=subprocess.PIPE, text=True) as program:
        output, end = [], None
        for line in program.stdout:
            output.append(line)
            end = end or time.time() + seconds + 10  # until it is warm
            if time.time() > end:
                break
        subprocess.run(["pkill", "-INT", "-P", str(program.pid)], check=False)
        program.stdout.read()
    with open(trace, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file if '"type":"trace"' in line or '"op":"window"' in line]
    realtime = lines[0]["clocks"]["realtime_ns"]
    windows = [((realtime + begin) / 1e9, (realtime + end) / 1e9) for begin, end in windows_of(lines)]
    printed = [[float(word) for word in line.split("\t")[1:]] for line in output if line.count("\t") == 2]
    rounds = [(began, ended, ended - began, figure) for (began, _), (ended, figure) in zip(printed, printed[1:])]
    warm = rounds[0][0] + 10
    slower, lost = [], []
    for begin, end in windows:
        around = [one for one in rounds if begin - 0.6 < one[0] and one[1] < begin - 0.05 or end + EDGE < one[0] and one[1] < end + EDGE + 0.5]
        within = [one for one in rounds if one[1] > begin - 0.05 and one[0] < end + EDGE]
        if begin < warm or len(around) < 10 or not within or rounds[-1][1] < end + 1:
            continue
        usual = statistics.mean(one[2] for one in around)
        slower.append(statistics.median(one[2] for one in within) / statistics.median(one[2] for one in around) - 1)
        lost.append(sum(one[2] - usual for one in within))

    def spread(values, unit, factor):
        low, middle, high = (value * factor for value in statistics.quantiles(values, n=4))
        return f"{middle:+.2f}{unit} ({low:+.2f} to {high:+.2f})"
    print(f"\n### GPT-2 decode with GPU times in windows of {LENGTH} s ({len(lost)} windows; medians, and the middle half)\n")
    print(f"- a token in a window, beside those before and after it: {spread(slower, ' %', 100)}")
    print(f"- time lost around a window: {spread(lost, ' ms', 1000)}; of {USUAL_PERIOD} s that is {spread(lost, ' %', 100 / USUAL_PERIOD)}")
    print(f"- the mean: {1000 * statistics.mean(lost):+.2f} ms, {100 * statistics.mean(lost) / USUAL_PERIOD:+.2f} % of {USUAL_PERIOD} s")
