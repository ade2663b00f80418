"""What cudabpf prints: the trace on stdout, its summary on stderr, and the status line on a terminal."""
import contextlib
import fcntl
import json
import os
import re
import shutil
import struct
import subprocess
import termios

import harness
from harness import CUDABPF, LIBRARY, Trace, calls, ended, launches, wait_for

SCRIPT = "setup; malloc a 4K; htod a host 4K; free a"


class Live(harness.LiveTest):
    def start_stream(self, subcommand, *arguments, **options):
        """Starts a trace on stdout, which no process reads yet."""
        return self.start([CUDABPF, subcommand, "-o", "-", "--profile", "full", "--library", LIBRARY, *arguments],
                          stdout=subprocess.PIPE, **options)

    # --- to stdout

    def test_live(self):
        """One line per event on stderr, instead of the status line, and no byte of it on the command's stdout."""
        done = self.run_cudabpf("run", "--live", "-o", self.path, "--library", LIBRARY, "--", *calls("setup; malloc a 4M"))
        self.assertEqual(done.returncode, 0, done.stderr)
        text = done.stderr.decode()
        for line in (r"fake_calls/\d+ +is traced: .*fake_calls", r"fake_calls/\d+ +cuMemAlloc 4\.00 MiB  [\d.]+ .s\n",
                     r"fake_calls/\d+ +exits with 0\n"):
            self.assertRegex(text, line)
        self.assertEqual(text.count("  cuMemAlloc 4.00 MiB"), 1)
        self.assertEqual(done.stdout, b"")
        self.check_law(self.read())

    def test_stdout(self):
        """Nothing but the trace; messages go to stderr."""
        for quiet in ([], ["-q"]):
            done = self.run_cudabpf("run", "-o", "-", *quiet, "--profile", "full", "--library", LIBRARY, "--",
                                    *calls(SCRIPT))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.check_law(trace := Trace(done.stdout.decode()))
            self.assertEqual(len(trace.named("cuMemAlloc_v2")), 1)
            if quiet:
                self.assertEqual(done.stderr, b"")
            else:
                self.assertIn(f"{len(trace.calls)} calls of 1 process in ", done.stderr.decode())
                self.assertNotIn("jq", done.stderr.decode())

    def test_stdout_of_the_command(self):
        """It is the trace's: what the command writes there goes to stderr, or nowhere if that is closed."""
        traced = ["run", "-q", "-o", "-", "--only", "cuMem*", "--library", LIBRARY, "--",
                  *calls(f"print one; {SCRIPT}; print two")]
        for redirected, own in ("", b"one\ntwo\n"), ("2>&-", b""):
            done = subprocess.run(["sh", "-c", f'exec "$@" {redirected}', "sh", *self.by_way([self.program, *traced])],
                                  env=self.environment(), check=False, capture_output=True)
            self.assertEqual((done.returncode, done.stderr), (0, own))
            self.check_law(trace := Trace(done.stdout.decode()))
            self.assertEqual(dict(trace.counts()), {"cuMemAlloc_v2": 1, "cuMemcpyHtoD_v2": 1, "cuMemFree_v2": 1})

    def test_stdout_of_attach(self):
        """Lines come while the target runs, not at its end."""
        target = self.start(calls(f"{SCRIPT}; read; {SCRIPT}; read"), stdin=subprocess.PIPE)
        wait_for(lambda: self.total() and self.record().counts.get("cuMemFree_v2"), "calling")
        before = self.total()
        tracer = self.start_stream("attach", "--pid", str(target.pid))
        text = tracer.process.stdout.readline()
        self.assertEqual(json.loads(text)["mode"], "attach")
        target.send_line()
        while b"cuMemFree" not in text:
            line = tracer.process.stdout.readline()
            self.assertTrue(line, tracer.stderr())
            text += line
        self.assertIsNone(target.process.poll())
        target.send_line()
        text += tracer.process.stdout.read()
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        trace = Trace(text.decode())
        self.check_law(trace)
        self.assertEqual(len(trace.calls), self.total() - before)

    def test_reader_goes(self):
        """The command runs on undisturbed, and its status is cudabpf's."""
        tracer = self.start_stream("run", "--", *calls("setup; loop 50 { sync; sleep 10 }; exit 3"))
        self.assertEqual(json.loads(tracer.process.stdout.readline())["type"], "trace")
        tracer.process.stdout.close()
        self.assertEqual(tracer.wait(), 3, tracer.stderr())
        self.assertEqual(self.record().counts["cuStreamSynchronize"], 50)
        self.assertEqual(tracer.stderr().count("warning"), 1)
        self.assertIn("has gone", tracer.stderr())
        self.assertRegex(tracer.stderr(), r"(?m)^  \d+ events that came after the trace's reader had gone$")
        self.assertNotIn("Free space", tracer.stderr())

    def test_reader_of_attach_goes(self):
        """Then nothing is left to do: cudabpf ends, and the target does not."""
        target = self.start(calls("setup; loop 10000 { sync; sleep 5 }"))
        wait_for(lambda: self.total() > 10, "calling")
        tracer = self.start_stream("attach", "--pid", str(target.pid))
        self.assertEqual(json.loads(tracer.process.stdout.readline())["type"], "trace")
        tracer.process.stdout.close()
        self.assertEqual(tracer.wait(), 124, tracer.stderr())
        self.assertIn("has gone", tracer.stderr())
        before = self.total()
        wait_for(lambda: self.total() > before + 10, "going on")
        self.assertIsNone(target.process.poll())

    def test_slow_reader(self):
        """A slow reader does not hold up the traced program; what it does not read at once, it gets later."""
        command = ["sh", "-c", 'exec "$@" >/dev/null', "sh", *launches(20000, 0)]
        tracer = self.start_stream("run", "--", *command, env=self.environment(LOG=None))
        wait_for(lambda: self.total() and ended(self.record().pid), "the target's end")
        self.assertEqual(self.record().counts["cuLaunchKernel"], 20000)
        self.assertIsNone(tracer.process.poll())
        trace = Trace(tracer.process.stdout.read().decode())
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        self.check_whole(trace)

    # --- to stderr

    def test_summary(self):
        """A run ends with what `summary` says of its trace, and with commands that work."""
        path = f"{self.folder}/it's a trace.jsonl"
        trace = self.script(f"{SCRIPT}; module m; function f m my_kernel; loop 1200 {{ launch f 1 1 1 32 1 1 0 }}; "
                            "fails 2 malloc b 1T", output=path)
        self.check_law(trace)
        self.assertTrue(self.stderr.startswith(f"{len(trace.calls):,} calls of 1 process in "), self.stderr)
        self.assertRegex(self.stderr, rf"(?m)^  {re.escape(path)}  [\d.]+ KiB, {len(trace.lines):,} lines$")
        self.assertNotRegex(self.stderr, r"[\r\x1b]|lost|warning")
        summary, report, schema = self.stderr.split("\nnext\n")[1].splitlines()[:3]
        answer = self.suggested(summary)
        verdict = self.stderr.split("\n\n")[1]
        self.assertIn("1 call failed because memory ran out", " ".join(verdict.split()))
        self.assertIn(" ".join(verdict.split()), " ".join(answer.split()))  # whatever the width is
        self.assertIn("duration_us", self.suggested(schema.split("    ")[0]))
        self.suggested(f"{report} -o {self.folder}/report.html")

    def test_end_of_large_traces(self):
        """A plain trace that has grown large says how much smaller it would have been."""
        trace = self.script("setup; loop 60000 { sync }")
        self.check_law(trace)
        times = re.search(r"-o FILE\.zst would have taken about [\d.]+ [KM]iB\s+\((\d+) times less\)", self.stderr)
        size = os.path.getsize(self.path)
        self.assertGreater(size, 8 << 20)
        self.assertGreater(int(times.group(1)), 5)
        done = self.run_cudabpf("run", "-o", f"{self.folder}/t.jsonl.zst", "--library", LIBRARY, "--profile", "full", "--",
                                *calls("setup; loop 60000 { sync }"), env=self.environment())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn(b"-o FILE", done.stderr)
        self.assertIn(b"cudabpf summary --all", done.stderr)

    def suggested(self, command):
        """What a command that cudabpf suggests prints if cudabpf is installed."""
        folder = os.path.dirname(CUDABPF)
        return subprocess.run(command, shell=True, check=True, stdout=subprocess.PIPE, text=True,
                              env=dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}")).stdout

    def on_terminal(self, *flags, **variables):
        """What cudabpf writes to a terminal while it traces for half a second and more."""
        primary, replica = os.openpty()
        self.addCleanup(os.close, primary)
        fcntl.ioctl(replica, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        env = dict(self.environment(), TERM="xterm", **variables)
        env.pop("COLUMNS", None)
        program = self.start([CUDABPF, "run", "-o", self.path, "--library", LIBRARY, *flags, "--",
                              *calls("setup; loop 60 { sync; sleep 10 }")], env=env, stderr=replica)
        os.close(replica)
        text = b""
        with contextlib.suppress(OSError):  # when no process has the other end open any more
            while piece := os.read(primary, 65536):
                text += piece
        self.assertEqual(program.wait(), 0, text)
        return text.decode()

    def test_status_line(self):
        """The status line is on the terminal, and gone when the summary comes."""
        text = self.on_terminal(NO_COLOR="")
        status = r"\rcudabpf: tracing for \d\d:\d\d  ([\d,]+) calls  [\d,]+/s  [01] process(?:es)?  [\d.]+ .?i?B  0 lost\x1b\[K"
        shown = [int(count) for count in re.findall(status, text)]
        self.assertGreater(len(shown), 1)
        self.assertEqual(shown, sorted(shown))
        self.assertGreater(shown[-1], 0)
        begin, _, summary = text.rpartition("\r\x1b[K")
        self.assertRegex(summary, r"^\x1b\[1m[\d,]+ calls of 1 process in ")
        self.assertEqual(re.sub(status, "", begin), "")

    def test_no_status_line(self):
        self.assertEqual(self.on_terminal("-q"), "")


if __name__ == "__main__":
    harness.main()
