#!/usr/bin/env python3
"""Runs a small PyTorch network on the GPU many times and prints each stage with its time."""

import argparse
import sys

from stages import Stages, spread


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=100, help="iterations to time; default: 100")
    parser.add_argument("--warm-up", type=int, default=5, metavar="N", help="iterations before those; default: 5")
    parser.add_argument("--batch", type=int, default=32, help="batch size; default: 32")
    parser.add_argument("--width", type=int, default=1024, help="width of each layer; default: 1024")
    parser.add_argument("--layers", type=int, default=8, help="number of layers; default: 8")
    parser.add_argument("--dtype", choices=("float32", "float16", "bfloat16"), default="float32")
    args = parser.parse_args()
    if min(args.iterations, args.batch, args.width, args.layers) < 1 or args.warm_up < 0:
        parser.error("numbers are at least 1, --warm-up at least 0")
    return args


def network(torch, args):
    layers = []
    for _ in range(args.layers):
        layers += [torch.nn.Linear(args.width, args.width), torch.nn.ReLU(), torch.nn.LayerNorm(args.width)]
    return torch.nn.Sequential(*layers).to(getattr(torch, args.dtype)).eval()


def main():
    args = arguments()
    stages = Stages()
    import torch

    stages.done("import", f"torch {torch.__version__}")
    if not torch.cuda.is_available():
        sys.exit("no GPU: torch.cuda.is_available() is False")
    device = torch.device("cuda")
    stages.done("availability", torch.cuda.get_device_name(device))
    torch.zeros(1, device=device)
    torch.cuda.synchronize()
    stages.done("context")

    torch.manual_seed(1)
    model = network(torch, args)
    stages.done("model", f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f} M parameters, {args.dtype}")
    model = model.to(device)
    torch.cuda.synchronize()
    stages.done("weights", f"{torch.cuda.memory_allocated() / 2**20:.1f} MiB on the GPU")
    batch = torch.randn(args.batch, args.width, dtype=getattr(torch, args.dtype)).pin_memory()
    x = batch.to(device, non_blocking=True)
    torch.cuda.synchronize()
    stages.done("input", f"{args.batch} x {args.width}")

    with torch.inference_mode():
        for _ in range(args.warm_up):
            model(x)
            torch.cuda.synchronize()
        if args.warm_up:
            stages.done("warm-up", f"{args.warm_up} iterations")
        seconds = []
        for _ in range(args.iterations):
            with stages.timed(seconds):
                y = model(x)
                torch.cuda.synchronize()
    stages.done("inference", f"{args.iterations} iterations")
    print(f"  each iteration  {spread(seconds)}")
    result = y.cpu()
    stages.done("output", f"{result.numel()} numbers, their mean {result.float().mean():.4f}")
    peak = torch.cuda.max_memory_allocated() / 2**20
    stages.done("memory", f"{peak:.1f} MiB at most, {torch.cuda.memory_reserved() / 2**20:.1f} MiB reserved")
    del model, x, y
    torch.cuda.empty_cache()
    stages.done("clean-up")
    stages.total()


main()
