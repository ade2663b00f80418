"""Products of matrices, against what the program itself asked for: by eBPF (--shapes) and from inside, where cuBLASLt's
descriptors are understood, too, whatever lies where in them."""
import glob
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "live"))

import harness  # noqa: E402  pylint: disable=wrong-import-position
from harness import CUBLAS, CUBLASLT, LIBRARY  # noqa: E402  pylint: disable=wrong-import-position

# Steps: [function, argument...]; each product is printed as a line of a trace is to say it.
PROGRAM = """
import ctypes, json, sys
cuda = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
def load():
    global lt, blas
    lt = ctypes.CDLL(sys.argv[3], mode=ctypes.RTLD_GLOBAL)
    blas = ctypes.CDLL(sys.argv[2])
late = sys.argv[5:] == ["late"]
if not late:
    load()
word, half = ctypes.c_uint64, ctypes.c_int
context, handle, graph, launched = (word() for _ in range(4))
streams = [word() for _ in range(2)]
cuda.cuInit(0)
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
if late:
    load()
for stream in streams:
    cuda.cuStreamCreate(ctypes.byref(stream), 1)
A, B, C = word(0x1000), word(0x2000), word(0x3000)
TYPES = {0: "float32", 1: "float64", 2: "float16", 3: "int8", 10: "int32", 14: "bfloat16", 28: "float8_e4m3"}
COMPUTE = {64: "16f", 68: "32f", 70: "64f", 72: "32i", 77: "32f_fast_tf32"}
EPILOGUES = {1: None, 4: "bias", 36: "gelu_bias", 130: "relu_aux"}
at = 0
def say(name, m, n, k, batch, ops, ld, types, compute, epilogue=None, on=None):
    print(json.dumps({"name": name, "m": m, "n": n, "k": k, "batch": batch, "trans": "".join("ntc"[op] for op in ops),
                      "lda": ld[0], "ldb": ld[1], "ldc": ld[2], "types": ",".join(TYPES[one] for one in types),
                      "compute": compute, "epilogue": epilogue, "stream": hex((streams[at] if on is None else on).value)}), flush=True)
def gemm_ex(m, n, k, a, b, types, compute):
    ld = (m if a == 0 else k, k if b == 0 else n, m)
    blas.cublasGemmEx(handle, half(a), half(b), half(m), half(n), half(k), word(0), A, half(types[0]), half(ld[0]), B, half(types[1]), half(ld[1]),
                      word(0), C, half(types[2]), half(ld[2]), half(compute), half(-1))
    say("cublasGemmEx", m, n, k, 1, (a, b), ld, types, COMPUTE[compute])
def gemm(m, n, k, wide, compute="32f"):
    size = word if wide else half
    getattr(blas, "cublasSgemm_v2" + ("_64" if wide else ""))(handle, half(0), half(1), size(m), size(n), size(k), word(0), A, size(m), B, size(n),
                                                             word(0), C, size(m))
    say("cublasSgemm", m, n, k, 1, (0, 1), (m, n, m), (0, 0, 0), compute)
def strided(m, n, k, batch):
    blas.cublasGemmStridedBatchedEx(handle, half(1), half(0), half(m), half(n), half(k), word(0), A, half(14), half(k), word(m * k), B, half(14),
                                    half(k), word(0), word(0), C, half(14), half(m), word(m * n), half(batch), half(68), half(-1))
    say("cublasGemmStridedBatchedEx", m, n, k, batch, (1, 0), (k, k, m), (14, 14, 14), "32f")
def gemv(rows, columns, trans):
    blas.cublasDgemv_v2(handle, half(trans), half(rows), half(columns), word(0), A, half(rows), B, half(1), word(0), C, half(1))
    m, k = (columns, rows) if trans else (rows, columns)
    say("cublasDgemv", m, 1, k, 1, (trans, 0), (rows, None, None), (1, 1, 1), "64f")
def hgemm(m, n, k):
    blas.cublasHgemm(handle, half(0), half(0), half(m), half(n), half(k), word(0), A, half(m), B, half(k), word(0), C, half(m))
    say("cublasHgemm", m, n, k, 1, (0, 0), (m, k, m), (2, 2, 2), "16f")
def matmul(m, n, k, a, b, types, compute, batch=1, epilogue=1, stream=0, mode=0):
    size = ctypes.c_size_t
    how = (word * 32)()
    lt.cublasLtMatmulDescInit_internal(how, size(256), half(compute), half(0))
    for attribute, value in ((3, a), (4, b), (7, epilogue)):
        lt.cublasLtMatmulDescSetAttribute(how, half(attribute), ctypes.byref(half(value)), size(4))
    def matrix(kind, rows, columns, ld):
        made = (word * 8)()
        lt.cublasLtMatrixLayoutInit_internal(made, size(64), half(kind), word(rows), word(columns), word(ld))
        for attribute, value in ((5, batch), (8, mode)):
            lt.cublasLtMatrixLayoutSetAttribute(made, half(attribute), ctypes.byref(half(value)), size(4))
        return made
    sizes = [(k, m) if a else (m, k), (n, k) if b else (k, n), (m, n)]
    made = [matrix(kind, rows, columns, rows + 8) for kind, (rows, columns) in zip(types, sizes)]
    lt.cublasLtMatmul(word(1), how, word(0), A, made[0], B, made[1], word(0), C, made[2], C, made[2], word(0), word(0), size(0), streams[stream])
    say("cublasLtMatmul", m, n, k, batch, (a, b), [rows + 8 for rows, _ in sizes], types, COMPUTE[compute], EPILOGUES[epilogue], on=streams[stream])
def step(function, *arguments):
    global at
    if function == "create":
        blas.cublasCreate_v2(ctypes.byref(handle))
    elif function == "stream":
        at = arguments[0]
        blas.cublasSetStream_v2(handle, streams[at])
    elif function == "math":
        blas.cublasSetMathMode(handle, half(arguments[0]))
    elif function == "failed":
        blas.cublasSgemm_v2(handle, half(0), half(0), half(-1), half(1), half(1), word(0), A, half(1), B, half(1), word(0), C, half(1))
    elif function == "capture":
        cuda.cuStreamBeginCapture_v2(streams[at], half(0))
    elif function == "instantiate":
        cuda.cuStreamEndCapture(streams[at], ctypes.byref(graph))
        cuda.cuGraphInstantiateWithFlags(ctypes.byref(launched), graph, word(0))
    elif function == "launch":
        cuda.cuGraphLaunch(launched, streams[at])
    else:
        globals()[function](*arguments)
for one in json.loads(sys.argv[4]):
    step(*one)
cuda.cuCtxSynchronize()
"""
BEGIN = [["create"], ["stream", 1]]
OF_BLAS = [["gemm_ex", 4096, 16, 1024, 1, 0, [14, 14, 14], 68], ["gemm_ex", 7, 5, 3, 0, 2, [3, 3, 10], 72], ["gemm", 100, 200, 300, False],
           ["gemm", 1 << 33, 2, 3, True], ["stream", 0], ["strided", 64, 32, 128, 12], ["gemv", 30, 40, 0], ["gemv", 30, 40, 1], ["math", 3],
           ["gemm", 8, 8, 8, False, "32f_fast_tf32"], ["math", 0], ["gemm", 8, 8, 8, False]]
OF_LT = [["matmul", 4096, 16, 1024, 1, 0, [14, 14, 14], 68], ["matmul", 640, 2, 128, 0, 0, [28, 28, 14], 68, 1, 36],
         ["matmul", 1 << 33, 2, 3, 0, 1, [2, 2, 0], 77, 5, 4, 1], ["matmul", 1, 1, 1, 1, 1, [1, 1, 1], 70, 1, 130]]


class Live(harness.LiveTest):
    def traced_products(self, steps, *flags, layout=0, late=False):
        """-> (the trace, its outermost products, what the program said of its own)"""
        output = f"{self.folder}/said"
        command = ["/bin/sh", "-c", 'exec "$@" > "$OUTPUT"', "sh", harness.PYTHON, "-c", PROGRAM, LIBRARY, CUBLAS, CUBLASLT, json.dumps(steps),
                   *(["late"] if late else [])]
        if not harness.INSIDE and "--libraries" not in flags:
            flags = ("--shapes", *flags)
        given = [word for library in (LIBRARY, CUBLAS, CUBLASLT) for word in ("--library", library)]
        os.environ["OUTPUT"], os.environ["FAKE_CUBLASLT_LAYOUT"] = output, str(layout)
        trace = self.traced(command, *given, *flags)
        self.check_law(trace)
        with open(output, encoding="utf-8") as file:
            said = [json.loads(line) for line in file]
        products = sorted((call for call in trace.calls if call["type"] == "product" and "parent" not in call and not call["ret"]),
                          key=lambda call: call["ts"])
        return trace, products, said

    def check_equal(self, products, said):
        self.assertEqual([{key: line.get(key) for key in true} for line, true in zip(products, said)], said)
        self.assertEqual(len(products), len(said))
        self.assertEqual([line for line in products if "shape_unknown" in line], [])

    def logged(self):
        lines = []
        for path in glob.glob(f"{self.record_folder}/cublas.*.jsonl"):
            with open(path, encoding="utf-8") as file:
                lines += map(json.loads, file)
        return lines

    def test_cublas(self):
        trace, products, said = self.traced_products(BEGIN + OF_BLAS)
        self.check_equal(products, said)
        self.assertEqual({line["layer"] for line in products}, {1})
        launches = {call["within"]: call for call in trace.named("cuLaunchKernel")}
        for product in products:
            self.assertEqual(launches[product["id"]]["stream"], product["stream"])
        self.assertTrue(trace.header["shapes"])

    def test_cublaslt(self):
        """In whatever layout: nothing is known of it but what the library shows."""
        for layout in range(3):
            with self.subTest(layout):
                trace, products, said = self.traced_products(OF_LT, layout=layout)
                if harness.INSIDE:
                    self.check_equal(products, said)
                else:
                    self.assertEqual([line["shape_unknown"] for line in products], ["descriptors"] * len(said))
                    self.assertEqual([line for line in products if "m" in line or "types" in line], [])
                self.assertEqual(len(trace.named("cuLaunchKernel")), len(said))

    def test_loaded_late(self):
        """From inside, it is found at calls of the driver, as its own first function makes them: nothing can be missing."""
        trace, products, said = self.traced_products(BEGIN + OF_BLAS + (OF_LT if harness.INSIDE else []), late=True)
        self.check_equal(products, said)
        self.assertEqual(trace.end["losses"], {})

    def test_not_understood(self):
        """Sizes beyond what is recorded, or in two places."""
        for layout in (3, 4):
            with self.subTest(layout):
                _, products, said = self.traced_products(OF_LT, layout=layout)
                self.assertEqual([line["shape_unknown"] for line in products], ["descriptors"] * len(said))

    def test_one_in_another(self):
        """A product that cuBLAS has cuBLASLt do is one."""
        trace, products, said = self.traced_products(BEGIN + [["hgemm", 256, 128, 64], ["hgemm", 512, 128, 64]])
        self.check_equal(products, said)
        inner = trace.named("cublasLtMatmul")
        self.assertEqual([call["parent"] for call in inner], [line["id"] for line in products])
        self.assertEqual([call["within"] for call in trace.named("cuLaunchKernel")], [call["id"] for call in inner])
        if harness.INSIDE:
            self.assertEqual([(call["m"], call["n"], call["k"]) for call in inner], [(256, 128, 64), (512, 128, 64)])

    def test_failed(self):
        trace, _, _ = self.traced_products(BEGIN + [["failed"]])
        failed, = trace.named("cublasSgemm_v2")
        self.assertEqual((failed["ret"], failed["error"], failed["shape_unknown"]), (7, "CUBLAS_STATUS_INVALID_VALUE", "inconsistent"))

    def test_no_stream_is_guessed(self):
        """Where the calls were not seen that say on which stream a handle works, none is known; but from inside, the handle says it."""
        _, products, said = self.traced_products(BEGIN + [["gemm", 8, 8, 8, False]], "--exclude", "cublasCreate,cublasSetStream")
        if harness.INSIDE:
            self.check_equal(products, said)
        else:
            self.assertEqual([(line.get("stream"), line.get("compute")) for line in products], [(None, None)])
        self.assertEqual(len(said), 1)

    def test_setters(self):
        """From inside, what programs set before each product is recorded only where it is asked for: the handle says what is set."""
        steps = BEGIN + [["math", 3], ["gemm", 8, 8, 8, False, "32f_fast_tf32"], ["stream", 0], ["gemm", 16, 8, 8, False, "32f_fast_tf32"],
                         ["math", 0], ["stream", 0], ["gemm", 32, 8, 8, False]]
        for flags, setters in ((("--profile", "default"), not harness.INSIDE), (("--profile", "full"), True), (("--only", "cublas*"), True)):
            with self.subTest(flags):
                trace, products, said = self.traced_products(steps, *flags)
                self.check_equal(products, said)
                self.assertEqual(len(trace.named("cublasSetStream_v2")), 3 if setters else 0)
                self.assertEqual(len(trace.named("cublasSetMathMode")), 2 if setters else 0)

    def test_captured(self):
        """Named by the graph that does them at each launch."""
        steps = [["gemm", 16, 16, 16, False], ["capture"], ["gemm", 32, 32, 32, False], ["gemm", 64, 64, 64, False], ["instantiate"], ["launch"],
                 ["launch"], ["capture"], ["gemm", 32, 32, 32, False], ["gemm", 64, 64, 64, False], ["instantiate"], ["launch"]]
        trace, products, said = self.traced_products(BEGIN + steps)
        self.check_equal(products, said)
        captured = [line for line in products if line.get("captured")]
        self.assertEqual([line["m"] for line in captured], [32, 64, 32, 64])
        content, = (line for line in trace.lines if line["type"] == "graph" and line["op"] == "content")  # equal shapes: one content
        self.assertEqual(content["products"], [line["id"] for line in captured[:2]])
        self.assertEqual([call["graph"] for call in trace.named("cuGraphLaunch")], [content["graph"]] * 3)

    def test_not_traced_unless_asked(self):
        """By eBPF, a product costs as much as a launch; what is not in the table is traced in no case."""
        flags = ("--no-shapes",) if harness.INSIDE else ("--libraries", "cuda")
        trace, products, _ = self.traced_products(BEGIN + OF_BLAS, *flags)
        self.assertEqual((products, trace.header.get("shapes")), ([], None))
        trace, _, _ = self.traced_products(BEGIN + OF_BLAS + OF_LT)
        known = {call["symbol"] for call in self.logged()}
        self.assertEqual({call.get("symbol", call["name"]) for call in trace.calls if call.get("layer")}, known)
        self.assertEqual(trace.named("cublasLtMatrixLayoutInit_internal"), [])


harness.main()
