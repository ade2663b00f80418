#!/usr/bin/env python3
"""A PyTorch program that one thing bounds: what to record to see whether `cudabpf summary` finds it.

usage: bounded.py KIND [ITERATIONS]
  gpu       large matrix products, each iteration waited for
  queue     many products, waited for only at the end: launches find the GPU's queue full
  host      many small kernels
  copies    large copies to the GPU
  memory    tensors that are allocated from the driver and freed again (sets PYTORCH_NO_CUDA_MEMORY_CACHING)
  growth    tensors that are kept
  exhausted requests more memory than there is, and goes on
  fault     an index that is out of bounds: every later call fails
"""
import os
import sys

KINDS = ("gpu", "queue", "host", "copies", "memory", "growth", "exhausted", "fault")


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in KINDS:
        sys.exit(__doc__)
    kind = sys.argv[1]
    iterations = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    if kind == "memory":
        os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"
    import torch  # pylint: disable=import-outside-toplevel
    device = "cuda"
    size = 4096 if kind in ("gpu", "queue") else 256
    large = torch.randn(size, size, device=device)
    host = torch.randn(16 << 20)
    kept = []

    def step():
        if kind in ("gpu", "queue"):
            x = large
            for _ in range(6):
                x = torch.relu(x @ large) * 0.01
        elif kind == "copies":
            x = host.to(device).sum() + torch.relu(large).sum()
        elif kind == "memory":
            x = large
            for _ in range(4):
                x = torch.relu(torch.zeros(8 << 20, device=device)[:256] * 2)
        elif kind == "growth":
            kept.append(torch.ones(16 << 20, device=device))
            x = torch.relu(large @ large)
        else:
            x = large
            for _ in range(20):
                x = torch.relu(x) + 1
        return x

    for i in range(iterations):
        step()
        if kind != "queue":
            torch.cuda.synchronize()
        if kind == "exhausted" and i == iterations // 2:
            try:
                torch.empty(1 << 50, device=device)
            except torch.cuda.OutOfMemoryError as error:
                print("out of memory:", str(error)[:60])
    torch.cuda.synchronize()
    if kind == "fault":
        bad = torch.full((4,), 1 << 40, device=device)
        try:
            torch.arange(8, device=device)[bad].sum().item()
        except Exception as error:  # pylint: disable=broad-except
            print("failed:", str(error)[:60])


if __name__ == "__main__":
    main()
