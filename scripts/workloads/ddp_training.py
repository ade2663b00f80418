#!/usr/bin/env python3
"""Trains a small network data-parallel, one process for each GPU: gradients are added up while the backward pass goes on.

The first process prints the time per step.
"""

import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as processes


def rank(index, args):
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", str(args.port))
    torch.cuda.set_device(index)
    dist.init_process_group("nccl", rank=index, world_size=args.gpus)
    torch.manual_seed(index)
    layers = [module for _ in range(args.layers) for module in (torch.nn.Linear(args.width, args.width), torch.nn.ReLU())]
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers).cuda(), device_ids=[index])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.randn(args.batch, args.width, device="cuda")
    spent = []
    for _ in range(args.steps):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        model(x).square().mean().backward()
        optimizer.step()
        torch.cuda.synchronize()
        spent.append(time.perf_counter() - begin)
    if index == 0:
        print(f"{args.gpus} GPUs, {args.steps} steps, median {sorted(spent)[len(spent) // 2] * 1e3:.3f} ms a step", flush=True)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=torch.cuda.device_count(), help="how many GPUs to use; default: all")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--port", type=int, default=29514, help="port on which the processes find each other; default: 29514")
    args = parser.parse_args()
    processes.spawn(rank, args=(args,), nprocs=args.gpus)


if __name__ == "__main__":
    main()
