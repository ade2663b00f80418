"""Every family of calls: each line holds exactly what the driver was given and returned."""
import harness
from expected import add_demangled, check_calls

FAMILIES = {
    "setup": "setup; query-device; release; retain other; release; init; memory-info",
    "contexts": "setup; context c; push c; pop d; current c; sync-context; destroy-context c; current ctx; sync; reset",
    "device_memory": "setup; malloc a 1; malloc b 12345; malloc-managed m 3M; malloc-pitch p 1000 10; free b; "
                     "free 0; free a; free m; free p; prefetch a 4K; advise a 4K",
    "async_memory": "setup; stream s; malloc-async a 8K s; malloc-async b 8K; pool q; malloc-pool c 16K q s; "
                    "free-async a s; free-async b; free-async c s; trim-pool q 4K; destroy-pool q",
    "host_memory": "setup; malloc-host a 4K; host-alloc b 8K; register host 64K; unregister host; free-host a; "
                   "free-host b",
    "virtual_memory": "setup; reserve r 4M; create h 2M; create i 2M; map r 2M h; access r 2M; unmap r 2M; "
                      "release-memory h; release-memory i; unreserve r 4M",
    "copies": "setup; stream s; malloc a 1M; malloc b 1M; context c; context d; htod a host 4K; dtoh host a 100; "
              "dtod a b 512K; copy a host 7; copy host b 9; copy a b 11; peer a c b d 2K; htod-async a host 1 s; "
              "dtoh-async host a 2 s; dtod-async a b 3; copy-async b a 4 s; peer-async a c b d 5 s",
    "copies_2d": "setup; stream s; malloc a 1M; malloc b 1M; copy2d htod a host 100 7; copy2d dtoh host a 3 5; "
                 "copy2d-unaligned dtod a b 33 4; copy2d-async htoh host host 8 9 s; copy2d unified a b 16 2",
    "copies_3d": "setup; stream s; context c; context d; malloc a 1M; malloc b 1M; copy3d htod a host 10 11 12; "
                 "copy3d dtod a b 2 3 4; copy3d-async dtoh host a 5 6 7 s; copy3d-peer dtod a b 8 9 10 c d; "
                 "copy3d-peer-async dtod a b 3 3 3 c d s",
    "batch_copies": "setup; malloc a 1M; malloc b 1M; copy-batch a b 16; copy-batch a b 1 2 3 4 5 6 7 8 9 10; "
                    "copy-batch a b 0",
    "fills": "setup; stream s; malloc a 1M; set8 a 0x1ff 100; set16 a 0xfff5 8; set32 a 0xdeadbeef 9; "
             "set8-async a 1 2 s; set16-async a 1 2 s; set32-async a 3 4; set2d8 a 64 1 10 20; "
             "set2d16 a 64 2 10 20; set2d32 a 128 3 10 20; set2d8-async a 64 4 5 6 s; set2d32-async a 64 7 8 9 s",
    "launches": "setup; stream s; module m; module-ex n; function f m _Z3addPKfS0_Pfi; "
                "function g n _ZN2at6native6vectorIfLi4EEEvT_S3_; launch f 1 2 3 4 5 6 7 s; "
                "launch g 4294967295 65535 65535 1024 1 64 232448; launch-ex f 10 20 30 1 2 3 9 s; "
                "launch-cooperative g 1 1 1 32 1 1 0; library l; kernel k l plain_c_name; kernel-function e k; "
                "launch e 9 1 1 8 1 1 0; launch k 2 2 2 2 2 2 2 s; unload m; unload-library l; unload n",
    "graphs": "setup; stream s; module m; function f m _Z5scalePf; graph g; graph-kernel g f 1 2 3 4 5 6 7; "
              "instantiate x g; launch-graph x s; launch-graph x; capture s; launch f 1 1 1 1 1 1 0 s; "
              "end-capture h s; instantiate y h; launch-graph y s; destroy-exec x; destroy-exec y; "
              "destroy-graph g; destroy-graph h",
    "streams_and_events": "setup; stream s; event e; event f; record e s; record f; wait-event e s; sync-event e; "
                          "query-event e; elapsed e f; query s; query; sync s; sync; destroy-event e; "
                          "destroy-event f; destroy-stream s",
}


class Live(harness.LiveTest):
    def check(self, trace):
        self.check_whole(trace)
        check_calls(self, trace)

    def test_families(self):
        script = "; ".join(f"fork {{ {family} }}; wait" for family in FAMILIES.values())
        trace = self.script(script)
        self.assertEqual(len(self.records()), len(FAMILIES) + 1)
        self.check(trace)

    def test_devices(self):
        """Calls that name no device are on the device of the context that their thread made current."""
        trace = self.script("setup; raw cuDevicePrimaryCtxRetain @other 1; malloc a 4K; current other; malloc b 4K; "
                            "htod b host 64; thread { current ctx; malloc c 4K; sync }; wait; "
                            "raw cuCtxCreate_v2 @third 0 2; malloc d 4K; push ctx; malloc e 4K; pop x; malloc f 4K; "
                            "pop x; malloc g 4K; set8 g 1 64; sync-context", fake={"DEVICES": 3})
        self.check(trace)
        self.assertEqual([line.get("device") for line in trace.calls if line["name"] == "cuMemAlloc"], [0, 1, 0, 2, 0, 2, 1])

    def test_copies_between_devices(self):
        """Judging by the addresses: a copy need not say that it goes to another GPU."""
        trace = self.script("setup; raw cuDevicePrimaryCtxRetain @other 1; stream s; malloc a 4K; malloc-managed m 4K; reserve r 4M; "
                            "create h 2M; map r 2M h; current other; malloc b 4K; malloc-async c 4K; dtod a b 100; dtod b c 100; "
                            "copy c a 8; dtod-async b r 16 s; peer b other a ctx 2K; peer b other c other 1K; dtod b m 64; "
                            "htod b host 64; copy3d-peer dtod a b 2 3 4 ctx other; copy2d dtod b a 3 5; unmap r 2M; dtod b r 16; "
                            "free a; dtod b a 8", fake={"DEVICES": 2})
        self.check(trace)
        ends = [(line.get("src_device"), line.get("dst_device")) for line in trace.calls if line["type"] == "transfer"]
        self.assertEqual(ends, [(1, 0), (None, None), (0, 1), (0, 1), (0, 1), (1, 1)] + [(None, None)] * 6)

    def test_copies_where_frees_are_left_out(self):
        trace = self.script("setup; raw cuDevicePrimaryCtxRetain @other 1; malloc a 4K; current other; malloc b 4K; dtod a b 100",
                            "--exclude", "cuMemFree*", fake={"DEVICES": 2})
        self.assertEqual([(line["device"], "src_device" in line) for line in trace.calls if line["op"] == "DtoD"], [(1, False)])

    def test_per_thread_stream(self):
        script = "; ".join(f"fork {{ {FAMILIES[name]} }}; wait" for name in
                           ("async_memory", "copies", "copies_2d", "copies_3d", "fills", "launches",
                            "streams_and_events"))
        trace = self.script(script, workload=["--per-thread-stream"])
        self.check(trace)
        symbols = {harness.symbol_of(call) for call in trace.calls}
        for symbol in ("cuLaunchKernel_ptsz", "cuLaunchKernelEx_ptsz", "cuMemcpyHtoD_v2_ptds",
                       "cuMemAllocAsync_ptsz", "cuMemcpy3DAsync_v2_ptsz", "cuStreamSynchronize_ptsz"):
            self.assertIn(symbol, symbols)

    def test_errors(self):
        trace = self.script("setup; malloc a 1; fails 2 malloc b 1T; fails 719 malloc c 8; fails 1 free 77; "
                            "fails 4242 sync; module m; fails 500 function f m missing_one; "
                            "function g m add; fails 1 launch g 0 1 1 1 1 1 0; fails 700 dtoh host a 1; "
                            "unload m; fails 400 launch g 1 1 1 1 1 1 0; fails 600 query",
                            fake={"FAIL": "cuMemAlloc_v2=719@3,cuStreamSynchronize=4242@*,"
                                          "cuMemcpyDtoH_v2=700@1,cuStreamQuery=600@1"})
        self.check(trace)
        failed = {call["name"]: call["error"] for call in trace.calls if call["ret"]}
        self.assertEqual(failed["cuMemcpyDtoH"], "CUDA_ERROR_ILLEGAL_ADDRESS")
        self.assertEqual(failed["cuStreamSynchronize"], "unknown (4242)")

    def test_strings(self):
        names = ["x" * length for length in (1, 206, 207, 208, 209, 4094, 4095, 4096, 5000)]
        for length in (240, 700, 2000):
            names.append(f"_Z{length}{'k' * length}Pf")
            add_demangled(names[-1], "k" * length + "(float*)")
        names += ["näme", "with spaces", "'single'"]
        script = "setup; module m; library l; " + "; ".join(
            f'function f{i} m "{name}"; kernel k{i} l "{name}"' +
            (f"; launch f{i} 1 1 1 1 1 1 0" if len(name) < 4096 else "")
            for i, name in enumerate(names))
        path = "/x" * 2500
        trace = self.script(f'{script}; module-file n /some/where.cubin; module-file o {path}')
        self.check(trace)
        cut = [call["args"] for call in trace.calls if call.get("text_cut")]
        self.assertEqual(len(cut), 2 * 2 + 1)  # 4096 and 5000 in two functions, and the path

    def test_raw(self):
        """Functions without a statement: arguments beyond the registers, null and bad pointers."""
        trace = self.script(
            "setup; malloc a 4K; raw cuMemGetAddressRange_v2 @base @size a; raw cuDeviceGetByPCIBusId @d \"0:1:0\"; "
            "raw cuCtxSetLimit 1 65536; raw cuCtxSetFlags 0xffffffff; raw cuDeviceGetP2PAttribute @v 1 0 0; "
            "raw cuMemsetD32_v2 a 4294967295 1024; raw cuStreamWriteValue64_v2 0 a 18446744073709551615 1; "
            "raw cuFuncSetCacheConfig 0 2; raw cuProfilerStart; raw cuMemcpyAtoD_v2 a 4096 12 16")
        self.check_whole(trace)
        check_calls(self, trace)


if __name__ == "__main__":
    harness.main()
