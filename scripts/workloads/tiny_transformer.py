"""A transformer small enough to run anywhere: weights to the GPU, a few tokens, the result back."""

import torch


class Layer(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.attention = torch.nn.MultiheadAttention(width, 4, batch_first=True)
        self.forward_1 = torch.nn.Linear(width, 4 * width)
        self.forward_2 = torch.nn.Linear(4 * width, width)

    def forward(self, x):
        normed = self.norm(x)
        x = x + self.attention(normed, normed, normed, need_weights=False)[0]
        return x + self.forward_2(torch.relu(self.forward_1(x)))


def main(width=256, layers=4, vocabulary=1000, tokens=16):
    torch.manual_seed(1)
    embedding = torch.nn.Embedding(vocabulary, width).cuda().eval()
    stack = torch.nn.Sequential(*(Layer(width) for _ in range(layers))).cuda().eval()
    words = torch.randint(vocabulary, (1, 8)).cuda()
    with torch.no_grad():
        for _ in range(tokens):
            scores = stack(embedding(words))[0, -1] @ embedding.weight.T
            words = torch.cat([words, scores.argmax().view(1, 1)], dim=1)
    print("tokens:", *words[0].tolist())


main()
