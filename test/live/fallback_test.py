"""Without what newer kernels offer, the trace is the same, or lacks only what the documents say."""
import os
import shutil
import signal
import subprocess
import sys

import harness
from expected import FUNCTIONS, check_calls
from harness import LIBRARY, WORKLOADS, wait_for

FEATURES = ("uprobe_multi", "uprobe_session", "uprobe_process", "sleepable", "watch_mappings", "process_events", "driver_fentry",
            "driver_kprobes", "syscall_tracepoints", "xid_tracepoint")
# Single links take long to close, so use few functions.
TRACED = {"cuInit", "cuModuleLoadData", "cuModuleGetFunction", "cuMemAlloc_v2", "cuMemFree_v2", "cuMemcpyHtoD_v2",
          "cuMemsetD8_v2", "cuLaunchKernel", "cuStreamSynchronize"}
ONLY = ("--only", ",".join(sorted(TRACED)))
CALLS = [f"{WORKLOADS}/fake_calls", "--library", LIBRARY]
SCRIPT = ("setup; module m; function f m add; malloc a 4K; htod a host 4K; "
          "thread { loop 50 { launch f 1 2 3 4 5 6 7; sync } }; thread { loop 50 { set8 a 1 16 } }; wait; "
          "fails 2 malloc b 1T; free a")
FORKS = "setup; malloc a 1; fork { malloc b 2; fork { malloc c 3 }; wait }; wait; free a"
LINGERING = 100  # seconds that single links may take to close, on a busy machine

# Passes a name to the driver that is in a page of a file that this process has not touched.
UNTOUCHED = """
import ctypes, mmap, sys
driver = ctypes.CDLL(sys.argv[1])
with open(sys.argv[2], "rb") as file:
    page = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    page.madvise(mmap.MADV_DONTNEED)
module, function = ctypes.c_void_p(), ctypes.c_void_p()
name = (ctypes.c_char * 1).from_buffer(page, 4096)
driver.cuModuleLoadData(ctypes.byref(module), b"image")
driver.cuModuleGetFunction(ctypes.byref(function), module, ctypes.byref(name))
"""


def without(*features):
    return [flag for feature in features for flag in ("--no-feature", feature)]


class Live(harness.LiveTest):
    def tearDown(self):
        self.check_gone(LINGERING)

    def traced(self, command, *flags, **options):
        return super().traced(command, *(flags if "--profile" in flags else (*ONLY, *flags)), **options)

    def check_features(self, trace, *disabled):
        """The header says which features were turned off, and names no other."""
        features = {feature["name"]: feature for feature in trace.header["features"]}
        self.assertEqual(set(features), set(FEATURES))
        for name, feature in features.items():
            if name in disabled:
                self.assertEqual((feature["state"], feature["disabled"]), ("no", True))
                self.assertIn("--no-feature", feature["why"])
            else:
                self.assertNotIn("disabled", feature)

    def check_exact(self, trace, *disabled):
        self.check_whole(trace, TRACED)
        check_calls(self, trace, TRACED)
        self.check_features(trace, *disabled)
        library = next(library for library in trace.header["libraries"] if library["path"] == LIBRARY)
        self.assertEqual(library["functions"], len([f for f in FUNCTIONS.values() if {f.name, f.symbol} & TRACED]))

    def of_traced(self, counts):
        return {symbol: count for symbol, count in counts.items() if symbol in TRACED}

    def start_waiting(self, script, **options):
        program = self.start([*CALLS, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)
        self.assertEqual(program.process.stdout.readline(), b"ready\n", program.stderr())
        return program

    def calls_since(self, program, before):
        counts = self.records()[program.pid].counts
        return {symbol: count - before.get(symbol, 0) for symbol, count in self.of_traced(counts).items()
                if count > before.get(symbol, 0)}

    # --- each feature, and all at once

    def test_each(self):
        """Threads, results and errors of one process: none of this needs a feature."""
        for feature in FEATURES:
            with self.subTest(feature):
                self.setUp()
                trace = self.script(SCRIPT, *without(feature))
                self.check_exact(trace, feature)

    def test_all(self):
        trace = self.script(SCRIPT, *without(*FEATURES))
        self.check_exact(trace, *FEATURES)
        self.assertEqual(trace.end["reason"], "command ended")

    def test_forks(self):
        """Children are followed even without all other features."""
        others = [feature for feature in FEATURES if feature != "process_events"]
        trace = self.script(FORKS, *without(*others))
        self.check_exact(trace, *others)
        self.assertEqual(len(self.records()), 3)
        self.assertEqual(len([line for line in trace.processes if line["op"] == "exit"]), 3)

    def test_no_process_events(self):
        """Children are not followed, ends are not seen; the command itself is complete, and its end ends the trace."""
        for features in (("process_events",), FEATURES):
            self.setUp()
            trace = self.script(FORKS, *without(*features))
            self.check_law(trace)
            self.check_features(trace, *features)
            pid = trace.calls[0]["pid"]
            self.assertEqual(len(self.records()), 3)
            self.assertEqual(dict(trace.counts()), self.of_traced(self.records()[pid].counts))
            self.assertEqual({line["op"] for line in trace.processes} - {"start"}, set())
            self.assertEqual((trace.end["reason"], trace.end["command_status"]), ("command ended", 0))

    def test_attach(self):
        """A process that is already running, with as few features as possible; the trace ends with it."""
        for features in (("uprobe_multi",), ("process_events",), FEATURES):
            with self.subTest(features):
                self.setUp()
                program = self.start_waiting("setup; print ready; read; loop 50 { sync; malloc a 1K; free a }")
                before = self.records()[program.pid].counts
                tracer = self.start_cudabpf("attach", "-o", self.path, *ONLY, "--pid", program.pid,
                                            *without(*features))
                program.send_line()
                self.assertEqual(program.wait(), 0, program.stderr())
                self.assertEqual(tracer.wait(), 0, tracer.stderr())
                trace = self.read()
                self.check_law(trace)
                self.assertEqual(dict(trace.counts()), self.calls_since(program, before))
                self.assertEqual(trace.end["reason"], "targets ended")
                ends = [line["pid"] for line in trace.processes if line["op"] == "exit"]
                self.assertEqual(ends, [] if "process_events" in features else [program.pid])

    def test_machine(self):
        """Every caller is traced, child or not, even if no start or end is seen."""
        for features in (("process_events",), FEATURES):
            with self.subTest(features):
                self.setUp()
                tracer = self.start_cudabpf("-o", self.path, *ONLY, "--library", LIBRARY, *without(*features))
                program = self.start([*CALLS, FORKS])
                self.assertEqual(program.wait(), 0, program.stderr())
                tracer.signal(signal.SIGINT)
                self.assertEqual(tracer.wait(), 0, tracer.stderr())
                trace = self.read()
                self.check_whole(trace, TRACED)
                self.assertEqual(len(self.records()), 3)
                self.assertEqual({(line["op"], line["pid"]) for line in trace.processes},
                                 {("start", pid) for pid in self.records()})

    # --- what each is for

    def test_sleepable(self):
        """A name in memory that is not resident: present with the feature; without it, reported as missing."""
        path = f"{self.folder}/names"
        with open(path, "wb") as file:
            file.write(b"\0" * 4096 + b"a_name_in_a_page" + b"\0" * 4096)
        command = [sys.executable, "-c", UNTOUCHED, LIBRARY, path]
        for features in ((), ("sleepable",), ("sleepable", "uprobe_multi")):
            with self.subTest(features):
                self.setUp()
                trace = self.traced(command, "--library", LIBRARY, *without(*features))
                if not features and trace.header["features"][1]["state"] != "yes":
                    self.skipTest("this kernel has no sleepable uprobes")
                self.check_accounts(trace)
                self.check_counts(trace, TRACED)
                self.assertEqual(trace.end["losses"], {})
                call, = trace.named("cuModuleGetFunction")
                self.assertEqual(call["ret"], 0)
                self.assertEqual((call["args"].get("name"), call.get("read_fault")),
                                 (None, True) if features else ("a_name_in_a_page", None))
                self.assertEqual([c for c in trace.calls if "read_fault" in c], [call] if features else [])

    def test_no_watch_mappings(self):
        """A copy that comes late is not traced, and the trace says why; all others are."""
        script = ("import ctypes, sys; [ctypes.CDLL(path).cuInit(0) for path in sys.argv[1:] for _ in range(20)]")
        folder = f"{self.folder}/lib"
        os.mkdir(folder)
        late = shutil.copy(LIBRARY, f"{self.folder}/libcuda.so.1")
        on_path = shutil.copy(LIBRARY, f"{folder}/libcuda.so.1")
        env = {**self.environment(COUNTS=None, LOG=None), "LD_LIBRARY_PATH": folder}
        done = self.run_cudabpf("run", "-o", self.path, *ONLY, "--library", LIBRARY,
                                *without("watch_mappings"), "--", sys.executable, "-c", script, late, on_path, LIBRARY,
                                env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        trace = self.read()
        self.check_law(trace)
        self.check_features(trace, "watch_mappings")
        self.assertEqual(trace.counts(), {"cuInit": 40})
        self.assertEqual(trace.libraries, [])
        self.assertNotIn(late, [library["path"] for library in trace.header["libraries"]])

    def test_wrong_feature(self):
        done = self.run_cudabpf("run", *without("uprobe_multi", "magic"), "-o", self.path, "--", "true")
        self.assertEqual(done.returncode, 2)
        for feature in FEATURES:
            self.assertIn(feature, done.stderr.decode())


if __name__ == "__main__":
    harness.main()
