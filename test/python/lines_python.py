"""The Python stacks of calls, against what Python itself says at each call: by eBPF (`run --python`) and from inside.

CUDABPF_PYTHON names another interpreter for the traced programs.
"""
import collections
import glob
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "live"))

import harness  # noqa: E402  pylint: disable=wrong-import-position
import told  # noqa: E402  pylint: disable=wrong-import-position
from harness import LIBRARY  # noqa: E402  pylint: disable=wrong-import-position
from told import CALLS, PYTHON  # noqa: E402  pylint: disable=wrong-import-position

WAYS = ("--inside", "--python")
MOST_FRAMES = 128
WITHOUT = {"cuCtxSetCurrent"}  # of which no stack is recorded


class Live(told.PythonTest):
    def run_python(self, way, *whats, flags=(), profile="full", python=PYTHON):
        """The trace, the calls as Python says them, by thread, and how often code lay where freed code had lain."""
        log = f"{self.folder}/python{way}"
        command = (python, "-B", CALLS, LIBRARY, log, *whats)
        done = self.run_cudabpf("run", *dict.fromkeys((way, "--python")), "-o", self.path, "--profile", profile, "--library", LIBRARY, *flags, "--", *command)
        self.assertEqual(done.returncode, 0, done.stderr)
        known, reused = self.said_by_python(log)
        return self.read(), known, reused, done.stderr.decode()

    def check_books(self, trace):
        self.assertEqual(trace.end["losses"], {})
        self.check_accounts_balance(trace)

    def check_equal(self, trace, known):
        """Each call has the stack that Python says, and each stack is described before the first call that has it."""
        stacks, found = self.stacks_of(trace), self.calls_by_thread(trace)
        compared = 0
        for thread, calls in known.items():
            symbols = {call["symbol"] for call in calls}
            lines = [line for line in found[thread] if harness.symbol_of(line) in symbols]
            self.assertEqual([harness.symbol_of(line) for line in lines], [call["symbol"] for call in calls])
            for line, call in zip(lines, calls):
                if call["symbol"] in WITHOUT:
                    continue
                self.check_stack(stacks[line["stack"]], call["frames"], MOST_FRAMES)
                compared += 1
        self.assertGreater(compared, 0)
        contents = [json.dumps([line["frames"], line.get("cut")]) for line in stacks.values()]
        self.assertEqual(len(contents), len(set(contents)), "a stack has one number")
        return compared

    def test_equal(self):
        """All sorts of code, with Python's lock and without it"""
        for way in WAYS:
            with self.subTest(way):
                trace, known, _, _ = self.run_python(way, "plain", "expressions", "generators", "classes", "recursion", "names", "plain")
                self.check_books(trace)
                self.assertGreater(self.check_equal(trace, known), 50)
                self.assertTrue(trace.header["python"])
                self.assertEqual(trace.header["source"], "inside" if way == "--inside" else "ebpf")
                self.assertEqual([line["pid"] for line in trace.of("python") if "version" in line], [next(iter(known))[0]])

    def test_freed(self):
        """Code that is freed and made again at the same address, with other lines"""
        for way in WAYS:
            with self.subTest(way):
                trace, known, reused, _ = self.run_python(way, "freed", "freed")
                self.check_books(trace)
                self.assertGreater(reused, 100)
                self.assertEqual(self.check_equal(trace, known), 1600)

    def test_threads(self):
        """Threads, of which one frees code all the time"""
        for way in WAYS:
            with self.subTest(way):
                trace, known, _, _ = self.run_python(way, "threads")
                self.check_books(trace)
                self.assertEqual(len(known), 5)
                self.check_equal(trace, known)

    def test_fork(self):
        for way in WAYS:
            with self.subTest(way):
                trace, known, _, _ = self.run_python(way, "plain", "fork", "plain")
                self.check_books(trace)
                self.assertEqual(len({pid for pid, _ in known}), 2)
                self.check_equal(trace, known)

    def test_many(self):
        """More stacks than a process keeps: none is taken for another, and none is missing."""
        trace, known, _, _ = self.run_python("--inside", "many", "plain", "many")
        self.check_books(trace)
        self.assertGreater(self.check_equal(trace, known), 48000)

    def test_light(self):
        """A profile that records only entries where those are enough"""
        for way in WAYS:
            with self.subTest(way):
                trace, known, _, _ = self.run_python(way, "plain", profile="light")
                self.check_books(trace)
                for calls in known.values():
                    calls[:] = [call for call in calls if call["symbol"] not in WITHOUT]
                self.check_equal(trace, known)

    def test_rotated(self):
        """Each file says what its numbers stand for."""
        path = f"{self.folder}/part.jsonl"
        done = self.run_cudabpf("run", "--inside", "--python", "-o", path, "--rotate-size", "64K", "--library", LIBRARY, "--",
                                PYTHON, "-B", CALLS, LIBRARY, f"{self.folder}/log", *["plain", "expressions"] * 30)
        self.assertEqual(done.returncode, 0, done.stderr)
        files = sorted(pathlib.Path(self.folder).glob("part.*.jsonl"))
        self.assertGreater(len(files), 2)
        for file in files:
            known = set()
            for line in self.read(file).lines:
                if line["type"] == "stack":
                    known.add(line["stack"])
                elif "stack" in line:
                    self.assertIn(line["stack"], known, line)

    def test_redacted(self):
        """Files of a package or of Python's library are told, of others the name alone."""
        trace, _, _, _ = self.run_python("--inside", "generators", flags=("--redact",))
        files = {frame["file"] for line in trace.of("stack") for frame in line["frames"]}
        self.assertIn("python_calls.py", files)
        self.assertEqual({file for file in files if "/" in file and not file.startswith("lib/python3.")}, set())

    def test_not_wanted(self):
        done = self.run_cudabpf("run", "--inside", "-o", self.path, "--library", LIBRARY, "--", PYTHON, "-B", CALLS, LIBRARY, f"{self.folder}/log", "plain")
        self.assertEqual(done.returncode, 0, done.stderr)
        trace = self.read()
        self.assertEqual([line for line in trace.lines if line["type"] in ("stack", "python") or "stack" in line], [])

    def test_no_python(self):
        """A program that is none of Python's"""
        for way in WAYS:
            with self.subTest(way):
                done = self.run_cudabpf("run", *dict.fromkeys((way, "--python")), "-o", self.path, "--library", LIBRARY, "--", *harness.calls("setup; malloc a 4K; sync; free a"))
                self.assertEqual(done.returncode, 0, done.stderr)
                trace = self.read()
                self.check_books(trace)
                self.assertEqual([line for line in trace.lines if line["type"] in ("stack", "python") or "stack" in line], [])

    def test_alone(self):
        """A program that is started by variables alone"""
        log, path = f"{self.folder}/log", f"{self.folder}/alone.jsonl"
        env = dict(self.environment(), CUDA_INJECTION64_PATH=harness.INSIDE_LIBRARY, CUDABPF_OUTPUT=path,
                   CUDABPF_OPTIONS=f"--python --profile full --library {LIBRARY}")
        done = subprocess.run((PYTHON, "-B", CALLS, LIBRARY, log, "plain", "expressions"), env=env, timeout=60, check=False, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, done.stderr)
        known = collections.defaultdict(list)
        with open(glob.glob(f"{log}.*")[0], encoding="utf-8") as lines:
            for line in map(json.loads, lines):
                if "symbol" in line:
                    known[line["pid"], line["tid"]].append(line)
        harness.wait_for(lambda: os.path.exists(path) and '"type":"end"' in pathlib.Path(path).read_text(encoding="utf-8"), "a whole trace")
        trace = self.read(path)
        self.check_books(trace)
        self.check_equal(trace, known)
        self.assertTrue(trace.header["python"])

    def other(self, which):
        """What is recorded of a program in which there is another interpreter, or what looks like one: see other_python.c."""
        preload = f"{harness.BUILD}/test/python/libother_python.so"
        done = self.run_cudabpf("run", "--inside", "--python", "-o", self.path, "--library", LIBRARY, "--",
                                "env", f"OTHER_PYTHON={which}", f"LD_PRELOAD={preload}", *harness.calls("setup; malloc a 4K; sync; free a"))
        self.assertEqual(done.returncode, 0, done.stderr)
        trace = self.read()
        self.check_books(trace)
        said = [line.get("why", line.get("version")) for line in trace.of("python")]
        for why in (line["why"] for line in trace.of("python") if "why" in line):
            self.assertIn(why, done.stderr.decode())
        stacks = [[(one["function"], one["file"], one["line"]) for one in line["frames"]] for line in trace.of("stack")]
        with_stack = {harness.symbol_of(call) for call in trace.calls if "stack" in call}
        return said, stacks, with_stack

    def test_fourteen(self):
        """What 3.14 publishes, with tagged references and frames that are the interpreter's own"""
        said, stacks, with_stack = self.other("")
        self.assertEqual(said, ["3.14.0"])
        self.assertEqual(stacks, [[("inner", "/fourteen.py", 11), ("outer", "/fourteen.py", 20)]])
        self.assertLessEqual({"cuMemAlloc_v2", "cuStreamSynchronize", "cuMemFree_v2"}, with_stack)
        self.assertEqual(self.other("idle"), ([], [], set()))

    def test_refused(self):
        """Interpreters that are not known, and memory that is not what it should be: none is followed, and the run says why."""
        for which, why in (("newer", "3.15.0: its version is newer than 3.14"),
                           ("threaded", "3.14.0: it is built without a global lock (free-threaded)"),
                           ("unpublished", "3.14.0: it does not say where its frames are"),
                           ("wrong", "3.14.0: what it says of its frames is wrong"),
                           ("several", "3.14.0: the process has several interpreters"),
                           ("strange", "3.14.0: its frames are not as its version has them"),
                           ("unmapped", "3.14.0: its frames are not as its version has them")):
            with self.subTest(which):
                self.assertEqual(self.other(which), ([f"Python {why}"], [], set()))


harness.main()
