#!/usr/bin/env python3
"""PyTorch on one GPU, which multiplies matrices in every way that has a shape of its own: by cuBLAS and cuBLASLt, in several types,
in batches, with what is done to the result in the same kernel, and in a graph. It writes down what it asked for, a line each.

usage: torch_products.py LOG
"""
import collections
import json
import sys

import torch

KNOWN = collections.Counter()  # by rows and columns of the result in either order, what is summed over, and how many
REPLAYS = 3


def random(*sizes, dtype=torch.bfloat16):
    return torch.randn(*sizes, device="cuda", dtype=torch.float32).to(dtype)


def know(rows, columns, depth, batch=1, times=1):
    KNOWN[tuple(sorted((rows, columns))), depth, batch] += times


def products():
    """Those that any PyTorch has; sizes differ, so that each is known by them"""
    for number, dtype in enumerate((torch.bfloat16, torch.float16, torch.float32, torch.float64)):
        rows, columns, depth = 256 + 16 * number, 512, 1024
        torch.mm(random(rows, depth, dtype=dtype), random(depth, columns, dtype=dtype))
        know(rows, columns, depth)
        torch.mm(random(rows, depth, dtype=dtype), random(columns, depth, dtype=dtype).t())
        know(rows, columns, depth)
        torch.bmm(random(6, rows, 128, dtype=dtype), random(6, 128, 64, dtype=dtype))
        know(rows, 64, 128, 6)
    torch.addmm(random(768), random(320, 640), random(640, 768))
    know(320, 768, 640)
    linear = torch.nn.Linear(1536, 896, device="cuda", dtype=torch.bfloat16)
    for rows in (1, 7, 2048):
        linear(random(rows, 1536))
        know(rows, 896, 1536)
    torch._addmm_activation(random(1152), random(416, 672), random(672, 1152), use_gelu=True)  # pylint: disable=protected-access
    know(416, 1152, 672)


def of_float8():
    if torch.cuda.get_device_capability() < (8, 9):
        return
    one = torch.ones((), device="cuda")
    a, b = random(544, 1024, dtype=torch.float8_e4m3fn), random(1280, 1024, dtype=torch.float8_e4m3fn).t()
    torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)  # pylint: disable=protected-access
    know(544, 1280, 1024)


def in_a_graph():
    """Captured once, and run at each replay"""
    a, b = random(1088, 960), random(960, 1216)
    torch.mm(a, b)
    know(1088, 1216, 960)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.mm(a, b)
    for _ in range(REPLAYS):
        graph.replay()
    know(1088, 1216, 960, times=REPLAYS)


def main():
    torch.cuda.init()
    torch.mm(random(8, 8), random(8, 8))  # libraries are loaded, and found from inside at the next call that makes something
    torch.cuda.Stream()
    torch.cuda.synchronize()
    for each in (products, of_float8, in_a_graph):
        each()
    torch.cuda.synchronize()
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        for (sizes, depth, batch), count in KNOWN.items():
            file.write(json.dumps({"sizes": sizes, "k": depth, "batch": batch, "count": count}) + "\n")


main()
