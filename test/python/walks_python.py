"""The Python stacks of slow calls, walked by eBPF (--python-slower), against what Python itself says at each call.

Calls of the simulated driver take as long as they are told to. CUDABPF_PYTHON names another interpreter for the traced
programs.
"""
import pathlib
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "live"))

import harness  # noqa: E402  pylint: disable=wrong-import-position
import told  # noqa: E402  pylint: disable=wrong-import-position
from harness import LIBRARY  # noqa: E402  pylint: disable=wrong-import-position
from told import CALLS, PYTHON  # noqa: E402  pylint: disable=wrong-import-position

MOST_FRAMES = 32
LIMIT_US, NEAR_US = 500, 100  # nearer to the limit, the two clocks may differ on which side a call is
SLOW = {"LATENCY": "cuCtxSynchronize=1000000"}
WITHOUT_SESSIONS = ("--no-feature", "uprobe_session")
BY_SINGLE_LINKS = ("--no-feature", "uprobe_multi")


class Live(told.PythonTest):
    def flags(self, profile="full"):
        return ("-o", self.path, "--python-slower", f"{LIMIT_US}us", "--profile", profile, "--library", LIBRARY)

    def attached(self, *whats, flags=(), profile="full"):
        """Attaches to a program that is running, and has it do this."""
        pathlib.Path(self.path).unlink(missing_ok=True)
        program = self.start((PYTHON, "-B", CALLS, LIBRARY, f"{self.folder}/python", "ready", *whats, "linger"), stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, env=self.environment(**SLOW))
        self.assertEqual(program.process.stdout.readline(), b"ready\n", program.stderr())
        tracer = self.start_cudabpf("attach", "--pid", program.pid, *self.flags(profile), *flags)
        harness.wait_for(lambda: '"op":"start"' in pathlib.Path(self.path).read_text(encoding="utf-8"), "the target's line")
        program.send_line()
        self.assertEqual(program.wait(), 0, program.stderr())
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        return self.read(), self.said_by_python(f"{self.folder}/python")[0]

    def started(self, *whats):
        done = self.run_cudabpf("run", *self.flags(), "--", PYTHON, "-B", CALLS, LIBRARY, f"{self.folder}/python", *whats, "linger", env=self.environment(**SLOW))
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.read(), self.said_by_python(f"{self.folder}/python")[0]

    def check_equal(self, trace, known):
        """A call that has a stack has the one that Python says, and is slow."""
        self.check_accounts_balance(trace)
        stacks, found = self.stacks_of(trace), self.calls_by_thread(trace)
        compared = 0
        for thread, calls in known.items():
            symbols = {call["symbol"] for call in calls}
            lines = [line for line in found[thread] if harness.symbol_of(line) in symbols]
            self.assertEqual([harness.symbol_of(line) for line in lines][-len(calls):], [call["symbol"] for call in calls])
            for line, call in zip(lines[-len(calls):], calls):
                if line["duration_us"] < LIMIT_US - NEAR_US:
                    self.assertNotIn("stack", line)
                if "stack" in line:
                    self.check_stack(stacks[line["stack"]], call["frames"], MOST_FRAMES)
                    compared += 1
        self.assertGreater(compared, 0)

    def check_counted(self, trace):
        """Slow calls without a stack are counted, and nothing else is lost."""
        without = [line["duration_us"] for line in trace.calls if "stack" not in line]
        lost = dict(trace.end["losses"])
        counted = lost.pop("python_walk", 0)
        self.assertEqual(lost, {})
        self.assertGreaterEqual(counted, sum(us > LIMIT_US + NEAR_US for us in without))
        self.assertLessEqual(counted, sum(us > LIMIT_US - NEAR_US for us in without))

    def check_whole(self, trace, known):
        self.check_equal(trace, known)
        self.check_counted(trace)
        self.assertEqual(trace.end["losses"], {})

    def test_attached(self):
        """All sorts of code, with Python's lock and without it, in a program that was running"""
        trace, known = self.attached("plain", "expressions", "generators", "classes", "recursion", "plain")
        self.check_whole(trace, known)
        self.assertTrue(trace.header["python"])
        self.assertEqual(trace.header["python_slower_ns"], LIMIT_US * 1000)
        self.assertEqual([list(line) for line in trace.of("python")], [["type", "ts", "pid", "version"]])

    def test_ways(self):
        """Kernels without sessions, and without links for many places"""
        for way in (WITHOUT_SESSIONS, BY_SINGLE_LINKS):
            with self.subTest(way):
                self.check_whole(*self.attached("plain", flags=(*way, "--only", "cuCtxSynchronize,cuMemAlloc,cuMemFree,cuMemsetD8")))

    def test_machine(self):
        """The whole machine: a program that runs already, and one that begins later, in a namespace where it has the number 1"""
        command = (PYTHON, "-B", CALLS, LIBRARY, f"{self.folder}/python", "ready", "plain", "recursion", "linger")
        programs = [self.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.environment(**SLOW))]
        self.assertEqual(programs[0].process.stdout.readline(), b"ready\n", programs[0].stderr())
        tracer = self.start_cudabpf(*self.flags())
        harness.wait_for(lambda: '"type":"trace"' in pathlib.Path(self.path).read_text(encoding="utf-8"), "the header")
        programs.append(self.start(("unshare", "--pid", "--fork", "--mount-proc", *command), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   env=self.environment(**SLOW)))
        self.assertEqual(programs[1].process.stdout.readline(), b"ready\n", programs[1].stderr())
        for program in programs:
            program.send_line()
            self.assertEqual(program.wait(), 0, program.stderr())
        tracer.signal(signal.SIGINT)
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        trace, (known, _) = self.read(), self.said_by_python(f"{self.folder}/python")
        one, inner = (programs[0].pid, programs[0].pid), (1, 1)
        self.assertEqual(set(known), {one, inner})
        child = next(line["pid"] for line in trace.of("process") if line.get("ppid") == programs[1].pid)
        outer = (child, child)
        known[outer] = known.pop(inner)
        for thread in (one, outer):
            self.assertTrue(any("stack" in line for line in self.calls_by_thread(trace)[thread]), thread)
        self.check_equal(trace, known)
        self.assertEqual({*trace.end["losses"]} - {"python_walk"}, set())  # first calls come before the processes could be looked at

    def test_freed(self):
        """Code that is freed and made again at the same address, with other lines: what cannot be told any more is counted."""
        trace, known = self.attached("freed", "names", "freed")
        self.check_equal(trace, known)
        self.check_counted(trace)

    def test_threads(self):
        """Threads, of which one frees code all the time"""
        trace, known = self.attached("threads")
        self.assertEqual(len(known), 5)
        self.check_equal(trace, known)
        self.check_counted(trace)

    def test_started(self):
        """Slow calls that come before the process could be looked at are counted."""
        trace, known = self.started("plain", "fork", "plain", "recursion")
        self.assertEqual(len({pid for pid, _ in known}), 2)
        self.check_equal(trace, known)
        self.check_counted(trace)

    def test_light(self):
        """A profile that records only entries where those are enough"""
        trace, known = self.attached("plain", profile="light")
        self.check_accounts_balance(trace)
        self.assertGreater(sum("stack" in line for line in trace.calls), 0)
        self.assertEqual(trace.end["losses"], {})
        self.assertTrue(known)

    def test_not_wanted(self):
        done = self.run_cudabpf("run", "-o", self.path, "--library", LIBRARY, "--", PYTHON, "-B", CALLS, LIBRARY, f"{self.folder}/python", "plain", env=self.environment(**SLOW))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line for line in self.read().lines if line["type"] in ("stack", "python") or "stack" in line], [])

    def other(self, which):
        """What is recorded of a program in which there is another interpreter, or what looks like one: see other_python.c.
        It makes six slow calls, the last five long after the first."""
        preload = f"{self.folder}/libpython3.14.so.1.0"
        shutil.copy(f"{harness.BUILD}/test/python/libother_python.so", preload)
        done = self.run_cudabpf("run", *self.flags(), "--", "env", f"OTHER_PYTHON={which}", f"LD_PRELOAD={preload}",
                                *harness.calls("setup; sync; sleep 500; sync; sync; sync; sync; sync"),
                                env=self.environment(LATENCY="cuStreamSynchronize=1000000"))
        self.assertEqual(done.returncode, 0, done.stderr)
        trace = self.read()
        self.check_accounts_balance(trace)
        said = [line.get("why", line.get("version")) for line in trace.of("python")]
        stacks = [[(one["function"], one["line"]) for one in line["frames"]] for line in trace.of("stack")]
        calls = trace.named("cuStreamSynchronize")
        lost = trace.end["losses"].get("python_walk", 0)
        return said, stacks, ["stack" in call for call in calls][1:], lost

    def check_without_stacks(self, which, expected):
        said, stacks, have, lost = self.other(which)
        self.assertEqual((said, stacks, have), (expected, [], [False] * 5))
        self.assertLessEqual(lost, 1)  # the first call may come before its process was looked at

    def test_fourteen(self):
        """What 3.14 publishes, with tagged references and frames that are the interpreter's own"""
        said, stacks, have, _ = self.other("")
        self.assertEqual((said, stacks, have), (["3.14.0"], [[("inner", 11), ("outer", 20)]], [True] * 5))
        self.check_without_stacks("idle", ["3.14.0"])

    def test_refused(self):
        """Interpreters that are not known: none is followed, and the run says why."""
        for which, why in (("newer", "3.15.0: its version is newer than 3.14"),
                           ("threaded", "3.14.0: it is built without a global lock (free-threaded)"),
                           ("unpublished", "3.14.0: it does not say where its frames are"),
                           ("wrong", "3.14.0: what it says of its frames is wrong")):
            with self.subTest(which):
                self.check_without_stacks(which, [f"Python {why}"])
        self.check_without_stacks("several", ["3.14.0", "Python 3.14.0: the process has several interpreters"])

    def test_hostile(self):
        """Lists of threads and of frames that are loops, or lead nowhere: nothing is harmed, and what has no stack is counted."""
        for which in ("looping", "circling", "nowhere", "twice", "lost", "strange"):
            with self.subTest(which):
                said, stacks, have, lost = self.other(which)
                self.assertEqual((said, stacks, have), (["3.14.0"], [], [False] * 5))
                self.assertGreaterEqual(lost, 5)
        _, stacks, have, _ = self.other("endless")
        self.assertEqual((len(stacks), have), (1, [True] * 5))
        self.assertEqual(len(stacks[0]), MOST_FRAMES)


harness.main()
