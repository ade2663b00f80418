#!/usr/bin/env python3
"""Every collective of NCCL at many sizes, one process for each GPU, timed by CUDA events.

Each process writes what it did, in order, to FOLDER/sweep.RANK.json: a list of operation, bytes that this rank passes, number of
elements, and microseconds of each repetition.
"""

import argparse
import json
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as processes


LARGE = 16 << 20  # from here on, bandwidth is of interest: the time between two streams must not count


def operations(ranks, index):
    """By name: whether the size may be had, and what runs it on a tensor of that size"""
    peer = ranks - 1 - index

    def send_recv(x, y):
        if peer == index:
            return
        both = [dist.P2POp(dist.isend, x, peer), dist.P2POp(dist.irecv, y[: x.numel()], peer)]
        for work in dist.batch_isend_irecv(both):
            work.wait()

    return {
        "all_reduce": lambda x, y: dist.all_reduce(x),
        "all_gather": lambda x, y: dist.all_gather_into_tensor(y[: x.numel() * ranks], x),
        "reduce_scatter": lambda x, y: dist.reduce_scatter_tensor(x, y[: x.numel() * ranks]),
        "broadcast": lambda x, y: dist.broadcast(x, 0),
        "send_recv": send_recv,
        "all_to_all": lambda x, y: dist.all_to_all_single(y[: x.numel()], x),
    }


def timed(run, times, in_a_row):
    """Microseconds of each repetition, of which some are timed together; nothing else runs meanwhile"""
    spent = []
    for _ in range(times):
        dist.barrier()
        torch.cuda.synchronize()
        torch.cuda._sleep(4_000_000)  # until all is queued: the events enclose nothing but the collective
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(in_a_row):
            run()
        end.record()
        torch.cuda.synchronize()
        spent += [begin.elapsed_time(end) * 1e3 / in_a_row] * in_a_row
    return spent


def rank(index, args):
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", str(args.port))
    torch.cuda.set_device(index)
    dist.init_process_group("nccl", rank=index, world_size=args.gpus, device_id=torch.device("cuda", index))
    done = []
    size = 8
    while size <= args.most:
        x = torch.ones(size // 4, device="cuda")
        y = torch.ones(size // 4 * args.gpus, device="cuda")
        for name, run in operations(args.gpus, index).items():
            done.append({"op": name, "bytes": size, "count": x.numel(), "us": timed(lambda run=run: run(x, y), args.times, 8 if size >= LARGE else 1)})
        del x, y
        size *= args.factor
    with open(f"{args.folder}/sweep.{index}.json", "w", encoding="utf-8") as file:
        json.dump(done, file)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="where to write what was done")
    parser.add_argument("--gpus", type=int, default=torch.cuda.device_count(), help="how many GPUs to use; default: all")
    parser.add_argument("--most", type=int, default=1 << 30, help="the largest size, in bytes; default: 1 GiB")
    parser.add_argument("--factor", type=int, default=8, help="from one size to the next; default: 8")
    parser.add_argument("--times", type=int, default=5, help="repetitions of each; default: 5")
    parser.add_argument("--port", type=int, default=29512, help="port on which the processes find each other; default: 29512")
    args = parser.parse_args()
    processes.spawn(rank, args=(args,), nprocs=args.gpus)


if __name__ == "__main__":
    main()
