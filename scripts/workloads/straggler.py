#!/usr/bin/env python3
"""Steps of a matrix product and an all_reduce, one process for each GPU, of which one may be late in each step.

The first process prints the time per step. A late process sleeps before its all_reduce, so the others' GPUs wait for it.
"""

import argparse
import json
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
    weight = torch.randn(args.width, args.width, device="cuda", dtype=torch.float16) / args.width
    x = torch.ones(args.width, args.width, device="cuda", dtype=torch.float16)
    dist.all_reduce(x)
    torch.cuda.synchronize()
    spent, entered = [], []
    for step in range(args.steps):
        begin = time.perf_counter()
        y = x @ weight
        if index == args.late and step not in args.punctual:
            torch.cuda.synchronize()
            time.sleep(args.delay / 1e3)
        if step == args.hang_at and index == args.late:
            time.sleep(args.hang)
        entered.append(time.monotonic())
        dist.all_reduce(y)
        torch.cuda.synchronize()
        spent.append(time.perf_counter() - begin)
    if args.times:
        with open(f"{args.times}/entered.{index}.json", "w", encoding="utf-8") as file:
            json.dump(entered, file)
    if index == 0:
        print(f"{args.gpus} GPUs, {args.steps} steps, median {sorted(spent)[len(spent) // 2] * 1e3:.3f} ms a step", flush=True)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=torch.cuda.device_count(), help="how many GPUs to use; default: all")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--late", type=int, default=-1, help="which process is late; default: none")
    parser.add_argument("--delay", type=float, default=10, help="by how many milliseconds; default: 10")
    parser.add_argument("--punctual", type=int, nargs="*", default=[], help="steps in which it is not")
    parser.add_argument("--times", help="a folder in which each process writes when it entered its collectives")
    parser.add_argument("--hang-at", type=int, default=-1, help="the step in which it does not come for a long time; default: none")
    parser.add_argument("--hang", type=float, default=60, help="for how many seconds; default: 60")
    parser.add_argument("--port", type=int, default=29513, help="port on which the processes find each other; default: 29513")
    args = parser.parse_args()
    processes.spawn(rank, args=(args,), nprocs=args.gpus)


if __name__ == "__main__":
    main()
