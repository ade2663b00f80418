"""Writes who_held.jsonl: two processes allocate on two GPUs, by several libraries, until memory runs out; PyTorch's tensors have a third of
what it has reserved."""
import json
import pathlib

MIB = 1 << 20
HEADER = {"type": "trace", "format": "cudabpf-trace", "format_version": "2.0", "version": "0.1.0", "host": "gpu-1", "linux": "6.12.9-amd64",
          "arch": "x86_64", "driver": "580.159.04",
          "gpus": [{"index": at, "name": "NVIDIA H200", "uuid": f"GPU-{at}", "bus_id": f"0000:{at + 1}9:00.0"} for at in (0, 1)],
          "mode": "run", "source": "ebpf", "command": ["./serve"], "pids": [], "profile": "default", "left_out": [], "returns": True, "follow": True,
          "blocks": True, "driver_traced": False, "ring_size": 33554432,
          "clocks": {"realtime_ns": 1795000000000000001, "monotonic_ns": 5000000000, "boottime_ns": 6000000000}, "libraries": [], "features": []}
NO_ROOM = 2
lines = [HEADER, {"type": "process", "op": "start", "ts": 1000, "pid": 70, "ppid": 1, "comm": "serve", "cmdline": "./serve"},
         {"type": "process", "op": "start", "ts": 2000, "pid": 71, "ppid": 70, "comm": "worker", "cmdline": "./worker"}]
ids = at = calls = 0


def call(kind, **fields):
    global ids, at, calls  # pylint: disable=global-statement
    ids, at, calls = ids + 1, at + 100_000, calls + 1
    name = {"device": "cuMemAlloc", "async": "cuMemAllocAsync", "host": "cuMemHostAlloc"}[kind]
    line = {"id": ids, "type": "memory", "op": "alloc", "name": name, "ts": at, "duration_us": 20.0, "tid": fields["pid"], "ret": 0, **fields}
    if not line["ret"]:
        line["ptr"] = hex(0x7F0000000000 + ids * (1 << 32))
    lines.append({**line, "kind": kind})
    return line


def free(block):
    global ids, at, calls  # pylint: disable=global-statement
    ids, at, calls = ids + 1, at + 100_000, calls + 1
    lines.append({"id": ids, "type": "memory", "op": "free", "name": "cuMemFree", "ts": at, "duration_us": 5.0, "pid": block["pid"],
                  "tid": block["tid"], "ret": 0, "size": block["size"], "ptr": block["ptr"]})


def block(op, ptr, **fields):
    global ids, at, calls  # pylint: disable=global-statement
    ids, at, calls = ids + 1, at + 100_000, calls + 1
    lines.append({"id": ids, "type": "block", "op": op, "name": "pytorch:" + {"alloc": "malloc", "free": "free"}[op], "library": "c10", "layer": 2, "ts": at,
                  "pid": 70, "tid": 70, "ptr": ptr, **fields})


for _ in range(5):
    segment = call("device", pid=70, size=4096 * MIB, device=0, holder="libc10_cuda.so")
    block("alloc", segment["ptr"], size=1700 * MIB, device=0, args={"stream_id": 0})
block("free", segment["ptr"])
block("free", "0x7e0000000000")
call("device", pid=70, size=900 * MIB, device=0, holder="libnccl.so.2")
call("device", pid=70, size=900 * MIB, device=1, holder="libnccl.so.2")
call("async", pid=71, size=2048 * MIB, device=0, holder="worker")
workspace = call("device", pid=71, size=32 * MIB, device=0, holder="libcublas.so.12")
call("device", pid=71, size=16 * MIB, device=0)
call("host", pid=70, size=64 * MIB, holder="libc10_cuda.so")
call("host", pid=71, size=8 * MIB)
free(workspace)
for _ in range(2):
    call("device", pid=70, size=4096 * MIB, device=0, holder="libc10_cuda.so", ret=NO_ROOM, error="CUDA_ERROR_OUT_OF_MEMORY")
lines.append({"type": "end", "ts": at + 1_000_000, "lines": len(lines) + 1, "duration_ns": at + 1_000_000, "calls": calls, "unfinished_calls": 0,
              "losses": {}, "accounts": {"entered": 2 * calls, "emitted": 2 * calls, "dropped": 0, "received": 2 * calls}, "command_status": 0,
              "reason": "command ended"})
pathlib.Path(__file__).with_suffix(".jsonl").write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines), encoding="utf-8")
