#!/usr/bin/env python3
"""A model that makes tokens, each slower than it need be: on the CPU it sorts what the model thinks of all words. It says by NVTX what it does.

docs/program.md goes from the slow token to the line that makes it slow.
"""
import torch
from torch.cuda import nvtx

WIDTH, HEADS, LAYERS, WORDS, TOKENS = 1024, 16, 12, 50257, 24


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.qkv, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).view(1, -1, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        attended = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(1, -1, WIDTH))
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm2(x))))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, tokens):
        x = self.words(tokens)
        for layer in self.layers:
            x = layer(x)
        return x[0, -1] @ self.words.weight.T


def pick(scores):
    scores = scores.tolist()
    best = sorted(range(WORDS), key=scores.__getitem__)[-40:]
    return best[-1]


def main():
    torch.manual_seed(0)
    model = Model().half().cuda()
    tokens = torch.randint(WORDS, (1, 64), device="cuda")
    with torch.no_grad(), nvtx.range("request"):
        for number in range(TOKENS):
            with nvtx.range(f"token {number}"):
                with nvtx.range("model"):
                    scores = model(tokens)
                with nvtx.range("pick"):
                    word = pick(scores)
                tokens = torch.cat([tokens, torch.tensor([[word]], device="cuda")], dim=1)


if __name__ == "__main__":
    main()
