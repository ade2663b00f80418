#!/usr/bin/env python3
"""A transformer's blocks split over several GPUs, one process each; they add up their parts by NCCL.

The first process prints the time per step, and whether all of them got the same numbers.
"""

import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as processes


def block(x, up, down):
    """One layer: each process computes a part of its width, and the parts are added up."""
    x = x + torch.nn.functional.gelu(x @ up) @ down
    dist.all_reduce(x)
    return torch.nn.functional.layer_norm(x, x.shape[-1:])


def rank(index, args):
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", str(args.port))
    torch.cuda.set_device(index)
    dist.init_process_group("nccl", rank=index, world_size=args.gpus)
    torch.manual_seed(index)
    width, part = args.width, 4 * args.width // args.gpus
    layers = [(torch.randn(width, part, device="cuda", dtype=torch.float16) / width,
               torch.randn(part, width, device="cuda", dtype=torch.float16) / width) for _ in range(args.layers)]
    x = torch.ones(args.batch, width, device="cuda", dtype=torch.float16)
    spent = []
    for _ in range(args.steps):
        begin = time.perf_counter()
        for up, down in layers:
            x = block(x, up, down)
        torch.cuda.synchronize()
        spent.append(time.perf_counter() - begin)
    if args.gpus > 1:  # from one GPU's memory to the next one's
        sent = x.to(f"cuda:{(index + 1) % args.gpus}")
        torch.cuda.synchronize(sent.device)
    sums = [torch.zeros(1, device="cuda") for _ in range(args.gpus)]
    dist.all_gather(sums, x.float().sum().reshape(1))
    if index == 0:
        print(f"{args.gpus} GPUs, {args.steps} steps of {args.layers} layers, median {sorted(spent)[len(spent) // 2] * 1e3:.3f} ms"
              f" a step; all the same: {len({float(value) for value in sums}) == 1}", flush=True)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=torch.cuda.device_count(), help="how many GPUs to use; default: all")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--port", type=int, default=29511, help="port on which the processes find each other; default: 29511")
    args = parser.parse_args()
    if not 1 <= args.gpus <= torch.cuda.device_count():
        parser.error(f"--gpus: this machine has {torch.cuda.device_count()}")
    processes.spawn(rank, args=(args,), nprocs=args.gpus)


if __name__ == "__main__":
    main()
