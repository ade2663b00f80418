"""A training loop, to show from where in Python its calls come."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "site-packages"))

import tinynn  # noqa: E402

STEPS, BATCH = 40, 1 << 20


class Net(tinynn.Module):
    def __init__(self, depth):
        self.blocks = [(tinynn.Linear(256), tinynn.ReLU()) for _ in range(depth)]
        self.head = tinynn.Linear(16)

    def forward(self, x):
        for linear, activation in self.blocks:
            x = activation(linear(x))
        return self.head(x)

    def backward(self):
        self.head.backward()
        for linear, activation in reversed(self.blocks):
            activation.backward()
            linear.backward()


def next_batch():
    return tinynn.Tensor(BATCH).copy_from(bytes(BATCH))


def step(net, loss):
    net(next_batch())
    tinynn.launch("mse", 16)
    net.backward()
    for _ in net.blocks:
        tinynn.launch("adam", 64)
    return loss.item()


def main():
    tinynn.init()
    net, loss = Net(depth=6), tinynn.Tensor(8)
    for _ in range(STEPS):
        step(net, loss)
    tinynn.synchronize()


main()
