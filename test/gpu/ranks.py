"""What `collectives` and `ranks` make of real ranks: every collective of a sweep as the program itself knows it, bus bandwidth by its own
CUDA events, a rank that is late by a known time, a hang on purpose, and how much of NCCL's time no other work overlaps."""
import collections
import glob
import json
import os
import subprocess
import sys

import toolkit

# Of the sweep's operations: the functions that PyTorch calls for it, and what multiplies the bytes of each rank's tensor.
FUNCTIONS = {"all_reduce": ("all_reduce",), "all_gather": ("all_gather",), "reduce_scatter": ("reduce_scatter",), "broadcast": ("broadcast",),
             "send_recv": ("send", "recv"), "all_to_all": ("all_to_all",)}
FROM = 16 << 20  # bytes from which bandwidth is compared
AT_ONCE = 10  # runs that do not hang
BANDWIDTH, DELAY, EXPOSED = 0.05, 0.10, 2  # how much may differ: parts of it; percentage points


def bus_factor(name, ranks):
    return {"all_reduce": 2 * (ranks - 1) / ranks, "all_gather": ranks - 1, "reduce_scatter": ranks - 1,
            "all_to_all": (ranks - 1) / ranks}.get(name, 1)


def median(values):
    return sorted(values)[len(values) // 2]


def union(intervals):
    total, until = 0, 0
    for begin, end in sorted(intervals):
        total += max(0, end - max(begin, until))
        until = max(until, end)
    return total


class Ranks:
    def __init__(self, machine, check, workloads):
        self.machine, self.check, self.workloads = machine, check, workloads
        self.ranks = min(machine.gpus, 4)

    def run(self, program, *arguments, flags=()):
        """-> what the program printed, what cudabpf said, and the trace's lines"""
        done = subprocess.run([self.machine.cudabpf, "run", "-o", self.machine.path, *flags, "--", sys.executable,
                               f"{self.workloads}/{program}.py", *arguments, "--gpus", str(self.ranks)], check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        with open(self.machine.path, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        self.check(f"{program} {' '.join(arguments)} {' '.join(flags)}: status, and nothing is lost",
                   done.returncode == 0 and lines[-1]["losses"] == {}, done.stderr[-500:])
        return done.stdout, done.stderr, lines

    def answer(self, *command):
        return json.loads(subprocess.run([self.machine.cudabpf, *command, "--json", self.machine.path], check=True, stdout=subprocess.PIPE).stdout)

    def sweep(self, way):
        name = f"sweep {' '.join(way)}"
        folder = f"{self.machine.folder}/sweep{len(way)}"
        os.mkdir(folder)
        _, _, lines = self.run("collective_sweep", folder, flags=(*way, "--gpu"))
        made = {line["communicator"]: line for line in lines if line.get("op") == "comm"}
        self.check(f"{name}: a communicator for each rank, of one identity", len(made) == self.ranks and
                   len({line["identity"] for line in made.values()}) == 1 and {line["rank"] for line in made.values()} == set(range(self.ranks)), made)
        own = {}
        for path in glob.glob(f"{folder}/sweep.*.json"):
            with open(path, encoding="utf-8") as file:
                own[int(path.split(".")[-2])] = json.load(file)
        for communicator, line in sorted(made.items()):
            calls = sorted((call for call in lines if call.get("communicator") == communicator and "id" in call and call["type"] == "collective"),
                           key=lambda call: call["ts"])
            found = collections.Counter((call["op"], call["size"]) for call in calls)
            expected = collections.Counter()
            for entry in own[line["rank"]]:
                if entry["op"] == "send_recv" and self.ranks % 2 and line["rank"] == self.ranks // 2:
                    continue
                size = entry["bytes"] // (self.ranks if entry["op"] == "all_to_all" else 1)
                for function in FUNCTIONS[entry["op"]]:
                    expected[function, size] += len(entry["us"])
            barriers = found["all_reduce", 4] - expected["all_reduce", 4]
            self.check(f"{name}: rank {line['rank']}: {sum(expected.values())} collectives, and {barriers} barriers, each of the right size",
                       found - collections.Counter({("all_reduce", 4): barriers}) == expected and barriers > 0, (found - expected, expected - found))
            numbers = [call["seq"] for call in calls if call["op"] not in ("send", "recv")]
            self.check(f"{name}: rank {line['rank']}: numbered without a gap", numbers == list(range(1, len(numbers) + 1)), numbers[:5])
        self.bandwidth(name, own)

    def bandwidth(self, name, own):
        """By the fastest rank's usual time, on both sides: events contain what the others made it wait for, too."""
        rows = [row for row in self.answer("collectives", "--top", "1000")["collectives"] if row.get("bus_bytes_per_second")]
        wrong, compared = [], 0
        for op in ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"):
            for entry in own[0]:
                size = entry["bytes"] // (self.ranks if op == "all_to_all" else 1)
                if entry["op"] != op or size < FROM:
                    continue
                passed = entry["bytes"]
                kernel = [row["gpu"]["p50_us"] for row in rows if row["function"] == op and row["size"] == size]
                events = [median(other["us"]) for entries in own.values() for other in entries if (other["op"], other["bytes"]) == (op, entry["bytes"])]
                if len(kernel) != self.ranks or not events:
                    wrong.append((op, size, kernel, events))
                    continue
                compared += 1
                ours, theirs = (bus_factor(op, self.ranks) * passed / min(times) / 1e3 for times in (kernel, events))
                print(f"        {op} of {entry['bytes'] >> 20} MiB: {ours:.1f} GB/s, by the program's events {theirs:.1f}")
                if abs(ours / theirs - 1) > BANDWIDTH:
                    wrong.append((op, entry["bytes"], ours, theirs))
        self.check(f"{name}: bus bandwidth of {compared} within {BANDWIDTH:.0%} of the program's own events", compared > 4 and not wrong, wrong)

    def straggler(self, way, delay):
        self.run("straggler", "--late", "1", "--delay", str(delay), "--times", self.machine.folder, flags=(*way, "--gpu"))
        entered = []
        for rank in range(self.ranks):
            with open(f"{self.machine.folder}/entered.{rank}.json", encoding="utf-8") as file:
                entered.append(json.load(file))
        true = 1e3 * median([step[1] - min(step) for step in zip(*entered)])
        found, = self.answer("ranks")["communicators"]
        late = found.get("late") or {}
        self.check(f"a rank that is late by {true:.3f} ms is found: {late.get('rank')} by {late.get('per_step_us', 0) / 1e3:.2f} ms {' '.join(way)}",
                   late.get("rank") == 1 and abs(late["per_step_us"] / 1e3 / true - 1) <= DELAY and found["verdict"] == "skew", found["verdict"])

    def punctual(self, way):
        self.run("straggler", flags=(*way, "--gpu"))
        found, = self.answer("ranks")["communicators"]
        self.check(f"where no rank is late, none is named {' '.join(way)}", not found.get("late") and found["verdict"] != "skew", found)

    def hang(self, way):
        """Who does not come is named while it does not, and nobody in runs that do not hang."""
        _, messages, _ = self.run("straggler", "--steps", "20", "--late", "1", "--delay", "0", "--hang-at", "10", "--hang", "6",
                                  flags=(*way, "--watch-hang", "2s"))
        report = json.loads(open(self.machine.path.removesuffix(".jsonl") + ".hang1.json", encoding="utf-8").read())
        os.unlink(self.machine.path.removesuffix(".jsonl") + ".hang1.json")
        named = [(member["rank"], member["named"]) for stuck in report["communicators"][:1] for member in stuck["members"] if "named" in member]
        self.check(f"a hang: rank 1, after {report['open_s']:.1f} s {' '.join(way)}",
                   named == [(1, "missing_enter")] and report["open_s"] < 2 + 5 and "the hang is over" in messages, (named, messages))

    def clean(self):
        """Runs at once, which slows them down"""
        commands = [[self.machine.cudabpf, "run", "-o", f"{self.machine.folder}/clean{i}.jsonl.zst", "--watch-hang", "5s", "--", sys.executable,
                     f"{self.workloads}/straggler.py", "--steps", "200", "--late", "1", "--delay", "5", "--port", str(29600 + i),
                     "--gpus", str(self.ranks)] for i in range(self.machine.clean_runs)]
        said = []
        for first in range(0, len(commands), AT_ONCE):
            running = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for command in commands[first:first + AT_ONCE]]
            said += [one.communicate()[1] for one in running]
        self.check(f"{len(commands)} runs that do not hang: nobody is named", not any("hang:" in text for text in said),
                   [line for text in said for line in text.splitlines() if "hang:" in line])

    def exposed(self, program, way):
        """The share of NCCL's time that no other work overlaps, from the kernels' own times."""
        _, _, lines = self.run(program, flags=(*way, "--gpu"))
        worked = [line for line in lines if line["type"] == "gpu" and line["op"] in ("kernel", "copy", "set")]
        answers = {(gpu["pid"], gpu["device"]): gpu for gpu in self.answer("collectives")["gpus"]}
        for key in sorted({(line["pid"], line["device"]) for line in worked if "nccl" in line.get("kernel", "")}):
            own = [line for line in worked if (line["pid"], line["device"]) == key]
            spans = {of: [(line["ts"], line["ts"] + line["duration_us"] * 1000) for line in own if ("nccl" in line.get("kernel", "")) == of]
                     for of in (True, False)}
            both, others, ours = union(spans[True] + spans[False]), union(spans[False]), union(spans[True])
            true = 100 * (both - others) / ours
            found = answers[key]
            share = 100 * found["exposed_us"] / found["collectives_us"]
            self.check(f"{program}: {share:.1f} % of NCCL's time on GPU {key[1]} is exposed, {true:.1f} by the kernels' times",
                       abs(share - true) <= EXPOSED and abs(found["collectives_us"] * 1000 / ours - 1) < 0.02, (found, ours))


def run(machine, check, skipped, workloads, parts):
    if machine.gpus < 2 or not toolkit.sees_gpu("torch"):
        skipped("ranks", "it takes two GPUs and PyTorch")
        return
    ranks = Ranks(machine, check, workloads)
    if "clean" in parts:
        ranks.clean()
    if "ranks" not in parts:
        return
    for way in ((), ("--inside",)):
        ranks.sweep(way)
        for delay in (1, 10):
            ranks.straggler(way, delay)
        ranks.punctual(way)
        ranks.hang(way)
    ranks.exposed("ddp_training", ())
    ranks.exposed("tensor_parallel", ("--inside",))
