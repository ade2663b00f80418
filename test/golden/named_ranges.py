"""Writes the trace of a program that names what it does by NVTX: two requests, each read and then answered token by token,
with the layers' parts as ranges of a domain of their own. A toy GPU gives the times. The third layer's attention is slow.
usage: named_ranges.py > traces/example-ranges.jsonl"""
import json
import random

TOKENS, LAYERS = 24, 4
PID = 4300
random.seed(11)


def us(value):
    return int(value * 1000)


class Program:
    def __init__(self):
        self.now, self.lines, self.free = us(1000), [], 0
        self.ids = 0
        self.paths, self.known, self.open = {}, set(), []

    def emit(self, line, written=None):
        """Lines are written when their calls have returned, those of GPUs 100 ms after their work."""
        self.lines.append((line["ts"] if written is None else written, len(self.lines), json.dumps(line, separators=(",", ":"))))

    def begin(self, name, domain=None, operation="push", **more):
        around = self.open[-1]["range"] if self.open else None
        number = self.paths.setdefault((around, name, domain), len(self.paths) + 1)
        self.open.append({"range": number, "name": name, "domain": domain, "ts": self.now, "in_range": around, "op": operation, "more": more})

    def explain(self, at):
        """Before the first line that has a range's number, and in that order, lines say what the numbers stand for."""
        for one in self.open:
            if one["range"] in self.known:
                continue
            self.known.add(one["range"])
            line = {"type": "range", "op": "name", "label": one["name"], "ts": one["ts"], "range": one["range"]}
            if one["in_range"]:
                line["in_range"] = one["in_range"]
            if one["domain"]:
                line["domain"] = one["domain"]
            self.emit(line, at)

    def end(self):
        self.explain(self.now)
        one = self.open.pop()
        line = {"type": "range", "op": one["op"], "label": one["name"], "ts": one["ts"], "duration_us": (self.now - one["ts"]) / 1000,
                "pid": PID, "tid": PID, "range": one["range"]}
        if one["domain"]:
            line["domain"] = one["domain"]
        self.emit(line | one["more"], self.now)

    def mark(self, name):
        self.explain(self.now)
        self.emit({"type": "range", "op": "mark", "label": name, "ts": self.now, "pid": PID, "tid": PID, "range": self.open[-1]["range"]}, self.now)

    def call(self, group, operation, name, took, **more):
        self.ids += 1
        within = {"range": self.open[-1]["range"]} if self.open else {}
        self.explain(self.now + us(took))
        self.emit({"id": self.ids, "type": group, "op": operation, "name": name, "ts": self.now, "duration_us": took, "pid": PID,
                   "tid": PID, "ret": 0, **within, **more}, self.now + us(took))
        self.now += us(took)
        return self.ids

    def compute(self, name, took):
        """Launches a kernel, which runs when the GPU is free."""
        identifier = self.call("kernel", "launch", "cuLaunchKernel", 4, stream="0x0", **{"async": True}, kernel=name, grid=[64, 1, 1],
                               block=[256, 1, 1], shared=0)
        begin = max(self.now + us(3), self.free + us(1))
        self.free = begin + us(took + random.random())
        self.emit({"type": "gpu", "op": "kernel", "ts": begin, "duration_us": (self.free - begin) / 1000, "pid": PID, "call": identifier,
                   "stream": "0x0", "queue": 7, "kernel": name, "grid": [64, 1, 1], "block": [256, 1, 1], "shared": 0, "device": 0},
                  self.free + us(100_000))
        self.now += us(2)

    def wait(self):
        took = max(us(2), self.free + us(4) - self.now) / 1000
        self.call("sync", "stream", "cuStreamSynchronize", took, stream="0x0")

    def layers(self, rows):
        for layer in range(LAYERS):
            self.begin(f"layer {layer}", "model")
            self.begin("attention", "model")
            self.compute("qkv_gemm", 12 * rows)
            self.compute("flash_fwd_kernel", (60 if layer == 2 else 15) * rows)
            self.end()
            self.begin("mlp", "model")
            self.compute("up_gemm", 22 * rows)
            self.compute("gelu", 3 * rows)
            self.compute("down_gemm", 21 * rows)
            self.end()
            self.end()

    def request(self, number):
        self.begin(f"request {number}", operation="push", payload=number)
        self.begin("prefill", color="#ff00aa00")
        self.layers(8)
        self.wait()
        self.end()
        self.begin("decode")
        for token in range(TOKENS):
            self.begin(f"token {token}")
            self.layers(1)
            self.begin("sample")
            self.compute("softmax", 4)
            self.wait()
            self.now += us(35)  # the host chooses
            self.end()
            self.end()
        self.mark("answered")
        self.end()
        self.end()


def main():
    program = Program()
    program.emit({"type": "process", "op": "start", "ts": 10, "pid": PID, "ppid": 4200, "uid": 1000, "comm": "serve.py"}, 0)
    program.emit({"type": "gpu", "op": "times", "ts": 20, "pid": PID, "cupti": "13.0.1", "path": "/usr/lib/libcupti.so.13",
                  "graphs": "nodes"}, 1)
    for number in range(2):
        program.request(number)
        program.now += us(400)
    program.wait()
    lines = [line for _, _, line in sorted(program.lines)]
    header = {"type": "trace", "format": "cudabpf-trace", "format_version": "2.0", "cudabpf_version": "0.1.0", "host": "example",
              "driver": "580.159.04", "gpus": [{"index": 0, "name": "NVIDIA H200", "uuid": "", "bus_id": ""}], "mode": "run",
              "source": "inside", "command": ["python3", "serve.py"], "profile": "default", "gpu_timing": "nodes", "ranges": True,
              "clocks": {"realtime_ns": 1_796_000_000_000_000_000, "monotonic_ns": 10**12, "boottime_ns": 10**12}}
    print(json.dumps(header, separators=(",", ":")))
    for line in lines:
        print(line)
    calls = program.ids
    print(json.dumps({"type": "end", "ts": program.now, "lines": len(lines) + 2, "duration_ns": program.now, "calls": calls,
                      "unfinished_calls": 0, "losses": {}, "accounts": {"entered": 2 * calls, "emitted": 2 * calls, "dropped": 0,
                                                                         "received": 2 * calls}, "reason": "command exited"},
                     separators=(",", ":")))


if __name__ == "__main__":
    main()
