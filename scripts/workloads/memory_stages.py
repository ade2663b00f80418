#!/usr/bin/env python3
"""Takes GPU memory in the ways that PyTorch, NCCL and JAX do, then rests for a while, and prints what NVML and the library say.

usage: memory_stages.py torch|nccl|jax [--rest SECONDS]
"""
import argparse
import json
import os
import time

import pynvml


def by_torch():
    import torch

    kept = [torch.ones(4096, 4096, device="cuda", dtype=torch.half)]
    kept.append(kept[0] @ kept[0])
    kept.append(torch.empty(1 << 30, dtype=torch.uint8, device="cuda"))
    kept.append(torch.nn.functional.conv2d(torch.ones(8, 64, 56, 56, device="cuda"), torch.ones(64, 64, 3, 3, device="cuda")))
    graph = torch.cuda.CUDAGraph()
    kept.append(torch.ones(1 << 20, device="cuda"))
    with torch.cuda.graph(graph):
        for _ in range(200):
            kept[-1] = kept[-1] * 1.5
    graph.replay()
    torch.cuda.synchronize()
    return [kept, graph], lambda: {"libc10_cuda.so": torch.cuda.memory_reserved()}


def by_nccl():
    import torch
    import torch.distributed as dist

    kept, held = by_torch()
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
    dist.all_reduce(torch.ones(1 << 20, device="cuda"))
    torch.cuda.synchronize()
    return kept, held


def by_jax():
    import jax
    import jax.numpy as jnp

    kept = jnp.ones((4096, 4096), jnp.bfloat16)
    kept = [kept, (kept @ kept).block_until_ready(), jax.jit(lambda x: jnp.tanh(x @ x).sum())(kept).block_until_ready()]
    return kept, dict


def main():
    programs = {"torch": by_torch, "nccl": by_nccl, "jax": by_jax}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=programs)
    parser.add_argument("--rest", type=float, default=2.5, metavar="SECONDS", help="while NVML's figure stays the same [2.5]")
    arguments = parser.parse_args()
    kept, held = programs[arguments.program]()
    time.sleep(arguments.rest)
    pynvml.nvmlInit()
    processes = pynvml.nvmlDeviceGetComputeRunningProcesses(pynvml.nvmlDeviceGetHandleByIndex(0))
    print(json.dumps({"nvml": sum(one.usedGpuMemory for one in processes if one.pid == os.getpid()), "held": held()}), flush=True)
    assert kept
    os._exit(0)  # with all of it


if __name__ == "__main__":
    main()
