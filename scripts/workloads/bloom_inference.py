#!/usr/bin/env python3
"""Generates tokens with the architecture of BLOOM-560M, and prints each stage with its time.

It needs PyTorch alone. Without --weights the weights are random, and the output says so: the GPU
has the same work to do. The prompt's tokens are random, too.
"""

import argparse
import math

import torch
from torch.nn import functional

import decoding
from stages import Stages

WIDTH, LAYERS, HEADS, VOCABULARY = 1024, 24, 16, 250880
HEAD = WIDTH // HEADS
LAYER = {  # each layer's weights, with the names of Hugging Face's BloomForCausalLM
    "input_layernorm.weight": (WIDTH,),
    "input_layernorm.bias": (WIDTH,),
    "self_attention.query_key_value.weight": (3 * WIDTH, WIDTH),
    "self_attention.query_key_value.bias": (3 * WIDTH,),
    "self_attention.dense.weight": (WIDTH, WIDTH),
    "self_attention.dense.bias": (WIDTH,),
    "post_attention_layernorm.weight": (WIDTH,),
    "post_attention_layernorm.bias": (WIDTH,),
    "mlp.dense_h_to_4h.weight": (4 * WIDTH, WIDTH),
    "mlp.dense_h_to_4h.bias": (4 * WIDTH,),
    "mlp.dense_4h_to_h.weight": (WIDTH, 4 * WIDTH),
    "mlp.dense_4h_to_h.bias": (WIDTH,),
}


def shapes(layers):
    """-> every weight's shape"""
    named = {"word_embeddings.weight": (VOCABULARY, WIDTH)}
    for norm in ("word_embeddings_layernorm", "ln_f"):
        named |= {f"{norm}.weight": (WIDTH,), f"{norm}.bias": (WIDTH,)}
    return named | {f"h.{layer}.{name}": shape for layer in range(layers) for name, shape in LAYER.items()}


class Bloom:
    def __init__(self, weights, layers):
        self.weights, self.layers = weights, layers
        self.embedding = weights["word_embeddings.weight"]
        self.bias = self.keys = self.values = None
        self.length = 0  # tokens whose keys and values are kept

    def begin(self, batch, length):
        """Makes room for the keys and values of sequences of this length."""
        device, dtype = self.embedding.device, self.embedding.dtype
        shape = (self.layers, batch * HEADS, length, HEAD)
        self.keys, self.values = (torch.empty(shape, device=device, dtype=dtype) for _ in range(2))
        self.length = 0
        # ALiBi: instead of embedded positions, what is further away scores less, in each head by another slope: the
        # powers of 2^(-8/heads). Softmax sees differences alone, so the key's position does instead of the distance.
        slopes = 2 ** (-8 / HEADS * torch.arange(1, HEADS + 1, device=device))
        bias = slopes[:, None] * torch.arange(length, device=device)
        self.bias = bias.to(dtype)[:, None].repeat(batch, 1, 1)

    def norm(self, x, name):
        return functional.layer_norm(x, (WIDTH,), self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def linear(self, x, name):
        return functional.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def attention(self, x, layer, bias):
        batch, count, _ = x.shape
        end = self.length + count
        # Each head's query, key and value lie beside each other: (batch, count, heads, 3, head) -> three of
        # (batch * heads, count, head)
        fused = self.linear(x, f"h.{layer}.self_attention.query_key_value").view(batch, count, HEADS, 3, HEAD)
        query, key, value = fused.permute(3, 0, 2, 1, 4).reshape(3, batch * HEADS, count, HEAD)
        self.keys[layer, :, self.length:end], self.values[layer, :, self.length:end] = key, value
        scores = torch.baddbmm(bias, query, self.keys[layer, :, :end].transpose(1, 2), alpha=1 / math.sqrt(HEAD))
        shares = scores.softmax(-1, dtype=torch.float32).to(x.dtype)
        seen = torch.bmm(shares, self.values[layer, :, :end]).view(batch, HEADS, count, HEAD)
        return self.linear(seen.transpose(1, 2).reshape(batch, count, WIDTH), f"h.{layer}.self_attention.dense")

    def mlp(self, x, layer):
        wide = functional.gelu(self.linear(x, f"h.{layer}.mlp.dense_h_to_4h"), approximate="tanh")
        return self.linear(wide, f"h.{layer}.mlp.dense_4h_to_h")

    def scores(self, tokens):
        """Takes the tokens that follow those it has had. -> the scores of the next one, (sequences, vocabulary)"""
        count = tokens.shape[1]
        bias = self.bias[:, :, :self.length + count]
        if count > 1:  # no token sees those after it
            later = torch.full((count, bias.shape[2]), -math.inf, device=bias.device, dtype=bias.dtype)
            bias = bias + later.triu(self.length + 1)
        x = self.norm(functional.embedding(tokens, self.embedding), "word_embeddings_layernorm")
        for layer in range(self.layers):
            x = x + self.attention(self.norm(x, f"h.{layer}.input_layernorm"), layer, bias)
            x = x + self.mlp(self.norm(x, f"h.{layer}.post_attention_layernorm"), layer)
        self.length += count
        return functional.linear(self.norm(x[:, -1], "ln_f"), self.embedding)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args = decoding.options(parser, LAYERS)
    stages = Stages()
    on_gpu = args.device == "cuda"
    if on_gpu:
        torch.zeros(1, device="cuda")
        torch.cuda.synchronize()
        stages.done("context", torch.cuda.get_device_name())

    # Random ones are made on the host, as loaded ones are read there, and copied to the GPU like those.
    source = decoding.Folder(args.weights) if args.weights else decoding.Random(args.seed, "cpu")
    dtype = getattr(torch, args.dtype)
    weights = {name: source(name, shape).to(dtype) for name, shape in shapes(args.layers).items()}
    size = sum(weight.numel() for weight in weights.values())
    stages.done("model", f"BLOOM-560M, {args.layers} layers, {size / 1e6:.1f} M parameters, {args.dtype}, {source}")
    weights = {name: weight.to(args.device) for name, weight in weights.items()}
    if on_gpu:
        torch.cuda.synchronize()
        stages.done("weights", f"{torch.cuda.memory_allocated() / 2**20:.1f} MiB on the GPU")
    model = Bloom(weights, args.layers)
    prompt = decoding.random_prompt(args, VOCABULARY).to(args.device)
    stages.done("input", f"{args.batch} x {args.prompt} tokens")

    if args.warm_up:
        decoding.greedy(model, prompt, args.warm_up)
        stages.done("warm-up", f"{args.warm_up} tokens")
    tokens, seconds = decoding.greedy(model, prompt, args.tokens)
    stages.done("inference", f"{args.tokens} tokens")
    decoding.report(tokens, seconds)
    if on_gpu:
        peak = torch.cuda.max_memory_allocated() / 2**20
        stages.done("memory", f"{peak:.1f} MiB at most, {torch.cuda.memory_reserved() / 2**20:.1f} MiB reserved")
    stages.total()


if __name__ == "__main__":
    main()
