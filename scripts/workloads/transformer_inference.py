#!/usr/bin/env python3
"""Generates text with a transformer from Hugging Face on the GPU and prints each stage with its time.

Without a network, if the model is not in the cache, the same architecture gets random weights, and
the output says so: the GPU has the same work to do.
"""

import argparse
import os
import socket
import sys
import zlib

from stages import Stages, spread

# Sizes of known architectures, for random weights, which need no download.
ARCHITECTURES = {
    "gpt2": {"n_layer": 12, "n_head": 12, "n_embd": 768},
    "gpt2-medium": {"n_layer": 24, "n_head": 16, "n_embd": 1024},
    "gpt2-large": {"n_layer": 36, "n_head": 20, "n_embd": 1280},
    "gpt2-xl": {"n_layer": 48, "n_head": 25, "n_embd": 1600},
    "gpt2-tiny": {"n_layer": 2, "n_head": 2, "n_embd": 128},
}
VOCABULARY = 50257  # of GPT-2


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="gpt2", help="the model's name on the hub, or a folder; default: gpt2")
    parser.add_argument("--prompt", default="The graphics processor waits for")
    parser.add_argument("--tokens", type=int, default=32, help="tokens to generate; default: 32")
    parser.add_argument("--dtype", choices=("float32", "float16", "bfloat16"), default="float16")
    parser.add_argument("--batch", type=int, default=1, help="sequences at once; default: 1")
    parser.add_argument("--warm-up", type=int, default=3, metavar="N", help="tokens before the time counts; default: 3")
    parser.add_argument("--random-weights", action="store_true", help="do not look for weights")
    args = parser.parse_args()
    if args.tokens < 1 or args.batch < 1 or args.warm_up < 0:
        parser.error("--tokens and --batch are at least 1, --warm-up at least 0")
    return args


def pretrained(args, dtype):
    """-> the model, its tokenizer and "", or None, None and why there is none"""
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import cached_file

    try:
        cached = os.path.isdir(args.model) or cached_file(args.model, "config.json", local_files_only=True)
    except (OSError, ValueError):
        cached = False
    try:
        if not cached:  # the hub's own client would try for a minute
            socket.create_connection(("huggingface.co", 443), timeout=3).close()
        tokenizer = AutoTokenizer.from_pretrained(args.model)
        return AutoModelForCausalLM.from_pretrained(args.model, dtype=dtype), tokenizer, ""
    except (OSError, ValueError) as error:
        return None, None, str(error).splitlines()[0]


def random_model(args, dtype):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    if args.model not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        sys.exit(f"{args.model} cannot be loaded, and with random weights there are only {known}")
    torch.manual_seed(1)
    return GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, **ARCHITECTURES[args.model])).to(dtype)


def generate(model, tokens, count):
    """-> the sequences, and each token's seconds; each token is read back, as a server would"""
    import torch

    past, fed, seconds, made = None, tokens, [], []
    with torch.inference_mode():
        for _ in range(count):
            with Stages.timed(seconds):
                output = model(fed, past_key_values=past, use_cache=True)
                past = output.past_key_values
                fed = output.logits[:, -1].argmax(-1, keepdim=True)
                made.append(fed[:, 0].tolist())
    return made, seconds


def main():
    args = arguments()
    stages = Stages()
    import torch

    dtype = getattr(torch, args.dtype)
    stages.done("import", f"torch {torch.__version__}")
    if not torch.cuda.is_available():
        sys.exit("no GPU: torch.cuda.is_available() is False")
    device = torch.device("cuda")
    # cuDNN makes a new plan for each sequence length, which takes longer than the attention itself.
    torch.backends.cuda.enable_cudnn_sdp(False)
    stages.done("availability", torch.cuda.get_device_name(device))
    torch.zeros(1, device=device)
    torch.cuda.synchronize()
    stages.done("context")

    model = tokenizer = None
    why = "as asked for"
    if not args.random_weights:
        model, tokenizer, why = pretrained(args, dtype)
    if model is None:
        print(f"random weights: {why}")
        model = random_model(args, dtype)
    parameters = sum(p.numel() for p in model.parameters())
    stages.done("model", f"{args.model}, {parameters / 1e6:.1f} M parameters, {args.dtype}")
    model = model.to(device).eval()
    torch.cuda.synchronize()
    stages.done("weights", f"{torch.cuda.memory_allocated() / 2**20:.1f} MiB on the GPU")

    if tokenizer:
        ids = tokenizer(args.prompt, return_tensors="pt").input_ids
    else:  # one number per word: the values do not matter to the GPU
        ids = torch.tensor([[zlib.crc32(word.encode()) % VOCABULARY for word in args.prompt.split()]])
    tokens = ids.repeat(args.batch, 1).to(device)
    torch.cuda.synchronize()
    stages.done("input", f"{args.batch} x {ids.shape[1]} tokens")

    if args.warm_up:
        generate(model, tokens, args.warm_up)
        stages.done("warm-up", f"{args.warm_up} tokens")
    made, seconds = generate(model, tokens, args.tokens)
    stages.done("inference", f"{args.tokens} tokens, {args.tokens * args.batch / sum(seconds):.1f} tokens/s")
    print(f"  first token {1e3 * seconds[0]:.2f} ms (the prompt)")
    if len(seconds) > 1:
        print(f"  each token  {spread(seconds[1:])}")

    result = torch.tensor(made, device=device).T.contiguous().cpu()
    stages.done("output", f"{result.numel()} numbers")
    if tokenizer:
        print(f"  {args.prompt}{tokenizer.decode(result[0])!r}")
    else:
        print(f"  {result[0].tolist()}")
    peak = torch.cuda.max_memory_allocated() / 2**20
    stages.done("memory", f"{peak:.1f} MiB at most, {torch.cuda.memory_reserved() / 2**20:.1f} MiB reserved")
    del model, tokens
    torch.cuda.empty_cache()
    stages.done("clean-up")
    stages.total()


main()
