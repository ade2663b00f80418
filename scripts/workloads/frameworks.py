#!/usr/bin/env python3
"""Small programs in the frameworks that people use, each of which calls the driver in its own way.

usage: frameworks.py KIND
  cupy            arrays, a kernel of its own, two streams
  jax             a compiled training step
  numba           a kernel in Python
  triton          a kernel in Triton
  compile         PyTorch, compiled
  compile-graphs  PyTorch, compiled to CUDA graphs (mode reduce-overhead)
  training        PyTorch, with two workers that load the data (fork)
  training-spawn  the same, with workers that are started anew
  profiler        PyTorch, half of it under its own profiler
"""
import sys


def run_cupy():
    import cupy
    scaled = cupy.RawKernel("extern \"C\" __global__ void scaled(float* x, float by, int n) {"
                            " int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= by; }", "scaled")
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
    x = cupy.arange(1 << 16, dtype=cupy.float32)
    for i in range(20):
        with streams[i % 2]:
            y = cupy.ones(1 << 16, dtype=cupy.float32)
            scaled((256,), (256,), (y, cupy.float32(2), y.size))
        streams[i % 2].synchronize()
        x = x + y
    return float((x[:512].reshape(16, 32) @ x[:512].reshape(32, 16)).sum())


def run_jax():
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
    for _ in range(30):
        weights, value = step(weights, batch)
    return float(value)


def run_numba():
    import numpy
    from numba import cuda

    @cuda.jit
    def add(x, y):
        i = cuda.grid(1)
        if i < x.size:
            x[i] += y[i]

    x, y = (cuda.to_device(numpy.ones(1 << 16, dtype=numpy.float32)) for _ in range(2))
    for _ in range(20):
        add[256, 256](x, y)
    cuda.synchronize()
    return float(x.copy_to_host().sum())


def run_triton():
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def add(x, y, out, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)

    x = torch.ones(1 << 16, device="cuda")
    out = torch.empty_like(x)
    for _ in range(20):
        add[(64,)](x, x, out, x.numel(), BLOCK=1024)
    return float(out.sum())


def model(torch):
    torch.manual_seed(0)
    layers = [torch.nn.Linear(128, 256), torch.nn.GELU(), torch.nn.LayerNorm(256), torch.nn.Linear(256, 10)]
    return torch.nn.Sequential(*layers).cuda()


def run_compiled(mode):
    import torch
    step = torch.compile(model(torch), mode=mode)
    x = torch.ones(32, 128, device="cuda")
    with torch.inference_mode():
        for _ in range(20):
            y = step(x).clone()
    return float(y.sum())


def run_training(context):
    import torch
    trained = model(torch)
    data = torch.utils.data.TensorDataset(torch.ones(512, 128), torch.arange(512) % 10)
    loader = torch.utils.data.DataLoader(data, 64, num_workers=2, pin_memory=True, multiprocessing_context=context)
    optimizer = torch.optim.AdamW(trained.parameters())
    for _ in range(2):
        for x, wanted in loader:
            loss = torch.nn.functional.cross_entropy(trained(x.cuda(non_blocking=True)), wanted.cuda(non_blocking=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


def run_profiler():
    """-> how many operations on the GPU torch.profiler has seen"""
    import torch
    x = torch.ones(256, 256, device="cuda")
    for _ in range(20):
        y = x @ x
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        for _ in range(50):
            y = torch.relu(x @ x)
        torch.cuda.synchronize()
    for _ in range(20):
        y = x @ y
    torch.cuda.synchronize()
    on_gpu = torch.autograd.DeviceType.CUDA
    return sum(event.count for event in profiler.key_averages() if event.device_type == on_gpu)


KINDS = {"cupy": run_cupy, "jax": run_jax, "numba": run_numba, "triton": run_triton,
         "compile": lambda: run_compiled("default"), "compile-graphs": lambda: run_compiled("reduce-overhead"),
         "training": lambda: run_training("fork"), "training-spawn": lambda: run_training("spawn"), "profiler": run_profiler}


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in KINDS:
        sys.exit(__doc__)
    print(sys.argv[1], KINDS[sys.argv[1]]())


if __name__ == "__main__":
    main()
