"""Writes the traces test/golden/gpu_kernels*.jsonl: of a program that decodes, with its GPU's work measured.
usage: gpu_kernels.py   Each token is a launch of a graph, a kernel that runs beside it in another stream, a kernel and a
copy back. A kernel that no call issued runs first. The traces are small, and always the same."""
import json
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent
GEMM = "void gemm<float>(float const*, float const*, float*, int)"
SOFTMAX = "softmax(float*, int)"
PREFETCH = "prefetch(float const*, int)"
SAMPLE = "sample(float const*, int*, unsigned int)"
TOKENS = 14
GPU_0 = {"index": 0, "name": "NVIDIA H200", "uuid": "GPU-6a0d", "bus_id": "0000:19:00.0"}


def line(**fields):
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


class Trace:
    def __init__(self, graphs, gemm_us):
        self.whole, self.gemm_us = graphs == "graphs", gemm_us
        self.lines = [line(type="trace", format="cudabpf-trace", format_version="2.0", version="0.1.0", host="gpu-1",
                           linux="6.12.9-amd64", arch="x86_64", driver="580.159.04", gpus=[GPU_0], mode="run",
                           source="ebpf", command=["./decode"], pids=[], profile="default", left_out=[], returns=True,
                           follow=True, driver_traced=False, gpu_timing=graphs, ring_size=33554432,
                           clocks={"realtime_ns": 1795000000000000001, "monotonic_ns": 5000000000,
                                   "boottime_ns": 6000000000}, libraries=[], features=[]),
                      line(type="process", op="start", ts=1000, pid=70, ppid=1, comm="decode", cmdline="./decode")]
        self.late = []  # what the GPU did is reported in bunches
        self.calls = self.operations = 0

    def call(self, ts, us, type_, op, name, **fields):
        self.calls += 1
        self.lines.append(line(id=self.calls, type=type_, op=op, name=name, ts=ts, duration_us=us, pid=70, tid=70,
                               ret=0, **fields))
        return self.calls

    def launch(self, ts, stream, kernel, grid):
        return self.call(ts, 3.0, "kernel", "launch", "cuLaunchKernel", stream=stream, **{"async": True}, kernel=kernel,
                         grid=[grid, 1, 1], block=[256, 1, 1], shared=0, device=0)

    def did(self, op, ts, us, queue, **fields):
        """-> when it ended"""
        self.late.append(line(type="gpu", op=op, ts=ts, duration_us=round(us, 3), pid=70, queue=queue, device=0, **fields))
        return ts + round(us * 1000)

    def ran(self, ts, us, queue, kernel, grid, **fields):
        return self.did("kernel", ts, us, queue, kernel=kernel, grid=[grid, 1, 1], block=[256, 1, 1], shared=0, **fields)

    def report(self):
        self.lines += self.late
        self.late = []

    def graph(self, ts, call, jitter):
        """What the graph's launch did on the GPU -> when it ended"""
        begin, of = ts, {"call": call, "stream": "0x7f10"}
        if self.whole:
            self.operations += 1
            return self.did("graph", begin, 3 * self.gemm_us + jitter + 19.5, 1, **of)
        self.operations += 1
        for node in range(3):
            ts = 400 + self.ran(ts, self.gemm_us + jitter / 3, 1, GEMM, 64, node=node, **of)
        ts = 300 + self.ran(ts, 6.016, 1, SOFTMAX, 8, node=3, **of)
        ts = 300 + self.did("copy", ts, 5.12, 1, size=8388608, direction="DtoD", node=4, **of)
        return self.did("set", ts, 1.6, 1, size=65536, node=5, **of)

    def token(self, ts, number):
        jitter = number * 7 % 5 * 0.4
        graph = self.call(ts, 9.0, "graph", "launch", "cuGraphLaunch", stream="0x7f10", graph=1, nodes=6, kernels=4, device=0)
        prefetch = self.launch(ts + 12000, "0x7f20", PREFETCH, 132)
        sample = self.launch(ts + 18000, "0x7f10", SAMPLE, 1)
        end = self.graph(ts + 11000, graph, jitter)
        self.ran(ts + 19000, 70 + jitter, 2, PREFETCH, 132, call=prefetch, stream="0x7f20")  # while the graph runs
        end = self.ran(end + 900, 8.032, 1, SAMPLE, 1, call=sample, stream="0x7f10")
        copy = self.call(ts + 24000, round((end - ts - 24000) / 1000 + 6, 3), "transfer", "DtoH", "cuMemcpyDtoH", size=4,
                         src="0x7f2a40000000", device=0)
        self.did("copy", end + 1500, 1.248, 0, call=copy, stream="0x0", size=4, direction="DtoH")
        self.operations += 3
        return end + 40000

    def text(self):
        self.call(10000, 30000.0, "init", "init", "cuInit", args={"flags": 0})
        self.call(31000000, 20000.0, "context", "create", "cuCtxCreate", device=0)
        self.lines.append(line(type="gpu", op="times", ts=51100000, pid=70, cupti="13.0.1",
                               path="/usr/local/cuda/lib64/libcupti.so.13", graphs="whole" if self.whole else "nodes"))
        self.call(52000000, 100.0, "memory", "alloc", "cuMemAlloc", size=16777216, ptr="0x7f2a40000000", kind="device", device=0)
        self.ran(52500000, 2.4, 0, "warm_up()", 1, unjoined="no_call")
        copy = self.call(53000000, 900.0, "transfer", "HtoD", "cuMemcpyHtoD", size=16777216, dst="0x7f2a40000000", device=0)
        self.did("copy", 53140000, 700.16, 0, call=copy, stream="0x0", size=16777216, direction="HtoD")
        self.operations += 2
        alike = {"block": [256, 1, 1], "shared": 0}
        self.lines.append(line(type="graph", op="content", ts=55000000, pid=70, graph=1, nodes=6, kernels=4, content=[
            {"op": "kernel", "kernel": GEMM, "grid": [64, 1, 1], **alike, "count": 3},
            {"op": "kernel", "kernel": SOFTMAX, "grid": [8, 1, 1], **alike, "count": 1},
            {"op": "copy", "size": 8388608, "count": 1}, {"op": "set", "size": 65536, "count": 1}]))
        ts = 55000000
        for number in range(TOKENS):
            ts = self.token(ts, number)
            if number % 5 == 4:
                self.report()
        self.call(59000000, 40.0, "memory", "free", "cuMemFree", ptr="0x7f2a40000000", kind="device")
        self.report()
        self.lines.append(line(type="process", op="exit", ts=59900000, pid=70, ppid=1, comm="decode", exit_code=0))
        calls = self.operations - 1
        self.lines.append(line(type="end", ts=60000000, lines=len(self.lines) + 1, duration_ns=60000000, calls=self.calls,
                               unfinished_calls=0, losses={}, accounts={"entered": 2 * self.calls, "emitted": 2 * self.calls,
                                                                  "dropped": 0, "received": 2 * self.calls},
                               gpu_operations={"operations": self.operations, "joined": calls, "calls": calls, "answered": calls,
                                          "invalid": 0, "unjoined": {"no_call": 1}, "clock_error_ns": 180},
                               command_status=0, reason="command ended"))
        return "\n".join(self.lines) + "\n"


if __name__ == "__main__":
    for name, *how in (("gpu_kernels", "nodes", 40.0), ("gpu_kernels_slower", "nodes", 52.0),
                       ("gpu_kernels_whole", "graphs", 40.0)):
        (FOLDER / f"{name}.jsonl").write_text(Trace(*how).text(), encoding="utf-8")
