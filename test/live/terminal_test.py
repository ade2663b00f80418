"""A person who watches a trace, or a reader of its pipe, holds up neither the capture nor its end, and a traced program
writes to no other program's terminal."""
import contextlib
import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time

import harness
from harness import CUDABPF, LIBRARY, WORKLOADS, calls, ended, wait_for

STOP, GO = b"\x13", b"\x11"  # Ctrl-S, Ctrl-Q
SOON = harness.PATIENCE  # for something that takes two seconds
HOSTILE = "\033[2J\007\u009b2J\u202etxt.exe"


class Terminal:
    """A terminal that keeps what is written to it, and can be stopped."""

    def __init__(self, test, width=100):
        self.primary, self.replica = os.openpty()
        fcntl.ioctl(self.replica, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
        test.addCleanup(self.close)
        self.text, self.closing = b"", threading.Event()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        while not self.closing.is_set():
            if select.select([self.primary], [], [], 0.05)[0]:
                self.text += os.read(self.primary, 65536)

    def press(self, key):
        os.write(self.primary, key)

    def output(self):
        return self.text.decode(errors="surrogateescape")

    def close(self):
        self.press(GO)
        self.closing.set()
        self.reader.join()
        os.close(self.primary)
        os.close(self.replica)


class Live(harness.LiveTest):
    def start_on(self, terminal, *arguments, **options):
        return self.start_cudabpf(*arguments, stderr=terminal.replica,
                                  env=dict(self.environment(), TERM="xterm", COLUMNS=""), **options)

    def unlogged(self):
        return self.environment(LOG=None)

    # --- what is shown

    def check_printable(self, text):
        self.assertNotRegex(text, "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\udc80-\udcff]")

    def test_hostile_names(self):
        """A path, a process's name and its arguments: in messages, in the live view and at the end."""
        folder = f"{self.folder}/{HOSTILE}"
        os.mkdir(folder)
        os.symlink(LIBRARY, f"{folder}/libcuda.so.1")
        with open(f"{folder}/libcuda.so.2", "wb") as file:
            file.write(b"no library")
        os.symlink(f"{WORKLOADS}/fake_calls", f"{folder}/{HOSTILE}")
        path = f"{folder}/{HOSTILE}.jsonl"
        command = [f"{folder}/{HOSTILE}", "--library", f"{folder}/libcuda.so.1", "setup; print \\xff\\xc2\\x9b; malloc a 1"]
        for view in ([], ["--live"]):
            done = self.run_cudabpf("run", *view, "-o", path, "--profile", "full",
                                    "--library", f"{folder}/libcuda.so.2", "--library", f"{folder}/libcuda.so.1", "--", *command)
            text = done.stderr.decode()
            self.assertEqual(done.returncode, 0, text)
            self.assertIn("?[2J??2J?txt.exe", text)
            self.assertIn("is not traced", text)
            self.check_printable(text)
            with open(path, encoding="utf-8") as file:  # must be safe to show on a terminal
                self.check_printable(file.read())
            trace = self.read(path)
            self.check_law(trace)
            self.assertIn(HOSTILE, trace.process("start", trace.calls[0]["pid"])[0]["cmdline"])
            copied, = re.findall(r"cudabpf summary --all (\$'.*')$", text, re.M)
            file = subprocess.run(["bash", "-c", f"cat {copied}"], check=True, stdout=subprocess.PIPE).stdout
            self.assertEqual(file.decode().count("\n"), len(trace.lines))
        for arguments in (["run", "-o", f"{self.folder}/none/{HOSTILE}", "--", "true"], [f"--{HOSTILE}"], [HOSTILE],
                          ["summary", f"{self.folder}/{HOSTILE}/none"], ["run", "--", f"/none/{HOSTILE}"], ["doctor"],
                          ["attach", "--name", HOSTILE], ["--duration", HOSTILE], ["--library", HOSTILE, "--duration", "1ms"]):
            done = self.run_cudabpf(*arguments, env=dict(self.environment(), LD_LIBRARY_PATH=folder))
            self.check_printable(done.stdout.decode() + done.stderr.decode())
            self.assertIn("?[2J??2J?txt.exe", done.stdout.decode() + done.stderr.decode(), arguments)

    # --- a terminal that takes nothing

    def storm(self, *flags):
        return ["sh", "-c", 'exec "$@" > /dev/null 2>&1', "sh", f"{WORKLOADS}/fake_storm", "--library", LIBRARY, *flags]

    def has_end(self):
        with open(self.path, "rb") as file:
            file.seek(max(0, os.path.getsize(self.path) - 4096))
            return b'\n{"type":"end"' in file.read()

    def check_stopped(self, *flags):
        """The trace is complete and the probes are gone while the terminal still takes nothing."""
        terminal = Terminal(self)
        terminal.press(STOP)
        tracer = self.start_on(terminal, "run", "-o", self.path, "--profile", "full", "--library", LIBRARY, *flags, "--",
                               *self.storm("--count", "40000", "--rate", "40000"))
        wait_for(self.has_end, "the trace's end")
        self.check_whole(self.read())
        self.check_gone()
        self.assertEqual(terminal.text, b"")
        self.assertIsNone(tracer.process.poll())  # it has a summary to show
        return terminal, tracer

    def test_live_stopped(self):
        """Ctrl-S stops the display and nothing else; missed events are counted."""
        terminal, tracer = self.check_stopped("--live")
        terminal.press(GO)
        self.assertEqual(tracer.wait(), 0)
        wait_for(lambda: "cudabpf schema" in terminal.output(), "a summary")
        text = terminal.output()
        shown = len(re.findall(r"^ +\d+\.\d{6}  ", text, re.M))
        missed = sum(int(count.replace(",", "")) for count in re.findall(r"… ([\d,]+) more", text))
        trace = self.read()
        self.assertGreater(missed, 20000)
        self.assertEqual(shown + missed, len(trace.calls) + len(trace.processes) + len(trace.libraries))

    def test_status_stopped(self):
        terminal, tracer = self.check_stopped()
        terminal.press(GO)
        self.assertEqual(tracer.wait(), 0)
        wait_for(lambda: "cudabpf schema" in terminal.output(), "a summary")
        self.assertLessEqual(terminal.output().count("tracing for"), 1)  # a hint may have come first and filled it

    def test_summary_stopped(self):
        """A signal ends it even if the terminal never takes anything, and the status says what it did."""
        for number in (signal.SIGTERM, signal.SIGINT):
            _, tracer = self.check_stopped()
            tracer.signal(number)
            self.assertEqual(tracer.wait(SOON), 0)
            self.setUp()

    # --- a reader that does not read the trace

    def start_unread(self, target, *flags, stdout=subprocess.PIPE):
        return self.start([CUDABPF, "attach", "--pid", str(target.pid), "-o", "-", "--profile", "full",
                           "--library", LIBRARY, *flags], stdout=stdout)

    def target(self, script="setup; loop 60000 { sync }; read"):
        """The program has not begun; its requests to the driver so far are in no trace."""
        target = self.start(calls(f"print ready; read; {script}"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            env=self.unlogged())
        self.assertEqual(target.process.stdout.readline(), b"ready\n")
        self.before = self.total()
        return target

    @staticmethod
    def has_probes(pid):
        """Whether a tracer with stopped output holds links, and no more of them after a moment."""
        def links():
            found = 0
            for number in os.listdir(f"/proc/{pid}/fdinfo"):
                with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/fdinfo/{number}", encoding="ascii") as file:
                    found += "link_type:" in file.read()
            return found
        before = links()
        time.sleep(0.5)
        return before and links() == before

    def check_unread(self, number, end_of_pipe=None):
        target = self.target()
        options = {} if end_of_pipe is None else {"stdout": end_of_pipe}
        tracer = self.start_unread(target, **options)
        out = tracer.process.stdout.fileno() if end_of_pipe is None else None
        if out is not None:
            wait_for(lambda: select.select([out], [], [], 0)[0], "tracing")
        else:
            wait_for(lambda: self.has_probes(tracer.pid), "probes")
        target.send_line()
        wait_for(lambda: self.total() > 60000, "all calls")
        time.sleep(0.3)
        tracer.signal(number)
        self.assertEqual(tracer.wait(SOON), 124, tracer.stderr())
        self.check_gone()
        target.send_line()
        self.assertEqual(target.wait(), 0)
        self.assertIn("no program reads the trace", tracer.stderr())
        late, = re.findall(r"^  ([\d,]+) events that came after", tracer.stderr(), re.M)
        return tracer, int(late.replace(",", ""))

    def test_pipe_unread(self):
        """The first signal ends it, and every line is in the pipe or counted."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            tracer, lost = self.check_unread(number)
            text = os.read(tracer.process.stdout.fileno(), 1 << 20).decode()
            lines = text.count("\n")
            self.assertGreater(lines, 10)
            self.assertEqual(lines - 1 + lost, self.total() - self.before + 1)  # no header, but the process's line
            self.setUp()

    def test_terminal_unread(self):
        """Standard output may be a terminal, too, and stay as it was for the shell."""
        terminal = Terminal(self)
        terminal.press(STOP)
        _, lost = self.check_unread(signal.SIGTERM, end_of_pipe=terminal.replica)
        self.assertGreater(lost, 50000)
        self.assertFalse(fcntl.fcntl(terminal.replica, fcntl.F_GETFL) & os.O_NONBLOCK)

    def test_pipe_read_late(self):
        """Without a signal, cudabpf waits for the reader, who then gets everything."""
        target = self.target("setup; loop 60000 { sync }")
        tracer = self.start_unread(target)
        wait_for(lambda: select.select([tracer.process.stdout], [], [], 0)[0], "tracing")
        target.send_line()
        self.assertEqual(target.wait(), 0)
        time.sleep(4)
        self.assertIsNone(tracer.process.poll())
        trace = harness.Trace(tracer.process.stdout.read().decode())
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        self.check_law(trace)
        self.assertEqual(len(trace.calls), self.total() - self.before)

    # --- how many signals end it

    def test_many_signals(self):
        """However many signals there are, the status is the documented one."""
        for number in (signal.SIGINT, signal.SIGTERM) * 3:
            self.setUp()
            tracer = self.start_cudabpf("run", "-o", self.path, "--profile", "full", "--library", LIBRARY, "--",
                                        *self.storm("--rate", "2000", "--count", "1600"))
            wait_for(lambda: any(r.counts.get("cuLaunchKernel") for r in self.records().values()), "calling")
            end = time.monotonic() + 0.3
            while time.monotonic() < end and tracer.process.poll() is None:
                tracer.signal(number)
                time.sleep(0.002)
            self.assertEqual(tracer.wait(), 0, tracer.stderr())
            self.assertIn("cudabpf schema", tracer.stderr())
            self.check_law(self.read())
            self.check_gone()
            wait_for(lambda: self.record().counts["cuLaunchKernel"] == 1600 and ended(self.record().pid), "finished")

    # --- odd ends

    def test_closed_and_full(self):
        """Standard error is closed or full: the trace is complete, with nothing else in it."""
        script = "setup; loop 100 { sync }"
        for redirection in ("2>&-", "2>/dev/full", ">&- 2>&-", "<&- >&- 2>&-"):
            for view in ("", "--live"):
                done = subprocess.run(["sh", "-c", f'exec "$@" {redirection}', "sh", CUDABPF, "run", "-o", self.path,
                                       *view.split(), "--profile", "full", "--library", LIBRARY,
                                       "--library", f"{WORKLOADS}/fake_calls", "--", *calls(script)],
                                      env=self.environment(), check=False, timeout=30)
                self.assertEqual(done.returncode, 0, redirection)
                trace = self.read()
                self.check_law(trace)
                self.assertEqual(trace.counts()["cuStreamSynchronize"], 100)

    def test_closed_output(self):
        done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", CUDABPF, "-o", "-", "--duration", "100ms"],
                              env=self.environment(), check=False, stderr=subprocess.PIPE, timeout=30)
        self.assertEqual(done.returncode, 124, done.stderr)

    def test_narrow(self):
        for width in (1, 2, 5, 20):
            for view in ([], ["--live"]):
                terminal = Terminal(self, width)
                tracer = self.start_on(terminal, "run", *view, "-o", self.path, "--library", LIBRARY, "--",
                                       *self.storm("--rate", "2000", "--count", "400"))
                self.assertEqual(tracer.wait(), 0)
                wait_for(lambda: "cudabpf schema" in terminal.output(), "a summary")
                for line in re.split(r"\r\n|\r", terminal.output()):  # what is redrawn stays on its line
                    if "tracing" in line:
                        self.assertLess(len(line.replace("\033[K", "")), width)
                self.check_law(self.read())

    def test_least_ring(self):
        """The longest record fits through the smallest ring that is allowed."""
        name = "n" * 5000
        trace = self.script(f"setup; module m; sleep 200; fails 1 raw cuModuleGetFunction @f m \"{name}\"",
                            "--ring-size", "8K", fake={"FAIL": "cuModuleGetFunction=1@1"})
        call, = trace.named("cuModuleGetFunction")
        self.assertTrue(call["text_cut"])
        for size in ("4K", "4096", "100", "3K"):
            done = self.run_cudabpf("--ring-size", size, "--duration", "1ms", "-o", self.path)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("the least is 8K", done.stderr.decode())


if __name__ == "__main__":
    harness.main()
