"""What was recorded of a program's ranges, against what the program itself wrote down of them (scripts/workloads/torch_ranges.py)."""
import collections
import json
import sys

import toolkit

SLACK_NS = 2000  # ticks of the processor's counter are converted


class Ranges:
    """The ranges of a trace, and what is in them"""

    def __init__(self, lines):
        self.lines, self.began = lines, lines[0]["clocks"]["monotonic_ns"]
        named = [line for line in lines if line["type"] == "range" and line["op"] == "name"]
        self.around = {line["range"]: line.get("in_range") for line in named}
        self.labels = {line["range"]: line["label"] for line in named}
        self.all = [line for line in lines if line["type"] == "range" and line["op"] in ("push", "start", "mark")]

    def path(self, number):
        """The names, the innermost first"""
        names = []
        while number is not None:
            names.append(self.labels.get(number))
            number = self.around.get(number)
        return names

    def of(self, label, domain=""):
        return [line for line in self.all if line["label"] == label and line.get("domain", "") == domain]


def differing(ranges, known):
    """Those of the program's ranges that were recorded otherwise: how many, or one with its times"""
    found, wanted = collections.defaultdict(list), collections.defaultdict(list)
    for one in known:
        wanted[one["op"], one["label"], one["domain"], one["tid"]].append(one)
    for line in ranges.all:
        found[line["op"], line["label"], line.get("domain", ""), line["tid"]].append(line)
    for key, each in wanted.items():
        lines = sorted(found[key], key=lambda line: line["ts"])
        if len(lines) != len(each):
            return key, len(lines), len(each)
        for line, one in zip(lines, sorted(each, key=lambda one: one["from"])):
            begin, end = one["from"] - ranges.began, one["to"] - ranges.began
            if not begin - SLACK_NS <= line["ts"] <= line["ts"] + line.get("duration_us", 0) * 1000 <= end + SLACK_NS:
                return key, line, (begin, end)
    return None


def run(machine, check, skipped, workloads):
    if not toolkit.sees_gpu("torch"):
        skipped("ranges", "it takes PyTorch")
        return
    for way in (("--inside",), ("--ranges",), ("--gpu",), ("--inside", "--gpu")):
        name = f"ranges, {' '.join(way)}"
        log = f"{machine.folder}/ranges.jsonl"
        status, lines = machine.traced(sys.executable, f"{workloads}/torch_ranges.py", log, flags=way)
        check(f"{name}: status", status == 0, status)
        check(f"{name}: nothing is lost", lines[-1]["losses"] == {}, lines[-1]["losses"])
        with open(log, encoding="utf-8") as file:
            known = [json.loads(line) for line in file]
        ranges = Ranges(lines)
        check(f"{name}: the {len(known)} that the program knows, each as long as it found", not (wrong := differing(ranges, known)), wrong)
        # A kernel of a part is in that part alone, below the step, and for some time in a range of another thread's.
        launched = collections.Counter(ranges.path(line["range"])[0] for line in lines if line.get("op") == "launch" and "id" in line and "range" in line)
        wanted = collections.Counter()
        for one in known:
            if one["label"] in ("attention", "mlp", "part of a domain"):
                wanted[one["label"]] += one["kernels"]
        check(f"{name}: each launch has its range", all(launched[label] == count for label, count in wanted.items()), (launched, wanted))
        operators = [line for line in ranges.all if line["label"].startswith("aten::mm") and "sizes = [[64, 64], [64, 64]]" in line["label"]]
        check(f"{name}: PyTorch's operators, with their shapes", operators, [line["label"] for line in ranges.all if "aten" in line["label"]][:5])
        collectives = ranges.of("ncclAllReduce", "NCCL")
        check(f"{name}: NCCL's own", len(collectives) == 3 and all("collectives" in ranges.path(line["range"]) for line in collectives),
              [(line["label"], line.get("domain")) for line in ranges.all if line.get("domain")][:10])
        check(f"{name}: all of them end", not (opened := [line for line in ranges.all if line["op"] != "mark" and "duration_us" not in line]), opened[:5])
        print(f"        {dict(collections.Counter(line.get('domain', '') for line in ranges.all))}")
