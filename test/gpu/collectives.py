"""What was recorded of NCCL, against the log that NCCL itself writes of each collective (NCCL_DEBUG_SUBSYS=COLL)."""
import collections
import glob
import os
import re
import sys

import toolkit

TYPES = ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "bfloat16", "float8_e4m3",
         "float8_e5m2")
# NAME: opCount 3 sendbuff 0x7f… recvbuff 0x7f… count 16384 datatype 6 op 0 root 0 comm 0x55… [nranks=2] stream 0x55…
LOGGED = re.compile(r":(\d+):(\d+) \[\d+\] NCCL INFO (\w+): opCount \w+ sendbuff \S+ recvbuff (\S+) count (\d+) datatype (\d+) "
                    r"op \d+ root -?\d+ comm (\S+) \[nranks=\d+\] stream (\S+)")


def address(text):
    return 0 if text in ("(nil)", "0") else int(text, 16)


def logged(folder):
    """What each thread asked of NCCL, in order, as NCCL has it"""
    calls = collections.defaultdict(list)
    for path in glob.glob(f"{folder}/nccl.*"):
        with open(path, encoding="utf-8", errors="replace") as file:
            for match in map(LOGGED.search, file):
                if match:
                    pid, tid, name, buffer, count, kind, comm, stream = match.groups()
                    calls[int(pid), int(tid)].append(
                        (f"nccl{name}", address(buffer), int(count), TYPES[int(kind)], address(comm), address(stream)))
    return calls


def recorded(lines):
    """The same as cudabpf has it: collectives that are no part of another call of NCCL's"""
    calls = collections.defaultdict(list)
    for line in sorted((line for line in lines if line.get("library") == "nccl" and line["type"] == "collective" and "id" in line and "parent" not in line),
                       key=lambda line: line["ts"]):
        given = line["args"]
        calls[line["pid"], line["tid"]].append(
            (line["name"], address(given.get("recvbuff", "0")), line["count"], line["datatype"],
             address(given["comm"]), address(line["stream"])))
    return calls


def run(machine, check, skipped, workloads):
    if machine.gpus < 2 or not toolkit.sees_gpu("torch"):
        skipped("collectives", "it takes two GPUs and PyTorch")
        return
    for way in ((), ("--inside",), ("--gpu",), ("--inside", "--gpu")):
        name = f"collectives, {' '.join(way) or 'by eBPF'}"
        folder = f"{machine.folder}/nccl{len(way)}{way[-1:]}"
        os.mkdir(folder)
        env = {**os.environ, "NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "COLL", "NCCL_DEBUG_FILE": f"{folder}/nccl.%p"}
        status, lines = machine.traced(sys.executable, f"{workloads}/tensor_parallel.py", "--gpus", "2", flags=way, env=env)
        check(f"{name}: status", status == 0, status)
        truth, found = logged(folder), recorded(lines)
        count = sum(map(len, truth.values()))
        check(f"{name}: NCCL logged its collectives", count > 300 and len({pid for pid, _ in truth}) == 2,
              {thread: len(calls) for thread, calls in truth.items()})
        wrong = {thread: next((pair for pair in zip(truth[thread], found[thread]) if pair[0] != pair[1]),
                              (len(truth[thread]), len(found[thread])))
                 for thread in truth.keys() | found.keys() if truth[thread] != found[thread]}
        check(f"{name}: all {count} are recorded, in order, each with its buffer, size, type, communicator and stream", not wrong, wrong)
        made = [line for line in lines if line.get("library") == "nccl" and line["type"] == "communicator" and line["op"] == "create"]
        check(f"{name}: both ranks make their communicators", {(line["args"].get("nranks"), line["args"].get("rank")) for line in made}
              >= {(2, 0), (2, 1)}, made)
        own = {line["id"] for line in lines if line.get("library") == "nccl" and "id" in line}
        kernels = [line for line in lines if line["type"] == "kernel" and line["op"] == "launch" and "nccl" in line.get("kernel", "")]
        apart = [line for line in kernels if line.get("within") not in own]
        check(f"{name}: all {len(kernels)} launches of NCCL's kernels are within its calls", kernels and not apart, apart[:3])
        print(f"        {dict(collections.Counter(name for calls in found.values() for name, *_ in calls))}, losses {lines[-1]['losses']}")
