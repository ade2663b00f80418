#!/usr/bin/env python3
"""The simulated GPU computes as README.md says, with FAKE_CUDA_COMPUTE.

    check_computing.py LIBRARY [TEST…]
"""
import ctypes
import os
import struct
import sys
import unittest
from ctypes import byref, c_float, c_int, c_uint, c_uint64, c_void_p

import images

os.environ["FAKE_CUDA_COMPUTE"] = "1"
cuda = ctypes.CDLL(sys.argv[1])
INVALID_VALUE, NOT_FOUND, ILLEGAL_ADDRESS, CLUSTER = 1, 500, 700, 912
COUNT = 1000
MEBIBYTE = 1 << 20
BLOCK = 32 * MEBIBYTE


def call(name, *arguments):
    return getattr(cuda, name)(*(c_uint64(a) if isinstance(a, int) else a for a in arguments))


def must(name, *arguments):
    status = call(name, *arguments)
    assert status == 0, f"{name}: {status}"


def allocated(size):
    pointer = c_uint64()
    must("cuMemAlloc_v2", byref(pointer), size)
    return pointer.value


def loaded(image):
    module = c_void_p()
    must("cuModuleLoadData", byref(module), image)
    return module


def function(module, name):
    found = c_void_p()
    must("cuModuleGetFunction", byref(found), module, name.encode())
    return found


def launch(which, *values, shared=0, stream=None):
    """`values`: ctypes objects, one a parameter"""
    pointers = (c_void_p * max(1, len(values)))(*(ctypes.addressof(value) for value in values))
    return cuda.cuLaunchKernel(which, 1, 1, 1, 32, 1, 1, shared, stream, pointers, None)


def written(to, *values):
    data = struct.pack(f"<{len(values)}f", *values)
    must("cuMemcpyHtoD_v2", to, data, len(data))


def floats(at, count=COUNT):
    data = ctypes.create_string_buffer(4 * count)
    must("cuMemcpyDtoH_v2", data, at, len(data))
    return struct.unpack(f"<{count}f", data.raw)


def nodes_of(graph):
    count = c_uint64()
    must("cuGraphGetNodes", graph, None, byref(count))
    nodes = (c_uint64 * count.value)()
    must("cuGraphGetNodes", graph, nodes, byref(count))
    return list(nodes)


def edges_of(graph, nodes):
    """By the numbers of the nodes."""
    count = c_uint64()
    must("cuGraphGetEdges_v2", graph, None, None, None, byref(count))
    begins, ends, data = ((c_uint64 * count.value)() for _ in range(3))
    must("cuGraphGetEdges_v2", graph, begins, ends, data, byref(count))
    return [(nodes.index(begin), nodes.index(end)) for begin, end in zip(begins, ends)]


def type_of(node):
    kind = c_uint()
    must("cuGraphNodeGetType", node, byref(kind))
    return kind.value


def read(name, node, layout):
    given = ctypes.create_string_buffer(struct.calcsize(layout))
    must(name, node, given)
    return struct.unpack(layout, given.raw)


def reserved(size, wanted=0):
    pointer = c_uint64()
    must("cuMemAddressReserve", byref(pointer), size, 0, wanted, 0)
    return pointer.value


def mapped(at, size):
    memory = c_uint64()
    must("cuMemCreate", byref(memory), size, ctypes.create_string_buffer(64), 0)
    must("cuMemMap", at, size, 0, memory.value, 0)
    return memory.value


def in_child(work):
    """What `work` returns, in a process of its own."""
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        try:
            os._exit(work())
        finally:
            os._exit(255)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Computing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        must("cuInit", 0)
        context = c_void_p()
        must("cuCtxCreate_v2", byref(context), c_uint(0), c_int(0))

    def test_copies_and_fills(self):
        a, b = allocated(4 * COUNT), allocated(4 * COUNT)
        written(a, *range(COUNT))
        must("cuMemcpyDtoD_v2", b, a, 4 * COUNT)
        self.assertEqual(floats(b), tuple(map(float, range(COUNT))))
        must("cuMemsetD32_v2", b + 40, c_uint(0x40000000), 10)
        self.assertEqual(floats(b)[9:21], (9.0, *[2.0] * 10, 20.0))
        self.assertEqual(call("cuMemcpyDtoD_v2", b, a, 4 * COUNT + 4096), INVALID_VALUE)
        must("cuMemFree_v2", a)
        self.assertEqual(call("cuMemcpyDtoD_v2", b, a, 4), INVALID_VALUE)

    def test_kernels(self):
        module = loaded(images.cubin(["fill", "add", "scale", "sum_rows"]))
        a, b, out = (allocated(4 * COUNT) for _ in range(3))
        number = c_uint(COUNT)
        self.assertEqual(launch(function(module, "fill"), c_uint64(a), number, c_float(1.5)), 0)
        self.assertEqual(launch(function(module, "fill"), c_uint64(b), number, c_float(2)), 0)
        self.assertEqual(launch(function(module, "add"), c_uint64(a), c_uint64(b), c_uint64(out), number), 0)
        self.assertEqual(floats(out), (3.5,) * COUNT)
        for power in (1, 2):  # in place
            self.assertEqual(launch(function(module, "scale"), c_uint64(out), number, c_float(2)), 0)
            self.assertEqual(floats(out), (3.5 * 2 ** power,) * COUNT)
        table = allocated(16)
        must("cuMemcpyHtoD_v2", table, struct.pack("<QQ", a, b), 16)
        self.assertEqual(launch(function(module, "sum_rows"), c_uint64(table), c_uint(2), number, c_uint64(out)), 0)
        self.assertEqual(floats(out), (3.5,) * COUNT)
        unknown = c_void_p()
        self.assertEqual(call("cuModuleGetFunction", byref(unknown), module, b"not_in_it"), NOT_FOUND)

    def test_parameters(self):
        fill = function(loaded(images.ptx(["fill"])), "fill")
        layout, offset, size = [], c_uint64(), c_uint64()
        while not call("cuFuncGetParamInfo", fill, len(layout), byref(offset), byref(size)):
            layout.append((offset.value, size.value))
        self.assertEqual(layout, [(0, 8), (8, 4), (12, 4)])
        # All in one buffer, at addresses that are not aligned.
        packed = function(loaded(images.cubin(["fill_packed"])), "fill_packed")
        out = allocated(4 * COUNT)
        buffer = ctypes.create_string_buffer(struct.pack("<BQI", 7, out, COUNT), 13)
        size = c_uint64(len(buffer))
        extra = (c_void_p * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), 0)
        self.assertEqual(cuda.cuLaunchKernel(packed, 1, 1, 1, 1, 1, 1, 0, None, None, extra), 0)
        self.assertEqual(floats(out), (7.0,) * COUNT)
        size.value = 12
        self.assertEqual(cuda.cuLaunchKernel(packed, 1, 1, 1, 1, 1, 1, 0, None, None, extra), INVALID_VALUE)

    def test_variables(self):
        code = images.fat_binary(images.cubin(["scale_by_variable", "count_runs"],
                                              {"factor": struct.pack("<f", 3), "runs": bytes(4)}))
        wrapper = struct.pack("<IIQQ", 0x466243B1, 1, ctypes.addressof(kept := ctypes.create_string_buffer(code)), 0)
        library, kernel, out = c_void_p(), c_void_p(), allocated(4 * COUNT)
        must("cuLibraryLoadData", byref(library), wrapper, None, None, c_uint(0), None, None, c_uint(0))
        del kept
        must("cuLibraryGetKernel", byref(kernel), library, b"scale_by_variable")
        must("cuMemsetD32_v2", out, c_uint(0x3F800000), COUNT)
        self.assertEqual(launch(kernel, c_uint64(out), c_uint(COUNT)), 0)
        self.assertEqual(floats(out), (3.0,) * COUNT)
        factor, size = c_uint64(), c_uint64()
        must("cuLibraryGetGlobal", byref(factor), byref(size), library, b"factor")
        self.assertEqual(size.value, 4)
        written(factor.value, 0.5)
        self.assertEqual(launch(kernel, c_uint64(out), c_uint(COUNT)), 0)
        self.assertEqual(floats(out), (1.5,) * COUNT)
        of = c_void_p()
        must("cuKernelGetLibrary", byref(of), kernel)
        self.assertEqual(of.value, library.value)
        must("cuLibraryGetKernel", byref(kernel), library, b"count_runs")
        for runs in (1, 2, 3):
            self.assertEqual(launch(kernel, c_uint64(out)), 0)
            self.assertEqual(struct.pack("<f", floats(out, 1)[0]), struct.pack("<I", runs))

    def test_attributes(self):
        module, out = loaded(images.cubin(["fill", "fill_in_cluster"])), allocated(4 * COUNT)
        fill, values = function(module, "fill"), (c_uint64(out), c_uint(COUNT), c_float(1))
        self.assertEqual(launch(fill, *values, shared=48 << 10), 0)
        self.assertEqual(launch(fill, *values, shared=(48 << 10) + 1), INVALID_VALUE)
        must("cuFuncSetAttribute", fill, c_int(8), c_int(100 << 10))
        self.assertEqual(launch(fill, *values, shared=100 << 10), 0)
        clustered = function(module, "fill_in_cluster")
        self.assertEqual(launch(clustered, *values), CLUSTER)
        attribute = ctypes.create_string_buffer(struct.pack("<II64s", 4, 0, struct.pack("<III", 2, 1, 1)), 72)
        config = ctypes.create_string_buffer(
            struct.pack("<7IxxxxQQIxxxx", 1, 1, 1, 32, 1, 1, 0, 0, ctypes.addressof(attribute), 1), 56)
        pointers = (c_void_p * 3)(*(ctypes.addressof(value) for value in values))
        self.assertEqual(cuda.cuLaunchKernelEx(config, clustered, pointers, None), 0)
        self.assertEqual(floats(out), (1.0,) * COUNT)

    def test_graph(self):
        """What is captured is not done, and then as often as the graph is launched, with the parameters of that time."""
        scale, out = function(loaded(images.cubin(["scale"])), "scale"), allocated(4 * COUNT)
        stream, graph, executable = c_void_p(), c_void_p(), c_void_p()
        must("cuMemsetD32_v2", out, c_uint(0x3F800000), COUNT)
        must("cuStreamCreate", byref(stream), c_uint(1))
        must("cuStreamBeginCapture_v2", stream, c_uint(2))
        by = c_float(2)
        self.assertEqual(launch(scale, c_uint64(out), c_uint(COUNT), by, stream=stream), 0)
        by.value = 100
        must("cuStreamEndCapture", stream, byref(graph))
        must("cuGraphInstantiateWithFlags", byref(executable), graph, 0)
        self.assertEqual(floats(out, 1), (1.0,))
        for power in (1, 2, 3):
            must("cuGraphLaunch", executable, stream)
            must("cuStreamSynchronize", stream)
            self.assertEqual(floats(out), (2.0 ** power,) * COUNT)

    def test_reading_graphs(self):
        """Nodes are what was captured, in the order in which they were, and depend on each other as streams did."""
        module, out, other = loaded(images.cubin(["scale", "fill_packed"])), allocated(4 * COUNT), allocated(4 * COUNT)
        first, second, begun, done, graph = (c_void_p() for _ in range(5))
        for stream in first, second:
            must("cuStreamCreate", byref(stream), c_uint(1))
        for event in begun, done:
            must("cuEventCreate", byref(event), c_uint(2))
        must("cuStreamBeginCapture_v2", first, c_uint(2))
        self.assertEqual(launch(function(module, "scale"), c_uint64(out), c_uint(COUNT), c_float(2), stream=first), 0)
        must("cuEventRecord", begun, first)
        must("cuStreamWaitEvent", second, begun, c_uint(0))
        must("cuMemsetD16Async", other, c_uint(0x1234), 7, second)
        must("cuMemcpyDtoDAsync_v2", other, out, 12, first)
        must("cuEventRecord", done, second)
        must("cuStreamWaitEvent", first, done, c_uint(0))
        must("cuEventRecordWithFlags", done, first, c_uint(1))
        must("cuStreamEndCapture", first, byref(graph))
        nodes = nodes_of(graph)
        self.assertEqual([type_of(node) for node in nodes], [0, 2, 1, 7])
        self.assertEqual(sorted(edges_of(graph, nodes)), [(0, 1), (0, 2), (1, 3), (2, 3)])
        kernel = read("cuGraphKernelNodeGetParams_v2", nodes[0], "<Q7IxxxxQQQQ")
        self.assertEqual(kernel[1:8], (1, 1, 1, 32, 1, 1, 0))
        pointers = (c_uint64 * 3).from_address(kernel[8])
        self.assertEqual([ctypes.string_at(at, size) for at, size in zip(pointers, (8, 4, 4))],
                         [struct.pack("<Q", out), struct.pack("<I", COUNT), struct.pack("<f", 2)])
        self.assertEqual(read("cuGraphMemsetNodeGetParams", nodes[1], "<QQIIQQ"), (other, 0, 0x1234, 2, 7, 1))
        copy = read("cuGraphMemcpyNodeGetParams", nodes[2], "<25Q")
        self.assertEqual((copy[4], copy[6], copy[15], copy[17], copy[22:]), (2, out, 2, other, (12, 1, 1)))
        self.assertEqual(read("cuGraphEventRecordNodeGetEvent", nodes[3], "<Q"), (done.value,))
        self.assertEqual(call("cuGraphMemsetNodeGetParams", nodes[0], ctypes.create_string_buffer(40)), INVALID_VALUE)
        priority = ctypes.create_string_buffer(struct.pack("<i", -2), 64)
        must("cuGraphKernelNodeSetAttribute", nodes[0], c_uint(8), priority)
        value = ctypes.create_string_buffer(64)
        for attribute, expected in (8, priority.raw), (4, bytes(64)):
            must("cuGraphKernelNodeGetAttribute", nodes[0], c_uint(attribute), value)
            self.assertEqual(value.raw, expected)

    def test_reading_added_nodes(self):
        graph, child, kernel, copy, held = (c_void_p() for _ in range(5))
        out = allocated(4 * COUNT)
        must("cuGraphCreate", byref(graph), c_uint(0))
        must("cuGraphCreate", byref(child), c_uint(0))
        buffer, size = ctypes.create_string_buffer(struct.pack("<BQI", 7, out, COUNT), 13), c_uint64(13)
        extra = (c_void_p * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), 0)
        packed = function(loaded(images.cubin(["fill_packed"])), "fill_packed")
        given = struct.pack("<Q7IxxxxQQQQ", packed.value, 1, 1, 1, 32, 1, 1, 0, 0, ctypes.addressof(extra), 0, 0)
        must("cuGraphAddKernelNode_v2", byref(kernel), child, None, 0, given)
        buffer[0] = 99  # it was read when it was given
        must("cuGraphAddChildGraphNode", byref(held), graph, None, 0, child)
        rows = struct.pack("<25Q", *range(1, 5), 2, 0, out, *[0] * 8, 2, 0, out + 400, *[0] * 4, 4, 1, 1)
        must("cuGraphAddMemcpyNode", byref(copy), graph, (c_void_p * 1)(held), 1, rows, None)
        self.assertEqual([type_of(node) for node in nodes_of(graph)], [4, 1])
        self.assertEqual(edges_of(graph, nodes_of(graph)), [(0, 1)])
        self.assertEqual(struct.pack("<25Q", *read("cuGraphMemcpyNodeGetParams", copy.value, "<25Q")), rows)
        inner = c_void_p()
        must("cuGraphChildGraphNodeGetGraph", held, byref(inner))
        node, = nodes_of(inner)
        at = read("cuGraphKernelNodeGetParams_v2", node, "<Q7IxxxxQQQQ")[8]
        self.assertEqual(ctypes.string_at(c_uint64.from_address(at).value, 13), struct.pack("<BQI", 7, out, COUNT))

    def test_reservations(self):
        """As driver 580 does: a wish is granted if it begins at 32 MiB, else rounded up, without an error."""
        first = reserved(BLOCK)
        must("cuMemAddressFree", first, BLOCK)
        self.assertEqual(reserved(2 * MEBIBYTE, wanted=first), first)
        self.assertEqual(reserved(2 * MEBIBYTE, wanted=first + 2 * MEBIBYTE), first + 2 * MEBIBYTE)  # of a block it has
        self.assertNotEqual(reserved(2 * MEBIBYTE, wanted=first), first)
        far = first + 1024 * BLOCK
        self.assertEqual(reserved(BLOCK, wanted=far + 8 * MEBIBYTE), far + BLOCK)

    def test_held_before(self):
        """What was mapped at cuInit is refused for good, though it was unmapped since."""
        libc = ctypes.CDLL(None)
        libc.mmap.restype = c_uint64
        held = 0x2A0000000000
        private_anonymous_fixed_without_memory = 0x104022

        def work():
            at = libc.mmap(c_uint64(held), c_uint64(BLOCK), 0, private_anonymous_fixed_without_memory, -1, c_uint64(0))
            must("cuInit", 0)
            libc.munmap(c_uint64(held), c_uint64(BLOCK))
            return 0 if at == held and reserved(BLOCK, wanted=held) != held else 1
        self.assertEqual(in_child(work), 0)

    def test_mapped_memory(self):
        at = reserved(8 * MEBIBYTE)
        memory = mapped(at, 2 * MEBIBYTE)
        mapped(at + 2 * MEBIBYTE, 2 * MEBIBYTE)
        again = reserved(2 * MEBIBYTE)
        must("cuMemMap", again, 2 * MEBIBYTE, 0, memory, 0)
        must("cuMemsetD32_v2", at, c_uint(0x3F800000), MEBIBYTE)  # both
        self.assertEqual(floats(again, 10), (1.0,) * 10)
        self.assertEqual(call("cuMemsetD32_v2", at, c_uint(0), MEBIBYTE + 1), INVALID_VALUE)
        must("cuMemUnmap", at, 2 * MEBIBYTE)
        self.assertEqual(call("cuMemsetD32_v2", at, c_uint(0), 1), INVALID_VALUE)
        self.assertEqual(floats(again, 10), (1.0,) * 10)

    def test_fault(self):
        """The launch succeeds; everything after it fails."""
        def work():
            fault = function(loaded(images.cubin(["fault"])), "fault")
            if launch(fault):
                return 1
            at = c_uint64()
            return 0 if {cuda.cuCtxSynchronize(), call("cuMemAlloc_v2", byref(at), 4)} == {ILLEGAL_ADDRESS} else 2
        self.assertEqual(in_child(work), 0)

    def test_wild_address(self):
        def work():
            fill = function(loaded(images.cubin(["fill"])), "fill")
            if launch(fill, c_uint64(0x123456789000), c_uint(1), c_float(1)):
                return 1
            return 0 if cuda.cuCtxSynchronize() == ILLEGAL_ADDRESS else 2
        self.assertEqual(in_child(work), 0)

    def test_hang(self):
        def work():
            ctypes.CDLL(None).alarm(1)
            if launch(function(loaded(images.cubin(["hang"])), "hang")):
                return 1
            return cuda.cuCtxSynchronize()
        self.assertEqual(in_child(work), -14)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
