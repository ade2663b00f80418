"""Writes the trace of a program that multiplies matrices by cuBLAS and cuBLASLt, as a decoding model does: a prompt at once, then
tokens, of which later ones come from a graph. A toy H200 gives the times.
usage: matrix_products.py > traces/example-gemms.jsonl"""
import json
import random

PID, STREAM = 4400, "0x7f10"
LAYERS, WIDTH, TOKENS, REPLAYS = 4, 4096, 6, 20
BF16 = "bfloat16,bfloat16,bfloat16"
random.seed(12)


def us(value):
    return int(value * 1000)


def ceil(size, tile):
    return -(-size // tile)


class Program:
    def __init__(self):
        self.now, self.free, self.ids, self.lines = us(1000), 0, 0, []
        self.capturing, self.captured, self.products = False, [], []

    def emit(self, line, written):
        """Lines are written when their calls have returned, those of GPUs 100 ms after their work."""
        self.lines.append((written, len(self.lines), json.dumps(line, separators=(",", ":"))))

    def on_gpu(self, call, kernel, grid, took, node=None):
        begin = max(self.now + us(3), self.free + us(0.6))
        self.free = begin + us(took * random.uniform(0.98, 1.03))
        line = {"type": "gpu", "op": "kernel", "ts": begin, "duration_us": (self.free - begin) / 1000, "pid": PID, "call": call, "stream": STREAM,
                "queue": 7, "kernel": kernel, "grid": grid, "block": [384, 1, 1], "shared": 0, "device": 0}
        self.emit(line if node is None else line | {"node": node}, self.free + us(100_000))

    def launch(self, kernel, grid, took, within=None):
        self.ids += 1
        around = {"within": within} if within else {}
        line = {"id": self.ids, "type": "kernel", "op": "launch", "name": "cuLaunchKernelEx", "ts": self.now + us(1), "duration_us": 3, "pid": PID,
                "tid": PID, "ret": 0, **around, "stream": STREAM, "async": True, "kernel": kernel, "grid": grid, "block": [384, 1, 1], "shared": 0}
        self.emit(line | ({"captured": True} if self.capturing else {}), self.now + us(4))
        if self.capturing:
            self.captured.append((kernel, grid, took))
        else:
            self.on_gpu(self.ids, kernel, grid, took)
        self.now += us(5)

    def product(self, name, m, n, k, kernel, tile, took, trans="tn", batch=1, types=BF16, library="cublas", split=False, **more):
        self.ids += 1
        own, begin = self.ids, self.now
        self.launch(kernel, [ceil(m, tile[0]), ceil(n, tile[1]), batch], took, own)
        if split:
            self.launch("cublasLt::splitKreduce_kernel", [ceil(m * n, 512), 1, 1], 2.1, own)
        line = {"id": own, "type": "product", "op": "matmul" if library == "cublaslt" else "gemm", "name": name, "library": library, "layer": 1,
                "ts": begin, "duration_us": (self.now - begin) / 1000, "pid": PID, "tid": PID, "ret": 0, "m": m, "n": n, "k": k, "batch": batch,
                "trans": trans, "lda": k, "ldb": k, "ldc": m, "types": types, "compute": "32f", **more, "stream": STREAM, "device": 0}
        self.emit(line | ({"captured": True} if self.capturing else {}), self.now)
        if self.capturing:
            self.products.append(own)

    def layer(self, rows, slow=1):
        """By how many rows there are, the GPU's memory or its arithmetic bounds the products."""
        took = max(rows * 2 * WIDTH * 3 * WIDTH / 700e6, 3 * WIDTH * WIDTH * 2 / 3.9e6)
        tile = (128, 256) if rows > 64 else (64, 8)
        kernel = f"nvjet_sm90_tst_{tile[0]}x{tile[1]}_64x4_2x1_v_bz_TNT"
        self.product("cublasGemmEx", 3 * WIDTH, rows, WIDTH, kernel, tile, took * slow)
        self.product("cublasGemmStridedBatchedEx", 128, rows, 128, kernel.replace("TNT", "NNT"), tile, 6 + rows / 900, "nn", 32)
        self.product("cublasGemmEx", WIDTH, rows, WIDTH, kernel.replace("2x1", "splitK"), tile, took / 3 * slow, split=rows == 1)
        self.product("cublasLtMatmul", 4 * WIDTH, rows, WIDTH, kernel.replace("bz", "bias"), tile, took * 4 / 3 * slow, library="cublaslt",
                     epilogue="gelu_bias")
        self.product("cublasLtMatmul", WIDTH, rows, 4 * WIDTH, kernel.replace("bz", "bz_coop"), tile, took * 4 / 3 * slow, library="cublaslt")

    def replay(self):
        self.ids += 1
        self.emit({"id": self.ids, "type": "graph", "op": "launch", "name": "cuGraphLaunch", "ts": self.now, "duration_us": 9, "pid": PID, "tid": PID,
                   "ret": 0, "stream": STREAM, "async": True, "graph": 1, "nodes": len(self.captured), "kernels": len(self.captured)},
                  self.now + us(9))
        for node, (kernel, grid, took) in enumerate(self.captured):
            self.on_gpu(self.ids, kernel, grid, took, 100 + node)
        self.now += us(30)

    def explain_graph(self):
        kernels = {}
        for kernel, grid, _ in self.captured:
            key = (kernel, tuple(grid))
            kernels[key] = kernels.get(key, 0) + 1
        content = [{"op": "kernel", "count": count, "kernel": kernel, "grid": grid, "block": [384, 1, 1], "shared": 0}
                   for (kernel, grid), count in kernels.items()]
        self.emit({"type": "graph", "op": "content", "ts": self.now, "pid": PID, "graph": 1, "nodes": len(self.captured),
                   "kernels": len(self.captured), "content": content, "products": self.products}, self.now)


def main():
    program = Program()
    program.emit({"type": "process", "op": "start", "ts": 10, "pid": PID, "ppid": 4200, "uid": 1000, "comm": "serve.py"}, 0)
    program.emit({"type": "gpu", "op": "times", "ts": 20, "pid": PID, "cupti": "13.0.1", "path": "/usr/lib/libcupti.so.13", "graphs": "nodes"}, 1)
    for _ in range(LAYERS):
        program.layer(2048)
    program.product("cublasSgemm", 512, 512, 512, "cutlass_80_simt_sgemm_128x64_8x5_nn_align1", (128, 64), 14, "nn", types="float32,float32,float32")
    for _ in range(TOKENS):
        for _ in range(LAYERS):
            program.layer(1)
        program.launch("void at::native::softmax_kernel<float>(float*, int)", [1, 1, 1], 4)
        program.launch("triton_mm_gemm_kernel", [64, 1, 1], 9)
    program.capturing = True
    for _ in range(LAYERS):
        program.layer(1)
    program.capturing = False
    program.explain_graph()
    for _ in range(REPLAYS):
        program.replay()
    lines = [line for _, _, line in sorted(program.lines)]
    header = {"type": "trace", "format": "cudabpf-trace", "format_version": "2.0", "cudabpf_version": "0.1.0", "host": "example",
              "driver": "580.159.04", "gpus": [{"index": 0, "name": "NVIDIA H200", "uuid": "", "bus_id": ""}], "mode": "run", "source": "inside",
              "command": ["python3", "serve.py"], "profile": "default", "gpu_timing": "nodes", "shapes": True,
              "clocks": {"realtime_ns": 1_796_000_000_000_000_000, "monotonic_ns": 10**12, "boottime_ns": 10**12}}
    end = program.free + us(200_000)
    print(json.dumps(header, separators=(",", ":")))
    for line in lines:
        print(line)
    calls = program.ids
    print(json.dumps({"type": "end", "ts": end, "lines": len(lines) + 2, "duration_ns": end, "calls": calls, "unfinished_calls": 0, "losses": {},
                      "accounts": {"entered": 2 * calls, "emitted": 2 * calls, "dropped": 0, "received": 2 * calls}, "reason": "command exited"},
                     separators=(",", ":")))


if __name__ == "__main__":
    main()
