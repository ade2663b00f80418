#!/usr/bin/env python3
"""A program that does the same over and over, and waits for the GPU after each iteration.

usage: iterations.py KIND [ITERATIONS]
  resnet    a training step of ResNet-18 with AdamW
  triton    a matrix product in Triton whose operands come by TMA
  cupy      arrays and a kernel of its own
  jax       a compiled training step
  graphs    PyTorch, compiled to CUDA graphs (mode reduce-overhead)
  rows      parts of matrices copied by rows: to the GPU, on it, and back
"""
import ctypes
import sys


def residual(torch, channels, to, stride):
    """A block of two convolutions, and what they are added to."""
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            nn = torch.nn
            self.body = nn.Sequential(nn.Conv2d(channels, to, 3, stride, 1, bias=False), nn.BatchNorm2d(to), nn.ReLU(),
                                      nn.Conv2d(to, to, 3, 1, 1, bias=False), nn.BatchNorm2d(to))
            self.beside = nn.Identity()
            if stride != 1 or channels != to:
                self.beside = nn.Sequential(nn.Conv2d(channels, to, 1, stride, bias=False), nn.BatchNorm2d(to))

        def forward(self, x):
            return torch.relu(self.body(x) + self.beside(x))
    return Block()


def resnet18(torch):
    nn = torch.nn
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for to, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [residual(torch, channels, to, stride), residual(torch, to, to, 1)]
        channels = to
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


def run_resnet(iterations):
    import torch
    torch.manual_seed(0)
    trained = resnet18(torch).cuda()
    optimizer = torch.optim.AdamW(trained.parameters())
    images, wanted = torch.randn(16, 3, 224, 224), torch.arange(16)
    for _ in range(iterations):
        loss = torch.nn.functional.cross_entropy(trained(images.cuda()), wanted.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        value = loss.item()
    return value


def run_triton(iterations):
    import torch
    import triton
    import triton.language as tl
    from triton.tools.tensor_descriptor import TensorDescriptor

    @triton.jit
    def product(a, b, c, K, BLOCK: tl.constexpr):
        row, column = tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK
        total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
        for k in range(0, K, BLOCK):
            total += tl.dot(a.load([row, k]), b.load([k, column]))
        c.store([row, column], total.to(tl.float16))

    torch.manual_seed(0)
    size, block = 1024, 64
    a, b, c = (torch.randn(size, size, device="cuda", dtype=torch.float16) / 32 for _ in range(3))
    described = [TensorDescriptor.from_tensor(x, [block, block]) for x in (a, b, c)]
    for _ in range(iterations):
        product[(size // block, size // block)](*described, size, BLOCK=block)
        b.add_(c, alpha=0.01)
        b.mul_(0.99)
        value = c[0, 0].item()
    return value


def run_cupy(iterations):
    import cupy
    scaled = cupy.RawKernel("extern \"C\" __global__ void scaled(float* x, float by, int n) {"
                            " int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= by; }", "scaled")
    x = cupy.arange(1 << 16, dtype=cupy.float32) / (1 << 16)
    weights = cupy.ones((256, 256), dtype=cupy.float32) / 256
    for _ in range(iterations):
        scaled((256,), (256,), (x, cupy.float32(0.5), x.size))
        x = x + (x.reshape(256, 256) @ weights).ravel()
        value = float(x.sum())
    return value


def run_jax(iterations):
    import jax
    import jax.numpy as np

    def loss(weights, batch):
        return np.mean(np.square(np.tanh(batch @ weights["in"]) @ weights["out"] - 1))

    @jax.jit
    def step(weights, batch):
        value, slopes = jax.value_and_grad(loss)(weights, batch)
        return jax.tree.map(lambda weight, slope: weight - 0.01 * slope, weights, slopes), value

    keys = jax.random.split(jax.random.PRNGKey(0), 3)
    weights = {"in": jax.random.normal(keys[0], (256, 512)), "out": jax.random.normal(keys[1], (512, 8))}
    batch = jax.random.normal(keys[2], (64, 256))
    for _ in range(iterations):
        weights, value = step(weights, batch)
        value = float(value)
    return value


def run_graphs(iterations):
    import torch
    torch.manual_seed(0)
    layers = [torch.nn.Linear(128, 256), torch.nn.GELU(), torch.nn.LayerNorm(256), torch.nn.Linear(256, 128)]
    step = torch.compile(torch.nn.Sequential(*layers).cuda(), mode="reduce-overhead")
    x = torch.ones(32, 128, device="cuda")
    with torch.inference_mode():
        for _ in range(iterations):
            x = step(x).clone()
            value = x.sum().item()
    return value


def run_rows(iterations):
    import torch
    torch.manual_seed(0)
    runtime = ctypes.CDLL(f"libcudart.so.{torch.version.cuda.split('.')[0]}")  # the one that PyTorch has loaded
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)

    def copy_rows(to, given):
        kinds = {(False, True): 1, (True, False): 2, (True, True): 3}  # cudaMemcpyKind
        width, stride = given.shape[1] * given.element_size(), [matrix.stride(0) * matrix.element_size() for matrix in (to, given)]
        status = runtime.cudaMemcpy2DAsync(ctypes.c_void_p(to.data_ptr()), ctypes.c_size_t(stride[0]), ctypes.c_void_p(given.data_ptr()),
                                           ctypes.c_size_t(stride[1]), ctypes.c_size_t(width), ctypes.c_size_t(given.shape[0]),
                                           kinds[given.is_cuda, to.is_cuda], stream)
        if status:
            sys.exit(f"cudaMemcpy2DAsync: {status}")

    given, got = torch.randn(512, 768), torch.zeros(256, 320)
    matrix, tile = torch.zeros(1024, 1024, device="cuda"), torch.zeros(256, 300, device="cuda")
    for _ in range(iterations):
        copy_rows(matrix[100:612, 64:832], given)
        matrix.mul_(0.5).add_(1)
        copy_rows(tile, matrix[90:346, 50:350])
        tile.add_(matrix[:256, :300])
        copy_rows(got[:, 10:310], tile)
        torch.cuda.synchronize()
        value = got.sum().item()
    return value


KINDS = {"resnet": run_resnet, "triton": run_triton, "cupy": run_cupy, "jax": run_jax, "graphs": run_graphs, "rows": run_rows}


def main():
    if not 2 <= len(sys.argv) <= 3 or sys.argv[1] not in KINDS:
        sys.exit(__doc__)
    print(sys.argv[1], repr(KINDS[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 40)))


if __name__ == "__main__":
    main()
