"""Writes gpu_execution.jsonl: a program that decodes on one GPU, with the GPU's own times. A toy GPU gives the times: work begins
when its queue is free, and 4 µs after its call or 1.5 µs after what it waited for. Its lines come in bunches, mixed up.
usage: gpu_execution.py > gpu_execution.jsonl"""
import json
import random

PID = 4242
lines, late = [], []
ids = operations = 0
now = 0
free = {}  # ns by queue
events = {}
random.seed(5)


def us(value):
    return int(value * 1000)


def emit(line):
    lines.append(json.dumps(line, separators=(",", ":")))


def call(group, operation, name, took, **more):
    global ids, now  # pylint: disable=global-statement
    ids += 1
    emit({"id": ids, "type": group, "op": operation, "name": name, "ts": now, "duration_us": took / 1000, "pid": PID, "tid": PID,
          "ret": 0, **more})
    now += took
    return ids


def ran(operation, call_id, issued_at, took, stream, **more):
    global operations  # pylint: disable=global-statement
    operations += 1
    begin = max(issued_at + us(4), free.get(stream, 0) + us(1.5))
    free[stream] = begin + took
    late.append({"type": "gpu", "op": operation, "ts": begin, "duration_us": took / 1000, "pid": PID, "call": call_id,
                 "stream": stream, "queue": 7 if stream == "0x0" else 9, **more, "device": 0})


def kernel(name, took, stream="0x0"):
    issued_at = now
    call_id = call("kernel", "launch", "cuLaunchKernel", us(3), stream=stream, **{"async": True}, kernel=name, grid=[64, 1, 1],
                   block=[256, 1, 1], shared=0)
    ran("kernel", call_id, issued_at, took, stream, kernel=name, grid=[64, 1, 1], block=[256, 1, 1], shared=0)


def copy(direction, size, took, stream="0x0"):
    issued_at = now
    call_id = call("transfer", direction, f"cuMemcpy{direction}Async", us(4), size=size, stream=stream, **{"async": True})
    ran("copy", call_id, issued_at, took, stream, size=size, direction=direction)


def wait(stream="0x0"):
    took = max(us(2), free.get(stream, 0) + us(6) - now)
    call("sync", "stream", "cuStreamSynchronize", took, stream=stream)


def order(first, second):
    """What the second stream is given from now on waits for the first."""
    call("event", "record", "cuEventRecord", us(1), stream=first, **{"async": True}, args={"hEvent": "0x5500"})
    call("stream", "wait_event", "cuStreamWaitEvent", us(1), stream=second, **{"async": True}, args={"hEvent": "0x5500"})
    free[second] = max(free.get(second, 0), free.get(first, 0))


def pause(took):
    global now  # pylint: disable=global-statement
    now += us(took)


def bunch():
    random.shuffle(late)
    for line in late:
        emit(line)
    late.clear()


emit({"type": "trace", "format": "cudabpf-trace", "format_version": "2.0", "version": "0.1.0", "host": "gpu-1",
      "linux": "6.12.9-amd64", "arch": "x86_64", "driver": "580.159.04",
      "gpus": [{"index": 0, "name": "NVIDIA H200", "uuid": "GPU-6a0d", "bus_id": "0000:19:00.0"}], "mode": "run", "source": "ebpf",
      "command": ["./decode"], "pids": [], "profile": "default", "left_out": [], "returns": True, "follow": True,
      "driver_traced": False, "ring_size": 33554432, "gpu_timing": "nodes",
      "clocks": {"realtime_ns": 1795000000000000001, "monotonic_ns": 5000000000, "boottime_ns": 6000000000}, "libraries": [],
      "features": []})
now = us(100)
call("init", "init", "cuInit", us(3000), args={"flags": 0})
call("context", "create", "cuCtxCreate", us(2000), device=0)
emit({"type": "gpu", "op": "times", "ts": now, "pid": PID, "cupti": "13.0.1", "path": "/usr/lib/libcupti.so.13", "graphs": "nodes"})
call("memory", "alloc", "cuMemAlloc", us(120), size=4194304, ptr="0x7f2a40000000", kind="device", device=0)
copy("HtoD", 4194304, us(180))
wait()
pause(900)
for token in range(16):
    if token == 0:
        call("module", "load", "cuModuleLoadData", us(1500))
    if token == 10:
        pause(40000)  # the next prompt has not come
    for layer in range(6):
        kernel("void gemm<float>(float const*, float const*, float*, int)", us(14))
        pause(12)
        kernel("softmax(float*, int)", us(3))
        pause(9)
    copy("DtoH", 262144, us(40), stream="0x7f10")  # beside the kernels, of the token before
    kernel("void gemm<float>(float const*, float const*, float*, int)", us(60))
    order("0x7f10", "0x0")
    kernel("sample(float*, int*)", us(5))
    copy("DtoH", 4, us(2))
    wait()
    pause(30)
    if token % 5 == 4:
        bunch()
pause(200)
bunch()
now += us(500)
emit({"type": "end", "ts": now, "lines": len(lines) + 1, "duration_ns": now, "calls": ids, "unfinished_calls": 0, "losses": {},
      "accounts": {"entered": 2 * ids, "emitted": 2 * ids, "dropped": 0, "received": 2 * ids},
      "gpu_operations": {"operations": operations, "joined": operations, "calls": operations, "answered": operations, "ambiguous": 0, "invalid": 0,
                    "unjoined": {}, "clock_error_ns": 800},
      "command_status": 0, "reason": "command ended"})
print("\n".join(lines))
