#!/usr/bin/env python3
"""PyTorch on one GPU, which says by NVTX what it does: ranges in ranges, one on another thread's, marks, a domain, the operators
of emit_nvtx, and NCCL's own. It writes down what it said, a line each, and when: from before to after each of NVTX's functions.

usage: torch_ranges.py LOG
"""
import contextlib
import json
import os
import sys
import threading
import time

import torch
from torch.cuda import nvtx

KERNELS = 5  # that each `part` launches
KNOWN = []


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def know(op, label, begin, domain="", kernels=0, tid=None):
    KNOWN.append({"op": op, "label": label, "domain": domain, "kernels": kernels, "from": begin, "to": now(),
                  "tid": tid or threading.get_native_id()})


@contextlib.contextmanager
def pushed(label, kernels=0):
    begin = now()
    nvtx.range_push(label)
    yield
    nvtx.range_pop()
    know("push", label, begin, kernels=kernels)


def steps(x, count, name):
    """Each part launches kernels of its own, and a step none besides"""
    for step in range(count):
        with pushed(f"{name} {step}", 2 * KERNELS):
            for part in ("attention", "mlp"):
                with pushed(part, KERNELS):
                    for _ in range(KERNELS):
                        x.add_(1)
        torch.cuda.current_stream().synchronize()


def in_a_domain(x):
    """By Python's own package, where it is there"""
    try:
        import nvtx as package
    except ImportError:
        return
    for _ in range(10):
        begin = now()
        with package.annotate("part of a domain", domain="model", color="green", payload=7):
            x.add_(1)
        know("push", "part of a domain", begin, "model", 1)


def emitted(x):
    """What autograd's operators say of themselves is PyTorch's own: its names are known by their beginnings alone"""
    weight = torch.randn(64, 64, device="cuda", requires_grad=True)
    torch.cuda.synchronize()
    with torch.autograd.profiler.emit_nvtx(record_shapes=True), pushed("emitted"):
        (x @ weight).sum().backward()
    torch.cuda.synchronize()


def collectives(x):
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29517")
    torch.distributed.init_process_group("nccl", rank=0, world_size=1)
    with pushed("collectives"):
        for _ in range(3):
            torch.distributed.all_reduce(x)
    torch.cuda.synchronize()
    torch.distributed.destroy_process_group()


def main():
    x = torch.ones(64, 64, device="cuda")
    with pushed("load"):
        x.add_(1)
        torch.cuda.synchronize()
    begin, started_by = now(), threading.get_native_id()
    request = nvtx.range_start("request")
    steps(x, 20, "step")

    def end_it():
        steps(x, 30, "other")
        nvtx.range_end(request)
        know("start", "request", begin, tid=started_by)
    other = threading.Thread(target=end_it)
    other.start()
    other.join()
    begin = now()
    nvtx.mark("half")
    know("mark", "half", begin)
    in_a_domain(x)
    emitted(x)
    collectives(x)
    with open(sys.argv[1], "w", encoding="utf-8") as log:
        for known in KNOWN:
            log.write(json.dumps(known) + "\n")


if __name__ == "__main__":
    main()
