"""What a trace says of when GPUs worked (--gpu): against the host's clock, a second run under CUPTI, and known times."""
import collections
import contextlib
import glob
import json
import math
import os
import statistics
import subprocess
import sys
import time

import toolkit
import turns

OPERATIONS = ("kernel", "copy", "set", "graph")


def operations_of(lines):
    return [line for line in lines if line["type"] == "gpu" and line["op"] in OPERATIONS]


def joined_wrongly(lines):
    """Operations that do not fit their call: kernels are distinguished from their like by their shared memory, copies by their size."""
    calls = {line["id"]: line for line in lines if "id" in line}
    wrong = []
    for work in operations_of(lines):
        call = calls.get(work.get("call"))
        if not call:
            wrong.append((work, "no call"))
        elif work["ts"] < call["ts"]:
            wrong.append((work, "it began before its call"))
        elif "node" not in work and work["op"] == "kernel" and (call.get("shared"), call.get("kernel")) != (work["shared"], work["kernel"]):
            wrong.append((work, call))
        elif "node" not in work and work["op"] in ("copy", "set") and call.get("size") != work["size"]:
            wrong.append((work, call))
    return wrong


def union_of(operations):
    """How long any of them ran, in ns."""
    total, until = 0, 0
    for begin, end in sorted((work["ts"], work["ts"] + round(work["duration_us"] * 1000)) for work in operations):
        total += max(0, end - max(begin, until))
        until = max(until, end)
    return total


def course_of(operations):
    """-> the us in which any of them ran, and those from the first one's beginning to the last one's end"""
    window = max(work["ts"] + work["duration_us"] * 1000 for work in operations) - min(work["ts"] for work in operations)
    return union_of(operations) / 1000, window / 1000


Part = collections.namedtuple("Part", "operations busy window")  # the last two in us: those of course_of()


def listed(numbers):
    return ", ".join(f"{number:.2f}" for number in numbers)


class Times:
    def __init__(self, machine, check):
        self.machine, self.check = machine, check
        self.activity = toolkit.build_cupti_library("cupti_activity", machine.folder)

    def traced(self, name, command, flags):
        status, lines = self.machine.traced(*command, flags=flags)
        end = lines[-1]
        self.check(f"{name}: status", status == 0, status)
        self.check(f"{name}: nothing is lost, and the books balance", end["losses"] == {} and end["accounts"]["dropped"] == 0 and
                   end["accounts"]["entered"] == end["accounts"]["received"], end)
        return lines

    def recorded(self, command, flags):
        """-> what the program wrote to stdout, and the lines of its trace"""
        done = subprocess.run([self.machine.cudabpf, "run", "-q", "-o", self.machine.path, *flags, "--", *command], check=True,
                              stdout=subprocess.PIPE, text=True)
        with open(self.machine.path, encoding="utf-8") as file:
            return done.stdout, [json.loads(line) for line in file]

    def exact(self, name, command, flags, without=0):
        """Every kernel, copy and fill has its call; `without`: so many of none of the calls."""
        lines = self.traced(name, command, flags)
        counts, operations = lines[-1]["gpu_operations"], operations_of(lines)
        self.check(f"{name}: {counts['operations']} operations, each with its call",
                   counts["operations"] > 0 and counts["operations"] - counts["joined"] == without and counts["invalid"] == 0, counts)
        wrong = [entry for entry in joined_wrongly(lines) if "call" in entry[0]]
        self.check(f"{name}: {len(operations)} lines, each of a call that fits and began before", not wrong, wrong[:3])
        return lines

    def second_run(self, command, **variables):
        """What CUPTI alone reports of a run of its own: (what, shape or bytes, name, ns) in the order in which they were issued."""
        path = f"{self.machine.folder}/activity"
        subprocess.run(command, check=True, env=dict(os.environ, CUDA_INJECTION64_PATH=self.activity, CUPTI_ACTIVITY_FILE=path, **variables),
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return self.cupti_operations(path)

    @staticmethod
    def cupti_operations(path):
        with open(path, encoding="utf-8") as file:
            rows = [line.rstrip("\n").split("\t") for line in file]
        began = {int(row[1]): int(row[2]) for row in rows if row[0] == "call"}
        operations = sorted((int(row[1]), row[0], int(row[3]), int(row[4]), row[5], row[6]) for row in rows if row[0] != "call")
        early = [work for work in operations if work[0] in began and work[2] < began[work[0]]]
        return operations, early

    def like_cupti(self, name, command, flags):
        """The same operations in the same order, and as long, as CUPTI reports with records of calls."""
        lines = self.exact(f"{name}, {' '.join(flags)}", command, flags)
        operations, _ = self.second_run(command)
        ours = sorted(operations_of(lines), key=lambda line: (line["call"], line.get("node", 0), line["ts"]))
        shape = [(line["op"], ",".join(map(str, line["grid"])) if line["op"] == "kernel" else str(line["size"])) for line in ours]
        theirs = [(op, what) for _, op, _, _, what, _ in operations]
        self.check(f"{name}: {len(ours)} operations, as CUPTI's second run has them, in order",
                   collections.Counter(shape) == collections.Counter(theirs) and (len(set(line["tid"] for line in lines if "id" in line)) > 1 or
                                                                                shape == theirs), (len(shape), len(theirs)))
        if not ours or not operations:
            return
        mine, other = (statistics.median(values) for values in ([line["duration_us"] * 1000 for line in ours],
                                                                [end - start for _, _, start, end, _, _ in operations]))
        self.check(f"{name}: one takes {mine:.0f} ns in the median, by CUPTI's second run {other:.0f}", abs(mine - other) <= 0.1 * other + 64)

    def clock(self, program, flags):
        """A kernel's beginning and end lie where the host has them, to 2 us."""
        name = f"gpu_clock {' '.join(flags)}"
        output, lines = self.recorded([program], flags)
        rounds = [tuple(map(int, line.split("\t"))) for line in output.splitlines()]
        zero = lines[0]["clocks"]["monotonic_ns"]
        kernels = sorted((line for line in operations_of(lines) if line["op"] == "kernel"), key=lambda line: line["ts"])
        self.check(f"{name}: {len(kernels)} kernels", len(kernels) == len(rounds), len(rounds))
        bounds = {"launched before it began": [], "seen after it began": [], "let end before it ended": [], "waited until it had ended": []}
        for (launched, seen, ends, waited), kernel in zip(rounds, kernels):
            began = kernel["ts"] + zero
            ended = began + round(kernel["duration_us"] * 1000)
            for key, value in zip(bounds, (began - launched, seen - began, ended - ends, waited - ended)):
                bounds[key].append(value)
        least = {key: min(values) for key, values in bounds.items()}
        # An error of the clock would show on one side of each pair as less than nothing, on the other as more.
        self.check(f"{name}: the clock is right to {max(least['seen after it began'], least['let end before it ended'])} ns",
                   min(least.values()) >= 0 and least["seen after it began"] <= 2000 and least["let end before it ended"] <= 2000, least)

    def known_times(self, program, flags):
        """Busy and idle times that a program makes for certain."""
        output, lines = self.recorded([program], flags)
        known, operations = json.loads(output), operations_of(lines)
        (busy, window), wanted = course_of(operations), known["busy_us"]
        total = sum(work["duration_us"] for work in operations)
        self.check(f"spins {' '.join(flags)}: busy for {busy:.0f} us, which takes {wanted}", abs(busy - wanted) < 0.02 * wanted)
        self.check(f"spins {' '.join(flags)}: the kernels' sum is {total:.0f} us, one and a half times as much", abs(total - 1.5 * wanted) < 0.02 * total)
        self.check(f"spins {' '.join(flags)}: idle for {window - busy:.0f} us, of pauses of {known['rest_us']} and their overhead",
                   known["rest_us"] <= window - busy)

    def idle_of_decoding(self, script, flags):
        """How busy and idle `gaps` finds a GPU that writes tokens, beside CUPTI's own times in a run of its own. How long the GPU waits
        for the host differs from run to run by more than a tool costs; so the time in which it is busy is what must agree."""
        name = f"GPT-2 {' '.join(flags)}"
        command = [sys.executable, script, "--random-weights", "--tokens", "300"]
        ours = sorted(operations_of(self.traced(name, command, flags)), key=lambda work: work["ts"])
        count = len(ours) * 7 // 10  # of the last operations; what comes before is loading and the prompt
        theirs = sorted(({"ts": start, "duration_us": (end - start) / 1000} for _, _, start, end, _, _ in
                         self.second_run(command, CUPTI_ACTIVITY_KERNELS="1")[0]), key=lambda work: work["ts"])
        done = subprocess.run([self.machine.cudabpf, "gaps", "--json", "--from", f"{ours[-count]['ts'] / 1e9:.9f}", self.machine.path],
                              check=True, stdout=subprocess.PIPE, text=True)
        gpu, = json.loads(done.stdout)["measured"]["gpus"]
        said = 100 * gpu["idle_us"] / gpu["window_us"]
        (mine, window), (busy, other_window) = (course_of(operations[-count:]) for operations in (ours, theirs))
        idle, alone = 100 * (1 - mine / window), 100 * (1 - busy / other_window)
        self.check(f"{name}: gaps says idle {said:.2f} %, as the union of all operations has it; by CUPTI alone, in another run, {alone:.2f}",
                   abs(said - idle) <= 0.05, idle)
        self.check(f"{name}: busy for {mine / 1000:.1f} ms, by CUPTI alone {busy / 1000:.1f}", abs(mine - busy) <= 0.03 * busy)

    def idle_side_by_side(self, script):
        """Processes of GPT-2, recorded by cudabpf and by CUPTI alone, which run in turns of half a second, so that the machine's speed
        is the same for both: `gaps` finds the GPU as idle as the union of CUPTI's own times has it, to a point, or to three standard errors:
        processes of one program differ in speed as long as they run."""
        folder, program, commands = self.machine.folder, [sys.executable, script, "--rounds", "100000000", "--only", "decode", "--part", "0.05"], []
        for number in range(5):
            commands.append((f"{folder}/idle-{number}.activity", program, {
                "CUDA_INJECTION64_PATH": self.activity, "CUPTI_ACTIVITY_KERNELS": "1", "CUPTI_ACTIVITY_FILE": f"{folder}/idle-{number}.activity"}))
            commands.append((f"{folder}/idle-{number}.jsonl", [
                self.machine.cudabpf, "run", "-q", "-o", f"{folder}/idle-{number}.jsonl", "--inside", "--gpu", "--", *program], {}))
        shares, operations, busy = ({True: [], False: []} for _ in range(3))  # by whether it is ours
        for path, (seen,) in turns.side_by_side(commands, folder, cycles=12, turn=0.5).items():
            times = [(int(turn.begin * 1e9) + 50000000, int(turn.end * 1e9) - 10000000) for turn in seen]
            ours = path.endswith(".jsonl")
            parts = list((self.parts_of_trace if ours else self.parts_by_cupti)(path, times))
            shares[ours].append(statistics.median(100 * (1 - part.busy / part.window) for part in parts))
            operations[ours].append(sum(part.operations for part in parts) / sum(part.window for part in parts) * 1000)
            busy[ours].append(sum(part.busy for part in parts) / sum(part.operations for part in parts))
        mine, alone = (statistics.mean(shares[by_cudabpf]) for by_cudabpf in (True, False))
        error = math.sqrt(sum(statistics.variance(idle) / len(idle) for idle in shares.values()))
        self.check(f"GPT-2 side by side: gaps has the GPU idle for {mine:.2f} %, CUPTI alone for {alone:.2f} %, standard error {error:.2f} points",
                   abs(mine - alone) <= max(1, 3 * error), shares)
        for by_cudabpf, name in ((True, "cudabpf"), (False, "CUPTI alone")):
            print(f"        {name}, by process: idle for {listed(shares[by_cudabpf])} %; operations a millisecond: {listed(operations[by_cudabpf])}; "
                  f"us of each: {listed(busy[by_cudabpf])}")
        each, other = (statistics.mean(busy[by_cudabpf]) for by_cudabpf in (True, False))
        self.check(f"GPT-2 side by side: one keeps the GPU busy for {each:.3f} us, by CUPTI alone {other:.3f}", abs(each - other) <= 0.02 * other, busy)

    def parts_of_trace(self, path, times):
        """What gaps says of parts of it."""
        with open(path, encoding="utf-8") as file:
            zero = json.loads(file.readline())["clocks"]["realtime_ns"]
        for begin, end in times:
            done = subprocess.run([self.machine.cudabpf, "gaps", "--json", "--from", f"{(begin - zero) / 1e9:.9f}", "--to",
                                   f"{(end - zero) / 1e9:.9f}", path], check=True, stdout=subprocess.PIPE, text=True)
            gpu, = json.loads(done.stdout)["measured"]["gpus"]
            yield Part(gpu["operations"], gpu["busy_us"], gpu["window_us"])

    def parts_by_cupti(self, path, times):
        operations = [{"ts": start, "duration_us": (end - start) / 1000} for _, _, start, end, _, _ in self.cupti_operations(path)[0]]
        for begin, end in times:
            inside = [work for work in operations if begin <= work["ts"] < end]
            yield Part(len(inside), *course_of(inside))

    def long_run(self, programs):
        """100 million kernels: none is lost or without a time, and nothing grows."""
        replays, nodes = 500000, 100
        with subprocess.Popen([self.machine.cudabpf, "run", "-q", "-o", self.machine.path, "--rotate-size", "500M", "--keep", "2", "--inside",
                               "--gpu", "--", f"{programs}/graphs", "--nodes", str(nodes), "--replays", str(replays)]) as tracer:
            held = [self.held_by(tracer.pid)]
            while tracer.poll() is None:
                held.append(self.held_by(tracer.pid))
                time.sleep(1)
        self.check("long run: status", tracer.returncode == 0, tracer.returncode)
        newest = max(glob.glob(f"{self.machine.folder}/*.jsonl"), key=os.path.getmtime)
        with open(newest, encoding="utf-8") as file:
            end = json.loads(collections.deque(file, 1)[0])
        counts, accounts = end["gpu_operations"], end["accounts"]
        self.check(f"long run: {accounts['received']} records, nothing lost", end["losses"] == {} and accounts["dropped"] == 0 and
                   accounts["received"] >= 2 * replays * nodes, end)
        self.check("long run: all operations have times and calls", counts["operations"] == counts["joined"] == counts["calls"] == 2 * replays + 2 and
                   counts["invalid"] == 0, counts)
        for name, sizes in zip(("cudabpf", "the program"), zip(*held[10:-2])):
            self.check(f"long run: {name} holds {sizes[0]} MiB after 10 s, {max(sizes)} at most", max(sizes) <= sizes[0] + 48)

    @staticmethod
    def held_by(pid):
        """MiB of memory that a process and its children hold, the children together."""
        def held(one):
            with contextlib.suppress(OSError):
                with open(f"/proc/{one}/statm", encoding="utf-8") as file:
                    return int(file.read().split()[1]) >> 8
            return 0
        children = subprocess.run(["pgrep", "-P", str(pid)], check=False, stdout=subprocess.PIPE, text=True).stdout.split()
        return held(pid), sum(map(held, children))

    def frameworks(self, script):
        for kind in ("cupy", "jax", "triton", "compile-graphs"):
            if toolkit.sees_gpu(f"torch, {toolkit.FRAMEWORKS[kind]}"):
                self.exact(f"{kind} --inside --gpu", [sys.executable, script, kind], ["--inside", "--gpu"])
        # The program's own profiler takes CUPTI over, and sees what it would see without cudabpf.
        command = [sys.executable, script, "profiler"]
        alone = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        for flags in (["--gpu"], ["--inside", "--gpu"]):
            output, lines = self.recorded(command, flags)
            counts = lines[-1]["gpu_operations"]
            name = f"torch.profiler {' '.join(flags)}"
            self.check(f"{name}: its output is the program's own", output == alone, (output, alone))
            self.check(f"{name}: {counts['joined']} of {counts['calls']} calls have their operations, the others are said not to be reported",
                       counts["joined"] == counts["answered"] > 0 and
                       counts["calls"] == counts["answered"] + counts["unjoined"]["not_reported"], counts)

    def run(self, programs):
        for flags in (["--gpu"], ["--inside", "--gpu"]):
            way = " ".join(flags)
            self.exact(f"gpu_order {way}", [f"{programs}/gpu_order"], flags)
            self.exact(f"launch_storm {way}", [f"{programs}/launch_storm", "--launches", "20000", "--streams", "3", "--threads", "3"], flags)
            self.like_cupti(f"copies {way}", [f"{programs}/copies"], flags)
            self.exact(f"graph_changes {way}", [f"{programs}/graph_changes"], flags, without=3)  # in a body
            self.like_cupti(f"graphs {way}", [f"{programs}/graphs", "--replays", "100"], flags)
            self.clock(f"{programs}/gpu_clock", flags)
            self.known_times(f"{programs}/spins", flags)
        lines = self.traced("--gpu=graphs", [f"{programs}/graphs", "--replays", "100"], ["--gpu=graphs"])
        whole = [line for line in operations_of(lines) if line["op"] == "graph"]
        self.check(f"--gpu=graphs: {len(whole)} launches of graphs, each with its call", len(whole) == 200 and all("call" in line for line in whole))
        if toolkit.sees_gpu("torch"):
            has_transformers = toolkit.sees_gpu("torch, transformers")
            workloads = os.path.join(toolkit.HERE, "../../scripts/workloads")
            self.frameworks(f"{workloads}/frameworks.py")
            for flags in (["--gpu"], ["--inside", "--gpu"]):
                self.like_cupti(f"PyTorch {' '.join(flags)}", [sys.executable, f"{workloads}/tiny_transformer.py"], flags)
                if has_transformers:
                    self.idle_of_decoding(f"{workloads}/transformer_inference.py", flags)
            if has_transformers:
                self.idle_side_by_side(f"{workloads}/loops.py")
