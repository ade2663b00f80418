"""Which functions are traced: profiles, patterns, only entries, functions that are not in the table."""
import fnmatch
import os

import harness
from expected import FUNCTIONS, check_calls
from harness import LIBRARY, NCCL, NEWER, WORKLOADS

SCRIPT = ("setup; query-device; memory-info; stream s; malloc a 4K; htod a host 4K; htod-async a host 64 s; "
          "module m; function f m add; launch f 1 2 3 4 5 6 7 s; sync s; query s; event e; record e s; free a")


class Live(harness.LiveTest):
    def check_selection(self, trace, symbols):
        self.check_whole(trace, symbols)
        self.assertTrue(trace.calls)
        library = trace.libraries[0] if harness.INSIDE else trace.header["libraries"][0]
        left_out = library.get("left_out", 0)
        self.assertEqual((library["functions"] + left_out, library["skipped"]), (len(symbols), len(FUNCTIONS) - len(symbols)))

    def test_profile_full(self):
        trace = self.script(SCRIPT, "--profile", "full")
        self.check_selection(trace, set(FUNCTIONS))
        self.assertEqual(trace.header["profile"], "full")

    def test_profile_default(self):
        symbols = harness.profile_symbols("default")
        trace = self.script(SCRIPT, "--profile", "default")
        self.check_selection(trace, symbols)
        check_calls(self, trace, symbols)
        self.assertLess(len(trace.calls), sum(self.record().counts.values()))

    def test_profile_light(self):
        """Launches, copies, memory and synchronisation; results only where they are needed."""
        symbols = harness.profile_symbols("light")
        trace = self.script(SCRIPT, "--profile", "light")
        self.check_selection(trace, symbols)
        types = {call["type"] for call in trace.calls}
        self.assertLessEqual({"kernel", "transfer", "memory", "sync"}, types)
        self.assertFalse(types & {"device", "query"})
        for call in trace.calls:
            self.assertEqual("ret" in call, "duration_us" in call)
        self.assertEqual([call["ptr"] for call in trace.named("cuMemAlloc_v2")],
                         [call["ptr"] for call in trace.named("cuMemFree_v2")])
        self.assertEqual(trace.named("cuLaunchKernel")[0]["kernel"], "add")

    def test_profiles_grow(self):
        light, default, full = (harness.profile_symbols(profile) for profile in harness.PROFILES)
        self.assertTrue(light < default < full)
        self.assertEqual(full, set(FUNCTIONS))

    def test_only(self):
        """By API name or symbol, whatever the profile."""
        trace = self.script(SCRIPT, "--only", "cuMem*,cuStreamSynchronize,cuDeviceGet", "--profile", "light")
        patterns = ("cuMem*", "cuStreamSynchronize", "cuDeviceGet")
        symbols = {f.symbol for f in FUNCTIONS.values()
                   if any(fnmatch.fnmatchcase(text, p) for p in patterns for text in (f.name, f.symbol))}
        self.check_selection(trace, symbols)
        self.assertIn("cuDeviceGet", trace.counts())

    def test_exclude(self):
        trace = self.script(SCRIPT, "--profile", "full", "--exclude", "cuGetProcAddress,cuLaunch*")
        symbols = {s for s in FUNCTIONS if not s.startswith(("cuGetProcAddress", "cuLaunch"))}
        self.check_selection(trace, symbols)
        check_calls(self, trace, symbols)

    def test_only_and_exclude(self):
        trace = self.script(SCRIPT, "--only", "cuMem*", "--exclude", "cuMemcpy*,cuMemHost*")
        symbols = {f.symbol for f in FUNCTIONS.values()
                   if f.name.startswith("cuMem") and not f.name.startswith(("cuMemcpy", "cuMemHost"))}
        self.check_selection(trace, symbols)
        self.assertEqual(set(trace.counts()), {"cuMemAlloc_v2", "cuMemFree_v2", "cuMemGetInfo_v2"})

    def test_left_out(self):
        """The header says what was requested, and which kinds of calls are not all there."""
        header = self.script("setup", "--only", "cuMemAlloc,cuLaunch*", "--exclude", "cuLaunchKernelEx").header
        self.assertEqual((header["only"], header["exclude"]), (["cuMemAlloc", "cuLaunch*"], ["cuLaunchKernelEx"]))
        self.assertEqual(header["left_out"], ["launches", "copies", "waits", "allocations", "frees"])
        header = self.script("setup").header
        self.assertEqual((header.get("only"), header.get("exclude"), header["left_out"]), (None, None, []))

    def test_names_of_reused_handles(self):
        """A handle may be another kernel's after its module is unloaded, whether that call is traced or not."""
        script = ("setup; module m; function f m alpha; launch f 1 1 1 1 1 1 0; unload m; "
                  "module n; function g n beta; launch g 1 1 1 1 1 1 0")
        for flags in (["--only", "cuLaunchKernel"], ["--only", "*Launch*"],
                      ["--only", "cuLaunchKernel,cuModuleGetFunction"],
                      ["--no-returns", "--exclude", "cuModule*"], ["--exclude", "cuModuleUnload"]):
            with self.subTest(flags):
                self.setUp()
                trace = self.script(script, *flags)
                self.check_law(trace)
                launches = trace.named("cuLaunchKernel")
                self.assertEqual(launches[0]["handle"], launches[1]["handle"])
                self.assertEqual([launch["kernel"] for launch in launches], ["alpha", "beta"])
                self.assertEqual(trace.named("cuModuleUnload"), [])

    def test_directions_need_all_of_memory(self):
        """If allocations are not traced, what they returned is not taken for host memory."""
        script = "setup; malloc a 4K; malloc-async b 4K; copy a b 64; copy b a 64; copy a host 64; free a"
        for flags, ops in (([], ["DtoD", "DtoD", "HtoD"]), (["--exclude", "cuMemAllocAsync"], ["unified"] * 3),
                           (["--only", "cuMemcpy,cuMemAlloc"], ["unified"] * 3),
                           (["--exclude", "cuMemFree"], ["unified"] * 3)):
            with self.subTest(flags):
                self.setUp()
                trace = self.script(script, *flags)
                self.assertEqual([call["op"] for call in trace.named("cuMemcpy")], ops)

    def test_nothing_selected(self):
        for pattern, hint in (("cuNoSuchFunction", "`cudabpf functions` lists"), ("cumemalloc,x*", "there is cuMemAlloc"),
                              ("CUMEMCPY*_V2", "there is cuMemcpy")):
            done = self.run_cudabpf("run", "-o", self.path, "--library", LIBRARY, "--only", pattern, "--",
                                    "touch", f"{self.folder}/ran")
            self.assertEqual(done.returncode, 2)
            self.assertIn("select no function of any library", done.stderr.decode())
            self.assertIn(hint, done.stderr.decode())
        self.assertEqual(os.listdir(self.folder), ["record"])

    def test_nothing_selected_yet(self):
        """A library that is there has none of the functions, but one that may come has."""
        done = self.run_cudabpf("run", "-o", self.path, "--library", NCCL, "--only", "cuInit", "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.run_cudabpf("run", "-o", self.path, "--library", NCCL, "--only", "ncclNone", "--", "true")
        self.assertEqual(done.returncode, 2)

    def test_no_returns(self):
        trace = self.script(SCRIPT, "--profile", "full", "--no-returns")
        self.check_whole(trace)
        self.assertIs(trace.header["returns"], False)
        for call in trace.calls:
            self.assertFalse({"ret", "duration_us", "error", "unfinished"} & set(call), call)
        launch = trace.named("cuLaunchKernel")[0]
        self.assertEqual((launch["grid"], launch["block"], launch["shared"]), ([1, 2, 3], [4, 5, 6], 7))
        self.assertEqual((launch["kernel"], launch["kernel_from"]), ("add", "handle"))
        self.assertEqual(trace.named("cuMemAlloc_v2")[0]["size"], 4096)

    def test_unknown_functions(self):
        """A driver newer than the table: its functions with their raw arguments."""
        trace = self.script("setup; raw cuFutureCall_v7 1 2 3 0xffffffffffffffff; raw cuFutureQuery @v; "
                            "raw cuFutureLaunchKernel 4; malloc a 1", library=NEWER)
        self.check_whole(trace)
        library = next(lib for lib in trace.header["libraries"] + trace.libraries if lib["path"] == NEWER)
        self.assertEqual((library["functions"] + library.get("left_out", 0), library["unknown"]), (len(FUNCTIONS) + 3, 3))
        call = trace.named("cuFutureCall_v7")[0]
        self.assertEqual((call["type"], call["op"], call["ret"]), ("other", "other", 0))
        self.assertEqual([call["args"][f"arg{i}"] for i in range(4)], [1, 2, 3, (1 << 64) - 1])
        self.assertEqual(len(call["args"]), 6)
        self.assertEqual(trace.named("cuFutureLaunchKernel")[0]["args"]["arg0"], 4)

    def test_dlsym(self):
        """A program that finds its functions by name, not through the driver."""
        trace = self.traced([f"{WORKLOADS}/fake_calls", "--library", LIBRARY, "--dlsym", SCRIPT],
                            "--library", LIBRARY)
        self.check_whole(trace)
        check_calls(self, trace)
        self.assertNotIn(harness.LOOKUP, trace.counts())

    def test_wrong_flags(self):
        for flags in (["--profile", "all"], ["--ring-size", "3000"], ["--ring-size", "5000"], ["--no-feature", "magic"],
                      ["--duration", "soon"], ["--keep", "3"], ["--rotate-size", "-1"], ["--user", "nobody-has-this-name"]):
            done = self.run_cudabpf("run", "-o", self.path, *flags, "--", "touch", f"{self.folder}/ran")
            self.assertEqual(done.returncode, 2, flags)
            self.assertIn(flags[0], done.stderr.decode())
        for flags in (["--kernel"], ["--profile", "light"], ["-q"], ["-o", self.path], ["--duration", "1s"], ["--exclude", "cuInit"]):
            done = self.run_cudabpf(*flags, "run", "--", "touch", f"{self.folder}/ran")
            self.assertEqual(done.returncode, 2, flags)
            self.assertIn(" stands before `run`", done.stderr.decode())
        self.assertEqual(os.listdir(self.folder), ["record"])


if __name__ == "__main__":
    harness.main()
