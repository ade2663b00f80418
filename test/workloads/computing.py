#!/usr/bin/env python3
"""Iterations that compute on the simulated GPU (FAKE_CUDA_COMPUTE), for captures and their replay.

    computing.py LIBRARY [--iterations N] [--with PART]… [--products LIBRARY]

Each iteration copies a number to the GPU, runs kernels whose outputs depend on the iterations before, and brings a sum back,
which is printed."""
import argparse
import ctypes
import pathlib
import struct
import sys
from ctypes import byref, c_float, c_int, c_uint, c_uint64, c_void_p

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "fake_libcuda/compute"))
import images  # noqa: E402

COUNT = 1000
ROWS = 3


class Gpu:
    def __init__(self, library):
        self.cuda = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)  # the simulated cuBLAS looks for it there
        self.must("cuInit", 0)
        context = c_void_p()
        self.must("cuCtxCreate_v2", byref(context), c_uint(0), c_int(0))

    def must(self, name, *arguments):
        status = getattr(self.cuda, name)(*(c_uint64(a) if isinstance(a, int) else a for a in arguments))
        if status:
            raise SystemExit(f"{name}: {status}")

    def allocated(self, size):
        pointer = c_uint64()
        self.must("cuMemAlloc_v2", byref(pointer), size)
        return pointer.value

    def mapped(self, size):
        """Memory that is created and mapped, as a framework's own allocator has it."""
        pointer, memory = c_uint64(), c_uint64()
        self.must("cuMemAddressReserve", byref(pointer), size, 0, 0, 0)
        self.must("cuMemCreate", byref(memory), size, ctypes.create_string_buffer(64), 0)
        self.must("cuMemMap", pointer.value, size, 0, memory.value, 0)
        return pointer.value

    def functions(self, *names, **variables):
        module = c_void_p()
        image = images.cubin(names, variables)
        self.must("cuModuleLoadData", byref(module), image)
        found = {}
        for name in names:
            found[name] = c_void_p()
            self.must("cuModuleGetFunction", byref(found[name]), module, name.encode())
        for name in variables:
            address, size = c_uint64(), c_uint64()
            self.must("cuModuleGetGlobal_v2", byref(address), byref(size), module, name.encode())
        return found

    def launch(self, function, *values, stream=None, shared=0):
        pointers = (c_void_p * max(1, len(values)))(*(ctypes.addressof(value) for value in values))
        self.must("cuLaunchKernel", function, *[c_uint(n) for n in (4, 1, 1, 256, 1, 1, shared)], stream, pointers, None)

    def launch_with_shared_memory(self, function, *values, shared):
        """As cuDNN launches: it says before each launch how much this one may have."""
        most_shared = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self.must("cuFuncSetAttribute", function, c_int(most_shared), c_int(shared))
        self.launch(function, *values, shared=shared)

    def launch_packed(self, function, parameters):
        """As cuBLASLt launches: all parameters in one buffer."""
        buffer, size = ctypes.create_string_buffer(parameters, len(parameters)), c_uint64(len(parameters))
        extra = (c_void_p * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), 0)
        self.must("cuLaunchKernel", function, *[c_uint(n) for n in (1, 1, 1, 32, 1, 1, 0)], None, None, extra)

    def floats_at(self, at, count=COUNT):
        data = ctypes.create_string_buffer(4 * count)
        self.must("cuMemcpyDtoH_v2", data, at, len(data))
        return struct.unpack(f"<{count}f", data.raw)


class Graph:
    """Rows are filled on two streams, and then summed up; launched as often as one likes, with another number each time."""
    def __init__(self, gpu, functions, rows, table, out):
        self.gpu, self.fill, self.row = gpu, functions["fill"], rows[0]
        first, second, begun, filled = (c_void_p() for _ in range(4))
        graph, self.executable = c_void_p(), c_void_p()
        for stream in first, second:
            gpu.must("cuStreamCreate", byref(stream), c_uint(1))
        for event in begun, filled:
            gpu.must("cuEventCreate", byref(event), c_uint(2))
        gpu.must("cuStreamBeginCapture_v2", first, c_uint(2))
        gpu.launch(self.fill, c_uint64(rows[0]), c_uint(COUNT), c_float(0), stream=first)
        gpu.must("cuEventRecord", begun, first)
        gpu.must("cuStreamWaitEvent", second, begun, c_uint(0))
        gpu.must("cuMemsetD32Async", rows[1], c_uint(0x3F800000), COUNT, second)
        gpu.must("cuMemcpyDtoDAsync_v2", rows[2], rows[0], 4 * COUNT, first)
        gpu.must("cuEventRecord", filled, second)
        gpu.must("cuStreamWaitEvent", first, filled, c_uint(0))
        gpu.launch(functions["sum_rows"], c_uint64(table), c_uint(ROWS), c_uint(COUNT), c_uint64(out), stream=first)
        gpu.must("cuStreamEndCapture", first, byref(graph))
        gpu.must("cuGraphInstantiateWithFlags", byref(self.executable), graph, 0)
        nodes, count = (c_void_p * 1)(), c_uint64(1)
        gpu.must("cuGraphGetNodes", graph, nodes, byref(count))
        self.node = c_void_p(nodes[0])

    def launch(self, number):
        values = (c_uint64(self.row), c_uint(COUNT), c_float(number))
        pointers = (c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        given = struct.pack("<Q7IxxxxQQQQ", self.fill.value, 4, 1, 1, 256, 1, 1, 0, ctypes.addressof(pointers), 0, 0, 0)
        self.gpu.must("cuGraphExecKernelNodeSetParams_v2", self.executable, self.node, given)
        self.gpu.must("cuGraphLaunch", self.executable, None)


class Products:
    """A kernel that a library of matrix products launches, within a function of its own."""
    def __init__(self, library):
        self.blas, self.handle = ctypes.CDLL(library), c_void_p()
        self.must("cublasCreate_v2", byref(self.handle))

    def must(self, name, *arguments):
        if status := getattr(self.blas, name)(*arguments):
            raise SystemExit(f"{name}: {status}")

    def launch(self, function, *values):
        pointers = (c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        self.blas.fake_cublas_launches(function, pointers)
        m, one, none = c_int(COUNT), c_int(1), c_void_p()
        self.must("cublasSgemm_v2", self.handle, c_int(0), c_int(0), m, one, one, none, none, m, none, one, none, none, m)


class Rows:
    """Rows that lie apart, by every way in which copies of rows go; those that come back are summed up."""
    WIDTH, PITCH, HEIGHT, DEPTH = 48, 128, 5, 2
    PLANES = 8  # rows of memory for a plane: more than are copied
    ON_HOST, ON_GPU, ANYWHERE = 1, 2, 4

    def __init__(self, gpu):
        size = self.PITCH * self.PLANES * self.DEPTH
        self.gpu, self.there, self.elsewhere = gpu, gpu.allocated(size), gpu.allocated(size)
        self.given, self.got, self.got_later = (ctypes.create_string_buffer(size) for _ in range(3))
        self.stream = c_void_p()
        gpu.must("cuStreamCreate", byref(self.stream), c_uint(1))

    def plane(self, *sides):
        """A CUDA_MEMCPY2D. Each side: its memory's type, where that lies, and where in it the first row begins."""
        packed = b"".join(struct.pack("<QQIxxxxQQQQ", x, y, kind, at if kind == self.ON_HOST else 0, at if kind != self.ON_HOST else 0, 0, self.PITCH)
                          for kind, at, x, y in sides)
        return packed + struct.pack("<QQ", self.WIDTH, self.HEIGHT)

    def box(self, *sides):
        """A CUDA_MEMCPY3D."""
        packed = b"".join(struct.pack("<QQQQIxxxxQQQQQQ", x, y, 0, 0, kind, at if kind == self.ON_HOST else 0, at if kind != self.ON_HOST else 0, 0, 0,
                                      self.PITCH, self.PLANES) for kind, at, x, y in sides)
        return packed + struct.pack("<QQQ", self.WIDTH, self.HEIGHT, self.DEPTH)

    def copy(self, number):
        self.given.raw = bytes((number + i) % 251 for i in range(len(self.given)))
        given, got, got_later = (ctypes.addressof(buffer) for buffer in (self.given, self.got, self.got_later))
        self.gpu.must("cuMemcpy3D_v2", self.box((self.ON_HOST, given, 8, 0), (self.ON_GPU, self.there, 0, 1)))
        self.gpu.must("cuMemcpy2DAsync_v2", self.plane((self.ANYWHERE, given, 0, 1), (self.ANYWHERE, self.there, 64, 0)), self.stream)
        self.gpu.must("cuMemcpy3DAsync_v2", self.box((self.ON_GPU, self.there, 0, 1), (self.ON_GPU, self.elsewhere, 16, 2)), self.stream)
        self.gpu.must("cuMemcpy2DAsync_v2", self.plane((self.ON_GPU, self.elsewhere, 16, 2), (self.ON_HOST, got_later, 4, 0)), self.stream)
        self.gpu.must("cuStreamSynchronize", self.stream)
        self.gpu.must("cuMemcpy2DUnaligned_v2", self.plane((self.ANYWHERE, self.there, 60, 1), (self.ANYWHERE, got, 0, 0)))
        return sum(self.got.raw) + sum(self.got_later.raw)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--products", metavar="LIBRARY", help="the simulated cuBLAS, which launches the last kernel of each iteration")
    parser.add_argument("--iterations", type=int, default=40)
    parser.add_argument("--with", dest="parts", action="append", default=[], choices=("clock", "streams", "fault", "graph", "shared", "rows"))
    options = parser.parse_args()
    gpu = Gpu(options.library)
    launcher = Products(options.products) if options.products else gpu
    f = gpu.functions("fill", "add", "scale", "sum_rows", "fill_packed", "scale_by_variable", "count_runs", "not_deterministic",
                      factor=struct.pack("<f", 0.5), runs=struct.pack("<I", 7))
    size = 4 * COUNT
    number, total, out, runs = (gpu.allocated(size) for _ in range(4))
    rows = [gpu.allocated(size) for _ in range(ROWS)]
    weights = gpu.mapped(2 << 20)
    table = gpu.allocated(8 * ROWS)
    gpu.must("cuMemcpyHtoD_v2", table, struct.pack(f"<{ROWS}Q", *rows), 8 * ROWS)
    gpu.launch(f["fill"], c_uint64(weights), c_uint(COUNT), c_float(1.25))
    gpu.launch(f["fill"], c_uint64(total), c_uint(COUNT), c_float(0))
    stream, done = c_void_p(), c_void_p()
    gpu.must("cuStreamCreateWithPriority", byref(stream), c_uint(1), c_int(-1))
    gpu.must("cuEventCreate", byref(done), c_uint(2))
    graph = Graph(gpu, f, rows, table, out) if "graph" in options.parts else None
    apart = Rows(gpu) if "rows" in options.parts else None
    for i in range(options.iterations):
        data = struct.pack(f"<{COUNT}f", *([float(i % 7)] * COUNT))
        gpu.must("cuMemcpyHtoD_v2", number, data, size)
        if graph:
            graph.launch(1 + i % 3)
        else:
            for row, at in enumerate(rows):
                values = c_uint64(at), c_uint(COUNT), c_float(row + i % 3)
                if "shared" in options.parts:
                    gpu.launch_with_shared_memory(f["fill"], *values, shared=(24, 96, 48)[row] << 10)
                else:
                    gpu.launch(f["fill"], *values)
            gpu.launch(f["sum_rows"], c_uint64(table), c_uint(ROWS), c_uint(COUNT), c_uint64(out))
        gpu.must("cuEventRecord", done, None)
        gpu.must("cuStreamWaitEvent", stream, done, c_uint(0))
        gpu.launch(f["add"], c_uint64(out), c_uint64(number), c_uint64(out), c_uint(COUNT), stream=stream)
        gpu.must("cuStreamSynchronize", stream)
        gpu.launch(f["scale_by_variable"], c_uint64(out), c_uint(COUNT))
        gpu.launch(f["add"], c_uint64(out), c_uint64(weights), c_uint64(out), c_uint(COUNT))
        gpu.launch_packed(f["fill_packed"], struct.pack("<BQI", 3, rows[0], COUNT))
        gpu.must("cuMemcpyDtoD_v2", rows[1], rows[0], size // 2)
        gpu.must("cuMemsetD32_v2", rows[2], c_uint(0x3F800000), COUNT // 4)
        gpu.launch(f["count_runs"], c_uint64(runs))
        if "clock" in options.parts:
            gpu.launch(f["not_deterministic"], c_uint64(rows[2] + 2000), c_uint(8))
        launcher.launch(f["add"], c_uint64(total), c_uint64(out), c_uint64(total), c_uint(COUNT))
        if apart:
            print(apart.copy(i))
        print(f"{i} {sum(gpu.floats_at(total))}", flush=True)


if __name__ == "__main__":
    main()
