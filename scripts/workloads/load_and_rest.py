#!/usr/bin/env python3
"""Multiplies matrices on a GPU for some seconds, works element by element for some, then rests, and prints as JSON when
(CLOCK_MONOTONIC, in ns)."""
import argparse
import json
import time

import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--load", type=float, default=20, help="seconds")
parser.add_argument("--elementwise", type=float, default=0, help="seconds")
parser.add_argument("--rest", type=float, default=5, help="seconds")
options = parser.parse_args()

a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
b = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
for _ in range(3):
    c = a @ b
torch.cuda.synchronize()


def repeat(work, seconds):
    """-> when it began and ended"""
    began = time.monotonic_ns()
    while time.monotonic_ns() - began < seconds * 1e9:
        for _ in range(20):
            work()
        torch.cuda.synchronize()
    return began, time.monotonic_ns()


begin, end = repeat(lambda: torch.matmul(a, b, out=c), options.load)
elementwise = repeat(lambda: torch.sin(c, out=c), options.elementwise)
time.sleep(options.rest)
print(json.dumps({"begin": begin, "end": end, "elementwise": elementwise, "rested": time.monotonic_ns(), "allocated": torch.cuda.memory_allocated()}))
