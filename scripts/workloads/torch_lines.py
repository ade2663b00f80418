#!/usr/bin/env python3
"""PyTorch on one GPU, which writes down from where each of its calls launches a kernel, as Python itself says it: from functions, modules,
other threads, a backward pass, and a compiled function where it can be compiled.

usage: torch_lines.py LOG
"""
import json
import sys
import threading

import torch

KNOWN = []


def here(frame):
    """What Python says of a frame and those around it, the innermost first"""
    frames = []
    while frame:
        frames.append((frame.f_code.co_qualname, frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return frames


def add(x):
    KNOWN.append((threading.get_native_id(), here(sys._getframe()))), x.add_(1)  # pylint: disable=expression-not-assigned


class Block(torch.nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.inner = Block(depth - 1) if depth else None

    def forward(self, x):
        add(x)
        if self.inner:
            self.inner(x)
        [add(x) for _ in range(2)]  # pylint: disable=expression-not-assigned
        return x


class Doubled(torch.autograd.Function):
    """Its backward pass runs on a thread of PyTorch's, which has Python frames only while it runs this"""
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.clone()
        add(gradient)
        return gradient * 2


def main():
    x = torch.zeros(1 << 10, device="cuda")
    model = Block(6)
    with torch.no_grad():
        for _ in range(20):
            model(x)
        others = [threading.Thread(target=lambda: [add(x) for _ in range(50)]) for _ in range(3)]
        for other in others:
            other.start()
        for other in others:
            other.join()
    leaf = torch.ones(1 << 10, device="cuda", requires_grad=True)
    for _ in range(5):
        Doubled.apply(leaf).sum().backward()
    torch.cuda.synchronize()
    with open(sys.argv[1], "w", encoding="utf-8") as log:
        for tid, frames in KNOWN:
            log.write(json.dumps({"tid": tid, "frames": frames}) + "\n")


if __name__ == "__main__":
    main()
