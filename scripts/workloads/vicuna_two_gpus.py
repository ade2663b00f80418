#!/usr/bin/env python3
"""Generates tokens with the architecture of Vicuna-7B, which is LLaMA-7B's, split over two GPUs with NCCL.

Each GPU has its own process, with a part of every layer (tensor parallelism), and all of them make
the same tokens; the first one prints them. It starts its processes itself, or is started by torchrun:

  vicuna_two_gpus.py --tokens 32
  torchrun --nproc-per-node 2 vicuna_two_gpus.py --tokens 32

Without --weights the weights are random, and the output says so. The prompt's tokens are random, too.
"""

import argparse
import json
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torch.nn import functional

import decoding
from stages import Stages

WIDTH, LAYERS, HEADS, INNER, VOCABULARY = 4096, 32, 32, 11008, 32000
HEAD = WIDTH // HEADS
ROWS, COLUMNS, ALL = 0, 1, None  # what of a weight a process has: its share of the outputs or of the inputs, or all
# The embedding is on every GPU, since looking a token up costs nothing. The head, which makes the scores, is split by
# the vocabulary: each GPU scores its part of the tokens, and gets the others' scores from the others.
MODEL = {  # shapes and parts, with the names of Hugging Face's LlamaForCausalLM
    "model.embed_tokens.weight": ((VOCABULARY, WIDTH), ALL),
    "model.norm.weight": ((WIDTH,), ALL),
    "lm_head.weight": ((VOCABULARY, WIDTH), ROWS),
}
LAYER = {
    "input_layernorm.weight": ((WIDTH,), ALL),
    "self_attn.q_proj.weight": ((WIDTH, WIDTH), ROWS),
    "self_attn.k_proj.weight": ((WIDTH, WIDTH), ROWS),
    "self_attn.v_proj.weight": ((WIDTH, WIDTH), ROWS),
    "self_attn.o_proj.weight": ((WIDTH, WIDTH), COLUMNS),
    "post_attention_layernorm.weight": ((WIDTH,), ALL),
    "mlp.gate_proj.weight": ((INNER, WIDTH), ROWS),
    "mlp.up_proj.weight": ((INNER, WIDTH), ROWS),
    "mlp.down_proj.weight": ((WIDTH, INNER), COLUMNS),
}


def load(source, args, index, device):
    """-> this process's parts of the weights. Random ones are made whole, so their number does not change the model."""
    named = MODEL | {f"model.layers.{n}.{name}": known for n in range(args.layers) for name, known in LAYER.items()}
    weights = {}
    for name, (shape, split) in named.items():
        part = source(name, shape)
        if split is not ALL:
            part = part.chunk(args.gpus, split)[index]
        # A copy, which does not keep the whole one in memory, as a view would.
        weights[name] = torch.empty(part.shape, device=device, dtype=getattr(torch, args.dtype)).copy_(part)
    return weights


class Part:
    """What one of the processes has of the model."""

    def __init__(self, weights, layers, gpus, epsilon):
        self.weights, self.layers, self.gpus, self.epsilon = weights, layers, gpus, epsilon
        self.heads = HEADS // gpus
        self.keys = self.values = self.cos = self.sin = None
        self.length = 0  # tokens whose keys and values are kept

    def begin(self, batch, length):
        """Makes room for the keys and values of sequences of this length."""
        known = self.weights["model.norm.weight"]
        shape = (self.layers, batch, self.heads, length, HEAD)
        self.keys, self.values = (torch.empty(shape, device=known.device, dtype=known.dtype) for _ in range(2))
        self.length = 0
        frequencies = 10000 ** (-torch.arange(0, HEAD, 2, device=known.device) / HEAD)
        angles = torch.outer(torch.arange(length, device=known.device), frequencies).repeat(1, 2)
        self.cos, self.sin = angles.cos().to(known.dtype), angles.sin().to(known.dtype)

    def norm(self, x, name):
        exact = x.float()  # the squares of 16-bit numbers may be too large for 16 bits
        exact = exact * torch.rsqrt(exact.square().mean(-1, keepdim=True) + self.epsilon)
        return self.weights[name] * exact.to(x.dtype)

    def linear(self, x, name):
        return functional.linear(x, self.weights[f"{name}.weight"])

    def rotated(self, x, end):
        """Position by rotation: turns each pair of numbers, a half of the head apart, by the position's angle."""
        low, high = x.chunk(2, -1)
        return x * self.cos[self.length:end] + torch.cat((-high, low), -1) * self.sin[self.length:end]

    def attention(self, x, layer):
        batch, count, _ = x.shape
        end, name = self.length + count, f"model.layers.{layer}.self_attn"
        query, key, value = (self.linear(x, f"{name}.{kind}_proj").view(batch, count, self.heads, HEAD).transpose(1, 2)
                             for kind in "qkv")
        keys, values = self.keys[layer, :, :, :end], self.values[layer, :, :, :end]
        keys[:, :, self.length:], values[:, :, self.length:] = self.rotated(key, end), value
        # Several tokens come only at the beginning, where there are as many keys as queries; a single one sees all.
        seen = functional.scaled_dot_product_attention(self.rotated(query, end), keys, values, is_causal=count > 1)
        return self.summed(self.linear(seen.transpose(1, 2).reshape(batch, count, -1), f"{name}.o_proj"))

    def mlp(self, x, layer):
        name = f"model.layers.{layer}.mlp"
        wide = functional.silu(self.linear(x, f"{name}.gate_proj")) * self.linear(x, f"{name}.up_proj")
        return self.summed(self.linear(wide, f"{name}.down_proj"))

    @staticmethod
    def summed(x):
        dist.all_reduce(x)
        return x

    def scores(self, tokens):
        """Takes the tokens that follow those it has had. -> the scores of the next one, (sequences, vocabulary)"""
        x = functional.embedding(tokens, self.weights["model.embed_tokens.weight"])
        for layer in range(self.layers):
            x = x + self.attention(self.norm(x, f"model.layers.{layer}.input_layernorm.weight"), layer)
            x = x + self.mlp(self.norm(x, f"model.layers.{layer}.post_attention_layernorm.weight"), layer)
        self.length += tokens.shape[1]
        own = self.linear(self.norm(x[:, -1], "model.norm.weight"), "lm_head")
        parts = [torch.empty_like(own) for _ in range(self.gpus)]
        dist.all_gather(parts, own)
        return torch.cat(parts, -1)


def epsilon_of(folder):
    """-> what keeps the norm from dividing by 0: LLaMA's, unless the folder's config.json has another, as LLaMA 2's"""
    path = os.path.join(folder or "", "config.json")
    if not folder or not os.path.exists(path):
        return 1e-6
    with open(path, encoding="utf-8") as file:
        return json.load(file).get("rms_norm_eps", 1e-6)


def rank(index, args):
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", str(args.port))
    on_gpu = args.device == "cuda"
    device = torch.device("cuda", index) if on_gpu else torch.device("cpu")
    stages = Stages()
    done = stages.done if index == 0 else lambda *_: None  # each stage is all processes', so one tells of it
    if on_gpu:
        torch.cuda.set_device(device)
        # cuDNN makes a new plan for each sequence length, which takes longer than the attention itself.
        torch.backends.cuda.enable_cudnn_sdp(False)
    dist.init_process_group("nccl" if on_gpu else "gloo", rank=index, world_size=args.gpus)
    dist.all_reduce(torch.zeros(1, device=device))
    done("processes", f"{args.gpus}, connected by {'NCCL' if on_gpu else 'Gloo'}")

    source = decoding.Folder(args.weights) if args.weights else decoding.Random(args.seed, device)
    model = Part(load(source, args, index, device), args.layers, args.gpus, epsilon_of(args.weights))
    size = sum(weight.numel() for weight in model.weights.values())
    if on_gpu:
        torch.cuda.synchronize()
    done("weights", f"Vicuna-7B, {args.layers} layers, {size / 1e6:.1f} M parameters each, {args.dtype}, {source}")
    prompt = decoding.random_prompt(args, VOCABULARY).to(device)
    done("input", f"{args.batch} x {args.prompt} tokens")
    if args.warm_up:
        decoding.greedy(model, prompt, args.warm_up)
        done("warm-up", f"{args.warm_up} tokens")
    tokens, seconds = decoding.greedy(model, prompt, args.tokens)
    done("inference", f"{args.tokens} tokens")

    made = tokens.to(device)
    every = [torch.empty_like(made) for _ in range(args.gpus)]
    dist.all_gather(every, made)
    same = all(torch.equal(made, other) for other in every)
    if index == 0:
        decoding.report(tokens, seconds)
        print(f"all processes made the same tokens: {same}", flush=True)
        stages.total()
    dist.destroy_process_group()
    if not same:
        sys.exit(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=2, help="GPUs, or processes with --device cpu; default: 2")
    parser.add_argument("--port", type=int, default=29512, help="where the processes find each other; default: 29512")
    args = decoding.options(parser, LAYERS)
    started = "LOCAL_RANK" in os.environ  # by torchrun, which has chosen how many there are
    args.gpus = int(os.environ["WORLD_SIZE"]) if started else args.gpus
    if args.gpus < 1 or any(size % args.gpus for size in (HEADS, INNER, VOCABULARY)):
        parser.error(f"--gpus: {args.gpus} does not divide all of {HEADS}, {INNER} and {VOCABULARY}")
    if args.device == "cuda" and args.gpus > torch.cuda.device_count():
        parser.error(f"--gpus: this machine has {torch.cuda.device_count()}")
    if started:
        rank(int(os.environ["LOCAL_RANK"]), args)
    else:
        processes.spawn(rank, args=(args,), nprocs=args.gpus)


if __name__ == "__main__":
    main()
