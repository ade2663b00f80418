"""The Python stacks of calls, against what Python itself says: of calls that a script makes by itself (test/workloads/python_calls.py), and of
kernels that PyTorch launches (scripts/workloads/torch_lines.py)."""
import collections
import glob
import json
import os
import sys

import toolkit

CALLS = os.path.join(toolkit.HERE, "../workloads/python_calls.py")
LIBRARY = "libcuda.so.1"
WHATS = ("plain", "expressions", "generators", "classes", "names", "plain")
MOST_FRAMES, MOST_FUNCTION, MOST_FILE = 128, 512, 1024  # bytes of names


def stacks_of(lines):
    return {line["stack"]: [(one["function"], one["file"], one["line"]) for one in line["frames"]] for line in lines if line["type"] == "stack"}


def cut(text, most):
    return text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


def differing(known, found, stacks):
    """`known`: {thread: stacks in order}; `found`: {thread: lines in order}"""
    for thread, wanted in known.items():
        had = [stacks.get(line.get("stack")) for line in found[thread]]
        wanted = [[(cut(function, MOST_FUNCTION), cut(file, MOST_FILE), line) for function, file, line in frames[:MOST_FRAMES]] for frames in wanted]
        if had != wanted:
            return thread, len(had), len(wanted), next((pair for pair in zip(had, wanted) if pair[0] != pair[1]), None)
    return None


def by_itself(machine, check, way):
    name, log = f"Python's lines, {' '.join(way)}", f"{machine.folder}/python"
    status, lines = machine.traced(sys.executable, "-B", CALLS, LIBRARY, log, *WHATS, flags=(*way, "--profile", "full"))
    check(f"{name}: status, and nothing is lost", status == 0 and lines[-1]["losses"] == {}, lines[-1]["losses"])
    known, found = collections.defaultdict(list), collections.defaultdict(list)
    symbols = set()
    for path in glob.glob(f"{log}.*"):
        with open(path, encoding="utf-8") as file:
            for call in map(json.loads, file):
                if "symbol" in call and call["symbol"] != "cuCtxSetCurrent":
                    known[call["tid"]].append(call["frames"])
                    symbols.add(call["symbol"])
        os.unlink(path)
    for line in sorted((line for line in lines if "id" in line), key=lambda line: line["ts"]):
        if line.get("symbol", line["name"]) in symbols:
            found[line["tid"]].append(line)
    check(f"{name}: of all {sum(map(len, known.values()))} calls", known and not (wrong := differing(known, found, stacks_of(lines))), known and wrong)


def of_pytorch(machine, check, way):
    name, log = f"Python's lines, {' '.join(way)}, PyTorch", f"{machine.folder}/python"
    status, lines = machine.traced(sys.executable, f"{toolkit.HERE}/../../scripts/workloads/torch_lines.py", log, flags=way)
    check(f"{name}: status, and nothing is lost", status == 0 and lines[-1]["losses"] == {}, lines[-1]["losses"])
    known, found = collections.defaultdict(list), collections.defaultdict(list)
    with open(log, encoding="utf-8") as file:
        for call in map(json.loads, file):
            known[call["tid"]].append(call["frames"])
    stacks = stacks_of(lines)
    launches = sorted((line for line in lines if "id" in line and line.get("op") == "launch" and "kernel" in line), key=lambda line: line["ts"])
    for line in launches:
        if "stack" in line and stacks[line["stack"]][0][0] == "add":
            found[line["tid"]].append(line)
    check(f"{name}: of all {sum(map(len, known.values()))} launches", known and not (wrong := differing(known, found, stacks)), known and wrong)
    main = [line for line in launches if line["tid"] == line["pid"]]
    without = [line for line in main if "stack" not in line]
    check(f"{name}: each of the main thread's {len(main)} launches has its line", main and not without, without[:3])
    print(f"        {len(launches) - len(main)} launches of other threads, {sum('stack' not in line for line in launches)} without a stack; {len(stacks)} stacks")


def run(machine, check, skipped):
    for way in (("--inside", "--python"), ("--python",), ("--inside", "--gpu", "--python")):
        by_itself(machine, check, way)
        if toolkit.sees_gpu("torch"):
            of_pytorch(machine, check, way)
        else:
            skipped(f"Python's lines, {' '.join(way)}, PyTorch", "it takes PyTorch")
