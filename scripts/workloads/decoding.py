"""What the workloads with a language model of their own have in common: options, weights, greedy decoding."""

import glob
import os
import sys
import zlib

import torch

from stages import Stages, spread


def options(parser, layers):
    """Adds the options to the parser. -> the command line, parsed"""
    parser.add_argument("--prompt", type=int, default=32, help="tokens of the prompt, from the seed; default: 32")
    parser.add_argument("--tokens", type=int, default=32, help="tokens to generate; default: 32")
    parser.add_argument("--warm-up", type=int, default=3, metavar="N", help="tokens before the time counts; default: 3")
    parser.add_argument("--batch", type=int, default=1, help="sequences at once; default: 1")
    parser.add_argument("--layers", type=int, default=layers, help=f"the model has {layers}, the default")
    parser.add_argument("--dtype", choices=("float32", "float16", "bfloat16"), default="float16")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="default: cuda")
    parser.add_argument("--seed", type=int, default=1, help="of the prompt and of random weights; default: 1")
    parser.add_argument("--weights", metavar="PATH",
                        help="a folder with *.safetensors or pytorch_model*.bin; default: random weights")
    args = parser.parse_args()
    if min(args.prompt, args.tokens, args.batch, args.layers) < 1 or args.warm_up < 0:
        parser.error("numbers are at least 1, --warm-up at least 0")
    if args.device == "cuda" and not torch.cuda.is_available():
        sys.exit("no GPU: torch.cuda.is_available() is False")
    return args


class Folder:
    """Weights from a folder, by the names that Hugging Face gives them. Nothing is fetched."""

    def __init__(self, path):
        self.path, self.tensors = path, {}
        files = sorted(glob.glob(f"{path}/*.safetensors")) or sorted(glob.glob(f"{path}/pytorch_model*.bin"))
        if not files:
            sys.exit(f"{path}: there is neither *.safetensors nor pytorch_model*.bin")
        for file in files:
            if file.endswith(".safetensors"):
                from safetensors import safe_open

                opened = safe_open(file, "pt")
                names, read = opened.keys(), opened.get_tensor
            else:  # only what is used is read from the disk
                opened = torch.load(file, map_location="cpu", mmap=True, weights_only=True)
                names, read = opened.keys(), opened.__getitem__
            for name in names:  # BLOOM has been published with and without this prefix
                self.tensors[name.removeprefix("transformer.")] = (read, name)

    def __call__(self, name, shape):
        if name not in self.tensors:
            sys.exit(f"{self.path}: {name} is missing")
        read, stored = self.tensors[name]
        tensor = read(stored)
        if tensor.shape != torch.Size(shape):
            sys.exit(f"{self.path}: {name} is {tuple(tensor.shape)}, this architecture has {tuple(shape)}")
        return tensor

    def __str__(self):
        return f"weights from {os.path.abspath(self.path)}"


class Random:
    """Random weights, as large as those with which training starts; from a seed the same on devices of a kind."""

    def __init__(self, seed, device):
        self.seed, self.device = seed, device
        self.generator = torch.Generator(device).manual_seed(seed)

    def __call__(self, name, shape):
        if name.endswith(".bias"):
            return torch.zeros(shape, device=self.device)
        weight = torch.empty(shape, device=self.device).normal_(0, 0.02, generator=self.generator)
        # What scales a norm is 1 or -1. Were it 1 everywhere, then in a model whose embedding also makes the scores, as
        # BLOOM's does, each token would score highest after itself: the prompt's last one would be repeated.
        return weight.sign() if len(shape) == 1 else weight

    def __str__(self):
        return f"random weights, seed {self.seed}"


def random_prompt(args, vocabulary):
    """-> the prompt, on the host: the same for every device. Its values do not matter to a GPU."""
    generator = torch.Generator().manual_seed(args.seed)
    return torch.randint(vocabulary, (args.batch, args.prompt), generator=generator)


@torch.no_grad()  # threads of Gloo's may not write to tensors of inference_mode
def greedy(model, prompt, count):
    """-> the tokens, (sequences, count), and each step's seconds; each token is read back, as a server would"""
    model.begin(len(prompt), prompt.shape[1] + count)
    fed, seconds, made = prompt, [], []
    for _ in range(count):
        with Stages.timed(seconds):
            fed = model.scores(fed).argmax(-1, keepdim=True)
            made.append(fed[:, 0].tolist())
    return torch.tensor(made).T.contiguous(), seconds


def report(tokens, seconds):
    """Prints the tokens, what they took, and a checksum by which runs can be compared."""
    print(f"  {tokens.numel() / sum(seconds):.1f} tokens/s, {1e3 * sum(seconds) / len(seconds):.2f} ms per token")
    print(f"  first token {1e3 * seconds[0]:.2f} ms (the prompt)")
    if len(seconds) > 1:
        print(f"  each token  {spread(seconds[1:])}")
    print("tokens:", *tokens[0].tolist())
    checksum = zlib.crc32(" ".join(str(token) for token in tokens.flatten().tolist()).encode())
    print(f"checksum of all tokens: {checksum:08x}", flush=True)
