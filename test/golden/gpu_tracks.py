#!/usr/bin/env python3
"""Writes a trace of a program that keeps a GPU busy, as cudabpf records it with --gpu: two threads, three queues, copies
and fills, 5,000 kernels, and a graph of 20 nodes that is launched 50 times. What the GPU did is reported in bunches, long
after the calls, and the last of it when the process is gone.

usage: gpu_tracks.py [--steps N] [--whole-graphs] > TRACE

The same arguments give the same trace: test/golden/gpu_tracks.jsonl.zst is made by

    test/golden/gpu_tracks.py | zstd -19 -o test/golden/gpu_tracks.jsonl.zst
"""
import argparse
import json
import random
import re

PID, MAIN, LOADER = 4242, 4242, 4250
COMPUTE, COPIES = "0x55d0c8a10020", "0x7f10c0002a80"
QUEUES = {"0x0": 7, COMPUTE: 13, COPIES: 14}
KERNELS = [  # name, grid, block, shared, ns
    ("void gemm<float, 128, 64>(float const*, float const*, float*, int)", [64, 16, 1], [256, 1, 1], 49152, 61000),
    ("void softmax<float>(float const*, float*, int)", [512, 1, 1], [128, 1, 1], 0, 4200),
    ("void layer_norm<float>(float const*, float const*, float*, int)", [512, 1, 1], [128, 1, 1], 2048, 5100),
    ("void add_bias<float>(float*, float const*, int)", [2048, 1, 1], [256, 1, 1], 0, 2600),
]
BUNCH = 100_000_000  # ns from one report of what GPUs did to the next
DELAY = 2500  # from a call's beginning until an idle GPU begins


class Program:
    def __init__(self, whole_graphs):
        self.random = random.Random(7)
        self.whole_graphs = whole_graphs
        self.lines = []  # (when it is written, line)
        self.now = {MAIN: 1_000_000, LOADER: 1_000_000}
        self.free = {}  # by queue: when the GPU is done with it
        self.calls = self.operations = self.issued = 0
        self.pending = []  # operations that are not reported yet: (end, line)

    def call(self, tid, took, **fields):
        self.calls += 1
        begin = self.now[tid]
        line = {"id": self.calls, "type": fields.pop("type"), "op": fields.pop("op"), "name": fields.pop("name"),
                "ts": begin, "duration_us": took / 1000, "pid": PID, "tid": tid, "ret": 0, **fields}
        self.lines.append((begin + took, line))
        self.now[tid] = begin + took + self.random.randrange(500, 1500)
        return line

    def work(self, op, call, took, earliest=None, **fields):
        """What the GPU does for the call, when its queue gets there."""
        queue = QUEUES[call.get("stream", "0x0")]
        begin = max(self.free.get(queue, 0), (earliest or call["ts"]) + DELAY)
        # A kernel may be launched so that it begins while the one before it ends.
        if op == "kernel" and begin == self.free.get(queue) and self.random.random() < 0.05:
            begin -= 800
        took = int(took * self.random.uniform(0.95, 1.1))
        line = {"type": "gpu", "op": op, "ts": begin, "duration_us": took / 1000, "pid": PID, "call": call["id"]}
        for field in ("size", "stream"):
            if field in fields or field in call:
                line[field] = fields.pop(field, call.get(field))
        line.update(queue=queue, **{field: fields.pop(field) for field in ("kernel", "grid", "block", "shared") if field in fields},
                    device=0, **fields)
        self.free[queue] = max(self.free.get(queue, 0), begin + took)
        self.pending.append((begin + took, line))
        self.operations += 1
        return begin + took

    def launch(self, tid, stream, kernel):
        name, grid, block, shared, took = kernel
        sizes = {"kernel": name, "grid": grid, "block": block, "shared": shared}
        call = self.call(tid, self.random.randrange(2200, 3400), type="kernel", op="launch", name="cuLaunchKernel",
                         stream=stream, **{"async": True}, **sizes, handle=f"0x55d0c8b0{KERNELS.index(kernel):04x}", device=0)
        self.issued += 1
        return self.work("kernel", call, took, **sizes)

    def copy(self, tid, direction, size, stream=None, waits=False):
        where = {"stream": stream} if stream else {}
        took = 2000 + size * 10**9 // (50 << 30)
        call = self.call(tid, 2600, type="transfer", op=direction, name=f"cuMemcpy{direction}{'' if waits else 'Async'}", size=size, **where,
                         **({} if waits else {"async": True}), device=0)
        self.issued += 1
        end = self.work("copy", call, took, direction=direction)
        if waits:
            self.wait_in(call, tid, end)

    def wait_in(self, call, tid, end):
        """The call returns when the GPU is done."""
        returned = max(end + 4000, call["ts"] + 2600)
        call["duration_us"] = (returned - call["ts"]) / 1000
        self.lines.pop()
        self.lines.append((returned, call))
        self.now[tid] = returned + 1000

    def fill(self, tid, size, stream):
        call = self.call(tid, 2100, type="memory", op="set", name="cuMemsetD8Async", size=size, stream=stream, **{"async": True}, device=0)
        self.issued += 1
        self.work("set", call, 1500 + size // 1000)

    def launch_graph(self, tid, stream):
        call = self.call(tid, 6100, type="graph", op="launch", name="cuGraphLaunch", stream=stream, **{"async": True},
                         device=0, graph=1, nodes=20, kernels=18)
        self.issued += 1
        if self.whole_graphs:
            self.work("graph", call, 18 * 4000 + 2 * 3000)
            return
        for node in range(20):
            if node in (0, 19):
                self.work("copy", call, 3000, size=65536, direction="DtoD", node=node)
            else:
                name, grid, block, shared, took = KERNELS[1 + node % 3]
                self.work("kernel", call, took, kernel=name, grid=grid, block=block, shared=shared, node=node)
        self.operations -= 19  # counted as one

    def report(self, at):
        """Reports what is done by then: queue by queue, as CUPTI's buffers come, not in order."""
        done = [line for end, line in self.pending if end <= at]
        self.pending = [(end, line) for end, line in self.pending if end > at]
        done.sort(key=lambda line: (-line["queue"], line["ts"]))
        for i in range(0, len(done) - 1, 50):
            done[i], done[i + 1] = done[i + 1], done[i]
        self.lines.extend((at + 20_000_000, line) for line in done)

    def number_calls(self):
        """Calls have rising numbers in the order in which they began."""
        lines = [line for _, line in self.lines]
        calls = sorted((line for line in lines if "id" in line), key=lambda line: (line["ts"], line["id"]))
        numbers = {call["id"]: number for number, call in enumerate(calls, 1)}
        for line in lines:
            for field in ("id", "call"):
                if field in line:
                    line[field] = numbers[line[field]]

    def set_up(self, graphs):
        self.lines.append((50_000, {"type": "process", "op": "start", "ts": 50_000, "pid": PID, "ppid": 1, "comm": "train"}))
        self.call(MAIN, 30_000_000, type="init", op="init", name="cuInit", args={"flags": 0})
        self.lines.append((31_100_000, {"type": "gpu", "op": "times", "ts": 31_100_000, "pid": PID, "cupti": "13.0.1",
                                        "path": "/usr/local/cuda/lib64/libcupti.so.13", "graphs": graphs}))
        self.call(MAIN, 20_000_000, type="context", op="create", name="cuCtxCreate", device=0)
        self.call(MAIN, 140_000, type="memory", op="alloc", name="cuMemAlloc", size=256 << 20, ptr="0x7f2a40000000", kind="device", device=0)
        for _ in range(4):
            self.copy(MAIN, "HtoD", 32 << 20, waits=True)
        content = [{"op": "kernel", "kernel": name, "grid": grid, "block": block, "shared": shared, "count": 6}
                   for name, grid, block, shared, _ in KERNELS[1:]]
        content.append({"op": "copy", "size": 65536, "count": 2})
        ts = self.now[MAIN]
        self.lines.append((ts, {"type": "graph", "op": "content", "ts": ts, "pid": PID, "graph": 1, "nodes": 20, "kernels": 18,
                                "content": content}))

    def step(self):
        self.now[LOADER] = max(self.now[LOADER], self.now[MAIN] - 50_000)
        self.copy(LOADER, "HtoD", 4 << 20, COPIES)
        for i in range(100):
            self.launch(MAIN, COMPUTE if i % 10 else "0x0", KERNELS[(0, 1, 2, 3, 3)[i % 5]])
        self.fill(MAIN, 1 << 20, COMPUTE)
        self.launch_graph(MAIN, COMPUTE)
        self.copy(MAIN, "DtoH", 16384, COMPUTE, waits=True)
        self.now[MAIN] += self.random.randrange(1_000_000, 7_000_000)  # the program computes


def formatted(line):
    text = json.dumps(line, separators=(",", ":"), ensure_ascii=False)
    return re.sub(r'("duration_us":)([0-9.e+]+)', lambda found: f"{found[1]}{float(found[2]):.3f}", text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--whole-graphs", action="store_true")
    arguments = parser.parse_args()
    program, graphs = Program(arguments.whole_graphs), "whole" if arguments.whole_graphs else "nodes"
    program.set_up(graphs)
    for _ in range(arguments.steps):
        program.step()
    last = max(max(program.now.values()), max(program.free.values()))
    for at in range(BUNCH, last, BUNCH):
        program.report(at)
    # One that no call issued, and one that was reported too late.
    for i, why in enumerate(("no_call", "late")):
        line = {"type": "gpu", "op": "kernel", "ts": last + 1000 + 9000 * i, "duration_us": 5.0, "pid": PID, "unjoined": why,
                "stream": "0x0", "queue": 7, "kernel": KERNELS[3][0], "grid": [1, 1, 1], "block": [32, 1, 1], "shared": 0, "device": 0}
        program.pending.append((line["ts"] + 5000, line))
    end = last + 200_000
    program.lines.append((end, {"type": "process", "op": "exit", "ts": end, "pid": PID, "ppid": 1, "comm": "train", "exit_code": 0}))
    program.report(end)
    program.number_calls()
    program.lines.sort(key=lambda entry: entry[0])
    lines = [line for _, line in program.lines]
    finish = max(at for at, _ in program.lines)
    header = {"type": "trace", "format": "cudabpf-trace", "format_version": "2.0", "version": "0.1.0", "host": "gpu-1",
              "linux": "6.12.9-amd64", "arch": "x86_64", "driver": "580.159.04",
              "gpus": [{"index": 0, "name": "NVIDIA H200", "uuid": "GPU-6a0d", "bus_id": "0000:19:00.0"}], "mode": "run",
              "source": "inside", "command": ["./train"], "profile": "default", "left_out": [], "returns": True, "follow": True,
              "gpu_timing": "graphs" if arguments.whole_graphs else "nodes",
              "clocks": {"realtime_ns": 1795000000000000001, "monotonic_ns": 5000000000, "boottime_ns": 6000000000},
              "libraries": [], "features": []}
    trailer = {"type": "end", "ts": finish, "lines": len(lines) + 2, "duration_ns": finish, "calls": program.calls, "unfinished": 0,
               "losses": {}, "gpu_operations": {"operations": program.operations + 2, "joined": program.operations, "calls": program.issued,
                                           "answered": program.issued, "unjoined": {"no_call": 1, "late": 1}, "ambiguous": 0,
                                           "invalid": 0, "clock_error_ns": 240},
               "command_status": 0, "reason": "command ended"}
    for line in (header, *lines, trailer):
        print(formatted(line))


if __name__ == "__main__":
    main()
