#!/usr/bin/env python3
"""Five loops in PyTorch with different demands on the driver, for measuring what tracing costs them.

eager   two small kernels per iteration: hardly anything but launches  µs per iteration
decode  GPT-2, 124 million random weights, a token per iteration       tokens per second
matmul  one large matrix multiply: launches cost nothing beside it     µs each
graph   a CUDA graph of 100 kernels, replayed                          µs per replay
copies  a batch to the GPU and a result back, as data loading does     µs per iteration

Prints a line per round: the loop, the time of day, the figure.
"""

import argparse
import contextlib
import signal
import time

import torch


def eager():
    x, y = torch.ones(1024, device="cuda"), torch.ones(1024, device="cuda")
    return lambda: torch.relu(x + y), 4000


def decode():
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.backends.cuda.enable_cudnn_sdp(False)  # it makes a new plan for each length
    with torch.device("cuda"):
        model = GPT2LMHeadModel(GPT2Config()).half().eval()
    state = {"past": None, "fed": torch.zeros(1, 5, dtype=torch.long, device="cuda")}

    def token():
        output = model(state["fed"], past_key_values=state["past"], use_cache=True)
        state["past"], state["fed"] = output.past_key_values, output.logits[:, -1].argmax(-1, keepdim=True)
        if state["past"].get_seq_length() > 512:
            state["past"] = None
        return state["fed"].item()

    return token, 60


def matmul():
    a, b = (torch.ones(8192, 8192, device="cuda", dtype=torch.float16) for _ in range(2))
    return lambda: a @ b, 100


def graph():
    x = torch.ones(1024, device="cuda")
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        for _ in range(100):
            x.add_(1)
    return captured.replay, 1000


def copies():
    host, back = torch.ones(1 << 18).pin_memory(), torch.empty(1).pin_memory()
    device = torch.empty(1 << 18, device="cuda")

    def batch():
        device.copy_(host, non_blocking=True)
        back.copy_(device[:1], non_blocking=True)
        torch.cuda.current_stream().synchronize()

    return batch, 3000


LOOPS = {"eager": eager, "decode": decode, "matmul": matmul, "graph": graph, "copies": copies}


def profiler(which):
    from torch.profiler import ProfilerActivity, profile

    kinds = {"cuda": [ProfilerActivity.CUDA], "both": [ProfilerActivity.CPU, ProfilerActivity.CUDA]}
    return profile(activities=kinds[which])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(LOOPS), help="which loops to run, comma-separated; default: all")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each loop, after one to warm up; default: 3")
    parser.add_argument("--part", type=float, default=1, help="run this part of a round's iterations, for shorter rounds; default: 1")
    parser.add_argument("--profiler", choices=("cuda", "both"), help="run under torch.profiler, for CUDA or for the CPU, too")
    args = parser.parse_args()
    unknown = set(args.only.split(",")) - LOOPS.keys()
    if unknown or args.rounds < 1:
        parser.error(f"--only takes of {', '.join(LOOPS)}; --rounds at least 1")
    with torch.inference_mode():
        for name in args.only.split(","):
            step, count = LOOPS[name]()
            for _ in range(count // 4):
                step()
            count = max(1, int(count * args.part))
            for _ in range(args.rounds):
                with profiler(args.profiler) if args.profiler else contextlib.nullcontext():
                    torch.cuda.synchronize()
                    begin = time.perf_counter()
                    for _ in range(count):
                        step()
                    torch.cuda.synchronize()
                    spent = time.perf_counter() - begin
                figure = count / spent if name == "decode" else 1e6 * spent / count
                print(f"{name}\t{time.time():.3f}\t{figure:.4f}", flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    with contextlib.suppress(KeyboardInterrupt):
        main()
