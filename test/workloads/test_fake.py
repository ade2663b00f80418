#!/usr/bin/env python3
"""The simulated driver and the workloads do what their READMEs say.

    test_fake.py FOLDER-OF-WORKLOADS LIBRARY NEWER-LIBRARY TEST…
"""
import ctypes
import errno
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

WORKLOADS, LIBRARY, NEWER = sys.argv[1:4]
LOOKUPS = {"cuGetProcAddress_v2": 134}  # the functions of functions.def
OUT_OF_MEMORY, NOT_FOUND = 2, 500
STANDING_IN = "nvidiactl=/dev/null,nvidia0=/dev/zero,nvidia-uvm=/dev/full"  # for the kernel driver's devices


def run(program, *arguments, library=LIBRARY, timeout=60, operations=None, **variables):
    """Runs a workload with FAKE_CUDA_… variables; (finished process or None if it hung, records).

    What it did to the kernel driver's devices is added to the list of operations."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("FAKE_CUDA_")}
        environment.update({f"FAKE_CUDA_{k}": str(v) for k, v in variables.items()})
        environment.update(FAKE_CUDA_LOG=folder, FAKE_CUDA_COUNTS=folder)
        command = [f"{WORKLOADS}/{program}", "--library", library, *map(str, arguments)]
        try:
            done = subprocess.run(command, env=environment, timeout=timeout, text=True, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        except subprocess.TimeoutExpired:
            done = None
        if operations is not None:
            for path in glob.glob(f"{folder}/ioctls.*.jsonl"):
                with open(path, encoding="utf-8") as file:
                    operations += [json.loads(line) for line in file]
        return done, read_records(folder)


def read_records(folder):
    """{pid: (counts by symbol, logged calls)}"""
    records = {}
    for path in glob.glob(f"{folder}/counts.*.tsv"):
        pid = int(re.search(r"counts\.(\d+)\.tsv", path)[1])
        counts = read_counts(path)
        log = f"{folder}/calls.{pid}.jsonl"
        calls = []
        if os.path.exists(log):
            with open(log, encoding="utf-8") as file:
                calls = [json.loads(line) for line in file]
        records[pid] = (counts, calls)
    return records


def read_counts(path):
    with open(path, encoding="utf-8") as file:
        counts = {k: int(v) for k, v in (line.split("\t") for line in file)}
    return {k: v for k, v in counts.items() if v}


def only(records):
    assert len(records) == 1, f"{len(records)} processes made calls"
    return next(iter(records.values()))


def tally(calls):
    result = {}
    for call in calls:
        result[call["symbol"]] = result.get(call["symbol"], 0) + 1
    return result


def of(calls, symbol):
    return [call for call in calls if call["symbol"] == symbol]


def inference_counts(tokens=8, layers=4, weights=16, threads=1, api="kernel"):
    """What README.md promises."""
    launches = 5 * layers + 1
    launch = {"ex": "cuLaunchKernelEx", "cooperative": "cuLaunchCooperativeKernel"}.get(
        api, "cuLaunchKernel")
    counts = dict(LOOKUPS)
    counts.update({
        "cuInit": 1, "cuDriverGetVersion": 1, "cuDeviceGetCount": 1, "cuDeviceGet": 1,
        "cuDeviceGetName": 1, "cuDeviceGetAttribute": 3, "cuDeviceTotalMem_v2": 1,
        "cuDevicePrimaryCtxRetain": 1, "cuCtxSetCurrent": 1 + threads, "cuModuleLoadData": 1,
        "cuLibraryLoadData": 1, "cuLibraryGetKernel": 3, "cuModuleGetFunction": 3,
        "cuKernelGetFunction": 1, "cuMemAlloc_v2": weights + 2 * threads,
        "cuMemcpyHtoD_v2": weights, "cuStreamCreate": threads, "cuMemHostAlloc": threads,
        "cuMemcpyHtoDAsync_v2": threads, "cuStreamSynchronize": threads * (tokens + 1),
        "cuMemcpyDtoHAsync_v2": threads * tokens, "cuMemcpyDtoH_v2": threads,
        "cuMemFreeHost": threads, "cuMemFree_v2": weights + 2 * threads,
        "cuStreamDestroy_v2": threads, "cuLibraryUnload": 1, "cuModuleUnload": 1,
        "cuDevicePrimaryCtxRelease_v2": 1, launch: threads * launches * (tokens + 1)})
    if api == "graph":
        counts.update({"cuLaunchKernel": threads * launches * 2, "cuGraphLaunch": threads * tokens,
                       "cuStreamBeginCapture_v2": threads, "cuStreamEndCapture": threads,
                       "cuGraphInstantiateWithFlags": threads, "cuGraphDestroy": threads,
                       "cuGraphExecDestroy": threads})
    return {k: v for k, v in counts.items() if v}


class Fake(unittest.TestCase):
    maxDiff = None

    def check_records(self, counts, calls, expected):
        self.assertEqual(counts, expected)
        self.assertEqual(tally(calls), expected)

    def test_inference(self):
        for options in ({}, {"tokens": 0, "layers": 1, "weights": 0},
                        {"tokens": 3, "threads": 3, "api": "ex"}, {"tokens": 2, "api": "cooperative"},
                        {"tokens": 5, "threads": 2, "api": "graph"}):
            arguments = [f"--{'launch-api' if k == 'api' else k}={v}" for k, v in options.items()]
            done, records = run("fake_inference", *arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            counts, calls = only(records)
            self.check_records(counts, calls, inference_counts(**options))
            self.assertEqual([call for call in calls if call["ret"]], [])
            self.assertEqual(len({c["tid"] for c in of(calls, "cuStreamCreate")}),
                             options.get("threads", 1))
            names = {name for c in calls for name in c.get("kernels", []) if "Launch" in c["symbol"]}
            self.assertEqual(len(names), 6)
            self.assertEqual(max(len(name) for name in names), 700)
            self.assertIn("_Z14fused_add_normPKfS0_Pfi", names)
            captured = [call for call in calls if call.get("captured")]
            self.assertEqual(len(captured), 2 * 21 if options.get("api") == "graph" else 0)
            for launch in of(calls, "cuGraphLaunch"):
                self.assertEqual([work["kernel"] for work in launch["ran"]],
                                 [name for call in captured if call["tid"] == launch["tid"] for name in call["kernels"]])

    def test_processes(self):
        for way in ("--processes", "--spawn"):
            done, records = run("fake_inference", way, 3, "--exit-code", 7)
            self.assertEqual(done.returncode, 7)
            self.assertEqual(len(records), 3)
            for counts, calls in records.values():
                self.check_records(counts, calls, inference_counts())

    def test_killed(self):
        done, records = run("fake_inference", "--kill-self", 9)
        self.assertEqual(done.returncode, -9)
        expected = inference_counts()
        for name in ("cuLibraryUnload", "cuModuleUnload", "cuDevicePrimaryCtxRelease_v2"):
            del expected[name]
        expected["cuMemFree_v2"] -= 16
        self.check_records(*only(records), expected)

    def test_fork_and_exec(self):
        done, records = run("fake_calls", "setup; malloc a 1; fork { free a }; wait; "
                            "exec { setup; malloc b 2; quit 5 }")
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertEqual(len(records), 2)
        child = records[max(records)]
        self.check_records(*child, {"cuMemFree_v2": 1})
        twice = {"cuInit": 2, "cuDevicePrimaryCtxRetain": 2, "cuCtxSetCurrent": 2,
                 "cuMemAlloc_v2": 2, "cuGetProcAddress_v2": 2 * LOOKUPS["cuGetProcAddress_v2"]}
        self.check_records(*records[min(records)], twice)

    def test_out_of_memory(self):
        weight = 1 << 20
        done, records = run("fake_inference", MEMORY=5 * weight)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2)\n")
        statuses = [call["ret"] for call in of(only(records)[1], "cuMemAlloc_v2")]
        self.assertEqual(statuses, [0, 0, 0, 0, OUT_OF_MEMORY])
        done, _ = run("fake_calls", "setup; malloc a 1M; fails 2 malloc b 1; free a; malloc c 1M; "
                      "reset; retain x; malloc d 1M", MEMORY=weight)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_free(self):
        done, records = run("fake_calls", "setup; malloc a 4096; free 0; fails 1 free 77; free a; "
                            "fails 1 free a; malloc b 4096; malloc c 4096; free b; free c")
        self.assertEqual(done.returncode, 0, done.stderr)
        a, b, c = [call["outs"][0] for call in of(only(records)[1], "cuMemAlloc_v2")]
        self.assertEqual(a, b)  # freed, so it may be reused
        self.assertNotEqual(b, c)

    def test_hang(self):
        done, records = run("fake_inference", timeout=1, HANG="cuStreamSynchronize@2")
        self.assertIsNone(done)
        counts, calls = only(records)
        self.assertEqual(counts["cuStreamSynchronize"], 2)
        self.assertEqual(len(of(calls, "cuStreamSynchronize")), 1)
        self.assertNotIn("cuMemcpyDtoH_v2", counts)

    def test_failure(self):
        done, records = run("fake_calls", "setup; malloc a 1; malloc b 1; fails 719 malloc c 1; "
                            "malloc d 1; fails 999 sync; fails 999 sync",
                            FAIL="cuMemAlloc_v2=719@3,cuStreamSynchronize=999@*")
        self.assertEqual(done.returncode, 0, done.stderr)
        failed = of(only(records)[1], "cuMemAlloc_v2")[2]
        self.assertEqual((failed["ret"], failed["outs"]), (719, []))

    def test_latency(self):
        _, records = run("fake_calls", "setup; malloc a 1; sync",
                         LATENCY="cuMemAlloc_v2=2000000,cuStreamSynchronize=20000")
        calls = only(records)[1]
        for symbol, least in (("cuMemAlloc_v2", 2000000), ("cuStreamSynchronize", 20000)):
            call = of(calls, symbol)[0]
            self.assertGreaterEqual(call["end_ns"] - call["begin_ns"], least)

    def test_nested(self):
        _, records = run("fake_calls", "setup; context c; malloc a 1", NEST=1)
        order = [(c["symbol"], c["nested"]) for c in only(records)[1]][LOOKUPS["cuGetProcAddress_v2"]:]
        nest = [("cuMemAlloc_v2", True), ("cuMemFree_v2", True)]
        self.assertEqual(order, [("cuInit", False), *nest, ("cuDevicePrimaryCtxRetain", False),
                                 ("cuCtxSetCurrent", False), *nest, ("cuCtxCreate_v4", False),
                                 ("cuMemAlloc_v2", False)])

    def test_handle_reuse(self):
        done, records = run("fake_calls", "setup; module m; function f m first; function g m second; "
                            "unload m; fails 400 launch f 1 1 1 1 1 1 0; module n; "
                            "function h n third; launch f 1 1 1 1 1 1 0")
        self.assertEqual(done.returncode, 0, done.stderr)
        calls = only(records)[1]
        first, second, third = [c["outs"][0] for c in of(calls, "cuModuleGetFunction")]
        self.assertEqual(first, third)
        self.assertNotEqual(first, second)
        self.assertEqual([c["kernels"] for c in of(calls, "cuLaunchKernel")], [[None], ["third"]])

    def test_arguments(self):
        done, records = run("fake_calls", "setup; malloc a 4K; stream s; module m; function f m add; "
                            "copy2d-async htod a host 32 4 s; copy-batch a a 16 32 48; "
                            "launch f 1 2 3 4 5 6 7 s; launch-ex f 10 20 30 1 2 3 9 s; "
                            "malloc-pitch p 1000 10; set16 a 0xfff5 8; set2d32 a 64 9 16 4; "
                            "fails 500 function g m missing_one; fails 1 launch f 0 1 1 1 1 1 0")
        self.assertEqual(done.returncode, 0, done.stderr)
        calls = only(records)[1]
        last = {call["symbol"]: call for call in calls if call["ret"] == 0}
        a, stream = last["cuMemAlloc_v2"]["outs"][0], last["cuStreamCreate"]["outs"][0]
        f = last["cuModuleGetFunction"]["outs"][0]
        copy = last["cuMemcpy2DAsync_v2"]
        self.assertEqual(copy["args"][1], stream)
        words = copy["structs"][0]
        self.assertEqual((words[2], words[6], words[9], words[11], words[13], words[14], words[15]),
                         (1, 32, 2, a, 32, 32, 4))
        self.assertEqual(last["cuMemcpyBatchAsync_v2"]["sizes"], [[16, 32, 48]])
        self.assertEqual(last["cuLaunchKernel"]["args"], [f, 1, 2, 3, 4, 5, 6, 7, stream, 0, 0])
        self.assertEqual(last["cuLaunchKernelEx"]["structs"][0][:5],
                         [10 | 20 << 32, 30 | 1 << 32, 2 | 3 << 32, 9, stream])
        self.assertEqual(last["cuMemAllocPitch_v2"]["outs"][1], 1024)
        self.assertEqual(last["cuMemsetD16_v2"]["args"], [a, 0xfff5, 8])
        self.assertEqual(last["cuMemsetD2D32_v2"]["args"], [a, 64, 9, 16, 4])

    def ran(self, script):
        """What each launched graph ran, in short, and the names of the calls that were captured."""
        done, records = run("fake_calls", "setup; stream s; stream t; event e; module m; function k m gemm; malloc a 1M; " + script)
        self.assertEqual(done.returncode, 0, done.stderr)
        calls = only(records)[1]

        def short(operations):
            return " ".join(work.get("kernel", work["op"]) + "".join(f":{v}" for v in (*work.get("grid", [])[:1], work.get("size")) if v)
                            for work in operations)
        launches = [call for call in of(calls, "cuGraphLaunch") if "ran" in call]
        self.assertEqual(len(launches), len([c for c in of(calls, "cuGraphLaunch") if c["ret"] == 0 and "captured" not in c]))
        return ([short(call["ran"]) + "".join(f" ({short(call['bodies'])})" for _ in range("bodies" in call)) for call in launches],
                [call["symbol"] for call in calls if call.get("captured")])

    def test_graphs(self):
        ran, captured = self.ran("""
            graph g; graph-kernel g k 8 1 1 1 1 1 0 n; graph-copy g 64; graph-node u g alloc 4K; graph-host g
            graph p; graph-child p g c; graph-set p 4 10 1 z; instantiate x p; launch-graph x
            set-kernel n k 9 1 1 1 1 1 0; launch-graph x; clone-graph h g; clone-node v n h; destroy-node v
            instantiate y g; instantiate w h; launch-graph y; launch-graph w; enable y n 0; launch-graph y; fails 910 update y h
            set-kernel n k 10 1 1 1 1 1 0; update y g; enable y n 1; launch-graph y
            set-exec-set x z 1 5 1; set-exec-node x c child g; launch-graph x; fails 1 set-exec-set x n 1 5 1; fails 1 destroy-graph 5
            graph-node q g conditional b; graph-kernel b k 3 1 1 1 1 1 0; instantiate r g; launch-graph r; fails 801 clone-graph h g
            destroy-exec r; fails 1 launch-graph r; destroy-graph g; fails 1 destroy-graph b; launch-graph y""")
        self.assertEqual(captured, [])
        rest = "copy:64 alloc:4096 host"
        self.assertEqual(ran, [f"gemm:8 {rest} set:40", f"gemm:8 {rest} set:40", f"gemm:9 {rest}", rest, rest, f"gemm:10 {rest}",
                               f"gemm:10 {rest} set:5", f"gemm:10 {rest} conditional (gemm:3)", f"gemm:10 {rest}"])

    def test_captures(self):
        ran, captured = self.ran("""
            capture s; launch k 1 1 1 1 1 1 0 s; launch k 9 1 1 1 1 1 0 t; record e s; wait-event e t; htod-async a host 64 t
            malloc-async b 4K t; free-async b t; fails 400 launch 5 1 1 1 1 1 1 0; record e t; wait-event e s; end-capture g s
            launch k 9 1 1 1 1 1 0 t; instantiate x g; launch-graph x s
            capture s; launch-graph x s; htod-async a host 0 s; host-func s; end-capture g s; instantiate y g; launch-graph y
            capture s; record e s; wait-event e t; launch k 2 1 1 1 1 1 0 t; fails 903 end-capture h t; fails 901 end-capture h s
            capture s; record e s; wait-event e t; launch k 2 1 1 1 1 1 0 t; fails 904 end-capture h s; fails 1 wait-event e t
            capture s; fails 900 sync s; fails 901 launch k 2 1 1 1 1 1 0 s; fails 901 end-capture h s; fails 401 end-capture h s
            capture s; thread { fails 908 end-capture h s }; wait; fails 401 end-capture h s; sync s""")
        self.assertEqual(ran, ["gemm:1 copy:64 alloc:4096 free", "gemm:1 copy:64 alloc:4096 free host"])
        self.assertEqual(captured, ["cuLaunchKernel", "cuMemcpyHtoDAsync_v2", "cuMemAllocAsync", "cuMemFreeAsync", "cuGraphLaunch",
                                    "cuMemcpyHtoDAsync_v2", "cuLaunchHostFunc", "cuLaunchKernel", "cuLaunchKernel"])

    def test_newer(self):
        script = "setup; raw cuFutureCall_v7 1 2 3; raw cuFutureQuery @v; raw cuFutureLaunchKernel 4"
        done, records = run("fake_calls", script, library=NEWER)
        self.assertEqual(done.returncode, 0, done.stderr)
        calls = only(records)[1]
        self.assertEqual([c["args"] for c in of(calls, "cuFutureCall_v7")], [[1, 2, 3]])
        self.assertEqual([c["outs"] for c in of(calls, "cuFutureQuery")], [[1]])
        self.assertEqual(run("fake_calls", script)[0].returncode, 2)

    def test_per_thread_stream(self):
        for way in ([], ["--dlsym"]):
            _, records = run("fake_calls", "--per-thread-stream", *way,
                             "setup; malloc-async a 1; set8 a 0 1; sync")
            counts = only(records)[0]
            for symbol in ("cuMemAllocAsync_ptsz", "cuMemsetD8_v2_ptds", "cuStreamSynchronize_ptsz"):
                self.assertEqual(counts.get(symbol), 1, symbol)

    def test_proc_address(self):
        driver = ctypes.CDLL(LIBRARY)

        def look_up(name, version, flags=0):
            entry, found = ctypes.c_void_p(), ctypes.c_int(-1)
            status = driver.cuGetProcAddress_v2(name.encode(), ctypes.byref(entry), version,
                                                ctypes.c_uint64(flags), ctypes.byref(found))
            return status, entry.value, found.value

        def address(symbol):
            return ctypes.cast(getattr(driver, symbol), ctypes.c_void_p).value

        for name, version, flags, symbol in (
                ("cuMemAlloc", 3010, 0, "cuMemAlloc"), ("cuMemAlloc", 3020, 0, "cuMemAlloc_v2"),
                ("cuCtxCreate", 11000, 0, "cuCtxCreate_v2"), ("cuCtxCreate", 13000, 0, "cuCtxCreate_v4"),
                ("cuMemcpyHtoD", 13000, 2, "cuMemcpyHtoD_v2_ptds"),
                ("cuLaunchKernel", 13000, 2, "cuLaunchKernel_ptsz"),
                ("cuLaunchKernel", 13000, 0, "cuLaunchKernel"), ("cuInit", 13000, 2, "cuInit")):
            self.assertEqual(look_up(name, version, flags), (0, address(symbol), 0), symbol)
        self.assertEqual(look_up("cuNoSuchThing", 13000), (NOT_FOUND, None, 1))

    def test_name_in_handle(self):
        reader = ("import ctypes, sys; d = ctypes.CDLL(sys.argv[1]); m = ctypes.c_void_p();"
                  "f = ctypes.c_void_p(); d.cuModuleLoadData(ctypes.byref(m), b'x');"
                  "d.cuModuleGetFunction(ctypes.byref(f), m, b'add');"
                  "w = (ctypes.c_uint64 * 8).from_address(f.value);"
                  "print([ctypes.string_at(x).decode() if x > 4096 and i else x"
                  " for i, x in enumerate(w)][1:])")
        for setting, words in (("8", ["add", 0, 0]), ("24", ["not_the_name", 0, "add"]),
                               ("none", [7, 0, 0])):
            done = subprocess.run([sys.executable, "-c", reader, LIBRARY], text=True, check=True,
                                  env=dict(os.environ, FAKE_CUDA_NAME_OFFSET=setting),
                                  stdout=subprocess.PIPE)
            self.assertEqual(done.stdout.strip(), str(words + [0] * 4), setting)

    def test_driver(self):
        operations = []
        done, records = run("fake_inference", "--threads", 2, operations=operations, DRIVER=STANDING_IN)
        self.assertEqual(done.returncode, 0, done.stderr)
        counts, calls = only(records)
        self.check_records(counts, calls, inference_counts(threads=2))  # the calls are the same
        by_thread = {}
        for call in calls:  # on one thread, in the order of both returns and entries
            by_thread.setdefault(call["tid"], []).append(call)
        inside = [operation for operation in operations if "call" in operation]
        for operation in inside:
            call = by_thread[operation["tid"]][operation["call"] - 1]
            self.assertEqual(call["symbol"], operation["symbol"])
            self.assertLessEqual(call["begin_ns"], operation["begin_ns"])
            self.assertLessEqual(operation["begin_ns"], operation["end_ns"])
            self.assertLessEqual(operation["end_ns"], call["end_ns"])
        self.assertEqual({operation["symbol"] for operation in inside}, {
            "cuInit", "cuDevicePrimaryCtxRetain", "cuModuleLoadData", "cuLibraryLoadData", "cuMemAlloc_v2",
            "cuMemHostAlloc", "cuStreamCreate", "cuStreamDestroy_v2", "cuMemFreeHost", "cuMemFree_v2",
            "cuLibraryUnload", "cuModuleUnload", "cuDevicePrimaryCtxRelease_v2"})
        outside = [operation for operation in operations if "call" not in operation]
        self.assertEqual([o["op"] for o in outside], ["open", "ioctl", "poll", "ioctl"])
        self.assertEqual(len({o["tid"] for o in outside} | set(by_thread)), len(by_thread) + 1)

    def test_driver_memory(self):
        operations = []
        done, _ = run("fake_calls", "setup; malloc a 3M; malloc b 4K; free b; free a; host-alloc h 64K; "
                      "free-host h; malloc c 1G", operations=operations, DRIVER=STANDING_IN)
        self.assertEqual(done.returncode, 0, done.stderr)
        indirect = [o for o in operations if o.get("indirect")]
        self.assertEqual([(o["nr"], o["control"], o["timeslice_us"]) for o in indirect],
                         [(0x2a, 0xa06c0103, 2000)])
        seen = {symbol: [o for o in operations if o.get("symbol") == symbol]
                for symbol in ("cuMemAlloc_v2", "cuMemFree_v2", "cuMemHostAlloc", "cuMemFreeHost")}
        numbers = {symbol: [o["nr"] for o in found] for symbol, found in seen.items()}
        self.assertEqual(numbers, {"cuMemAlloc_v2": [0x2b, 73, 33] * 2, "cuMemFree_v2": [34, 0x29],
                                   "cuMemHostAlloc": [0x27, 73, 33], "cuMemFreeHost": [34, 0x29]})
        made, freed = seen["cuMemAlloc_v2"], seen["cuMemFree_v2"]
        self.assertEqual([o["size"] for o in made], [3 << 20] * 3 + [1 << 30] * 3)
        self.assertEqual((made[0]["class"], made[0]["device"], made[0]["cmd"]), (0x40, "nvidiactl", 0xc030462b))
        self.assertEqual((made[1]["base"], made[2]["base"], made[2]["object"]),
                         (freed[0]["base"], freed[0]["base"], made[0]["object"]))
        self.assertEqual((freed[0]["size"], freed[1]["object"]), (3 << 20, made[0]["object"]))
        self.assertEqual(seen["cuMemHostAlloc"][0]["device"], "nvidia0")

    def test_driver_failures(self):
        operations = []
        done, _ = run("fake_calls", "setup; fails 2 malloc a 4M; malloc b 4K", operations=operations,
                      DRIVER=STANDING_IN, DRIVER_STATUS="0x2b/0x40=0x51,uvm:25=0x1f")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({(o["nr"], o["status"]) for o in operations if o.get("status")}, {(0x2b, 0x51), (25, 0x1f)})
        missing = STANDING_IN.replace("/dev/full", "/nowhere")
        done, _ = run("fake_calls", "fails 100 init", operations=operations, DRIVER=missing)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(operations[-2]["result"], -errno.ENOENT)  # afterwards, what was opened is closed

    def injected(self, script, injection=f"{WORKLOADS}/libother_injection.so"):
        """Runs it with a library that cuInit loads: (the pids that it was called in, the calls and counts of each process)"""
        with tempfile.TemporaryDirectory() as folder:
            env = {**{k: v for k, v in os.environ.items() if not k.startswith("FAKE_CUDA_")}, "CUDA_INJECTION64_PATH": injection,
                   "OTHER_INJECTION_MARKS": f"{folder}/marks", "FAKE_CUDA_LOG": folder, "FAKE_CUDA_COUNTS": folder}
            subprocess.run([f"{WORKLOADS}/fake_calls", "--library", LIBRARY, script], env=env, check=True, timeout=60)
            marks = []
            if os.path.exists(f"{folder}/marks"):
                with open(f"{folder}/marks", encoding="utf-8") as file:
                    marks = [int(line.split()[0]) for line in file]
            of_all = {pid: (calls, *(read_counts(f"{folder}/{account}.{pid}.tsv") for account in ("unseen", "doubtful")))
                      for pid, (_, calls) in read_records(folder).items()}
            for calls, *accounts in of_all.values():
                for when, account in zip(("before", "under way"), accounts):
                    self.assertEqual(tally([call for call in calls if call["injection"] == when]), account)
            return marks, of_all

    def test_injection(self):
        """cuInit loads the library once, and what that cannot see is known; fork, exec and threads."""
        marks, of_all = self.injected("init; init; sync; fork { sync }; wait; exec { setup; query }")
        parent, child = sorted(of_all)
        self.assertEqual(marks, [parent, parent])
        calls, unseen, doubtful = of_all[parent]
        self.assertEqual((unseen, doubtful), ({**{k: 2 * v for k, v in LOOKUPS.items()}, "cuInit": 2}, {}))
        self.assertEqual(tally([call for call in calls if call["injection"] == "after"]),
                         {"cuInit": 1, "cuStreamSynchronize": 1, "cuDevicePrimaryCtxRetain": 1, "cuCtxSetCurrent": 1,
                          "cuStreamQuery": 1})
        self.assertEqual(of_all[child][1:], ({}, {}))
        marks, of_all = self.injected("thread { init; sync };" * 8 + "wait; sync; fork { setup; sync }; wait")
        self.assertEqual(marks, [min(of_all)])
        calls, unseen, doubtful = of_all[min(of_all)]
        self.assertEqual(tally([call for call in calls if call["injection"] == "after"])["cuStreamSynchronize"], 9)
        marks, of_all = self.injected("sync; fork { init; sync }; wait")
        self.assertEqual(marks, [max(of_all)])
        self.assertEqual(of_all[min(of_all)][1]["cuStreamSynchronize"], 1)
        self.assertEqual(of_all[max(of_all)][1:], ({"cuInit": 1}, {}))
        for path in ("", "/no/such/library.so", "/etc/passwd", LIBRARY):
            marks, of_all = self.injected("setup", path)
            (calls, unseen, _), = of_all.values()
            self.assertEqual((marks, unseen), ([], tally(calls)))

    def test_refuses_nonsense(self):
        for variable, value in (("FAIL", "cuFoo=2@1"), ("FAIL", "cuInit=2"), ("MEMORY", "much"),
                                ("NAME_OFFSET", "9"), ("HANG", "cuInit@0"), ("LATENCY", "cuInit"),
                                ("DRIVER", "yes"), ("DRIVER", "nvidia=/dev/null"), ("DRIVER_STATUS", "0x2a"),
                                ("DRIVER_STATUS", "0x2a/x=1")):
            done, _ = run("fake_calls", "init", **{variable: value})
            self.assertEqual(done.returncode, 2, variable)
            self.assertIn("FAKE_CUDA_" + variable, done.stderr)
        for script in ("walk", "free nothing", "loop 2 { init", "malloc a"):
            self.assertEqual(run("fake_calls", script)[0].returncode, 2, script)

    def test_storm(self):
        done, records = run("fake_storm", "--count", 1000, "--threads", 2)
        self.assertEqual(only(records)[0]["cuLaunchKernel"], 2000)
        self.assertTrue(done.stdout.startswith("calls=2000 seconds="), done.stdout)
        command = [f"{WORKLOADS}/fake_storm", "--library", LIBRARY]
        output = subprocess.run([*command, "--rate", "2000", "--count", "200"], check=True, text=True,
                                stdout=subprocess.PIPE).stdout
        seconds = float(re.search(r"seconds=([\d.]+)", output)[1])
        self.assertGreaterEqual(seconds, 199 / 2000)
        cold = subprocess.run([*command, "--count", "100", "--touch", str(4 << 20)], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        took = {name: float(value) for name, value in re.findall(r"(calls|seconds|ns_per_call)=([\d.]+)", cold)}
        self.assertEqual(took["calls"], 100)
        self.assertLess(took["ns_per_call"] * 100 / 1e9, took["seconds"] / 4, "what lies between calls was timed")
        best = min(float(re.search(r"ns_per_call=([\d.]+)", subprocess.run(
            [*command, "--symbol", "cuCtxSynchronize", "--count", "2000000"], check=True, text=True,
            stdout=subprocess.PIPE).stdout)[1]) for _ in range(25))
        self.assertLess(best, 10, "a call that no test watches costs too much to measure probes with")


unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
