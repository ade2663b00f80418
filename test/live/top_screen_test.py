"""The interactive screen of `cudabpf top`, on a terminal of tmux's: what it shows is what the simulated driver counted,
its keys do what they say, and however it ends, the terminal is as it was before."""
import contextlib
import os
import re
import shlex
import signal
import subprocess
import time

import harness
import tmux
from harness import CUDABPF, LIBRARY, PATIENCE, calls, ended, wait_for

HOSTILE = "\033[2J\033]0;x\007\u202e"
NUMBER = r"([\d,]+)"


class Live(harness.LiveTest):
    def terminal(self, width=80, height=24, **environment):
        env = {**self.environment(LOG=None), **environment}
        return tmux.Terminal(self, self.folder, {key: value for key, value in env.items() if value is not None}, width, height)

    def worker(self, name, pause, size="64K", waits=False):
        """A process that makes calls for as long as the test lasts, from the start, or once it is sent a line."""
        script = f"comm {name}; {'read; ' if waits else ''}setup; malloc a {size}; loop 100000 {{ sync; sleep {pause} }}"
        process = self.start(calls(script), env=self.environment(LOG=None), stdin=-1)

        def has_name():
            with open(f"/proc/{process.pid}/comm", encoding="utf-8", errors="replace") as file:
                return file.read() == f"{name}\n"
        wait_for(has_name, f"{name}'s name")
        process.waits = waits
        return process

    def top(self, terminal, *arguments, interval="200ms", end=""):
        """Starts top there, and writes down its process id and the terminal's modes before and after."""
        command = ["top", "--profile", "full", "--library", LIBRARY, "--interval", interval, *map(str, arguments)]
        self.modes = [f"{self.folder}/before", f"{self.folder}/after"]
        pid_file = f"{self.folder}/pid"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(pid_file)
        script = f"{self.folder}/start"
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"echo $$ > {pid_file}; exec {shlex.join([CUDABPF, *command])}\n")
        terminal.run(f"stty -g > {self.modes[0]}; sh {script} {end}")
        wait_for(lambda: tmux.exists(pid_file), "a process")
        with open(pid_file, encoding="utf-8") as file:
            self.pid = int(file.read())
        self.addCleanup(self.kill)

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def is_stopped(self):
        with open(f"/proc/{self.pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] == "T"

    def watched(self, *processes, width=80, height=24, **environment):
        """A terminal where top shows these."""
        terminal = self.terminal(width, height, **environment)
        self.top(terminal, "--pid", ",".join(str(process.pid) for process in processes))
        for process in processes:
            terminal.wait_for(lambda one=process: self.row(terminal, one.pid), f"a row of {process.pid}")
        for process in processes:
            if process.waits:
                process.send_line()
        self.assertTrue(terminal.is_taken())
        return terminal

    @staticmethod
    def row(terminal, pid):
        """What follows a process's name, or nothing."""
        for line in terminal.lines():
            if re.match(rf" *{pid} ", line):
                return line.split()
        return None

    def order(self, terminal, processes):
        pids = [int(line.split()[0]) for line in terminal.lines() if re.match(r" *\d+ \w", line)]
        return [pid for pid in pids if pid in {process.pid for process in processes}]

    def check_as_before(self, terminal):
        """The prompt is back on the main screen, with a cursor, and the terminal's modes are what they were."""
        wait_for(lambda: ended(self.pid), "ended")
        terminal.wait_for(terminal.is_free, "a terminal as before")
        terminal.run(f"stty -g > {self.modes[1]}; echo st''ill here")
        terminal.until("still here")
        before, after = [open(path, encoding="utf-8").read() for path in self.modes]  # pylint: disable=consider-using-with
        self.assertEqual(before, after)
        self.check_gone()

    # --- what is shown

    def test_counts(self):
        """All calls of each process, its errors, and the memory that it holds and held."""
        script = ("setup; malloc a 3M; malloc b 2M; free b; module m; function f m kernel; loop 5000 { launch f 1 1 1 1 1 1 0 }; "
                  "loop 1234 { sync }; loop 321 { query }; print done; sleep 600000")
        target = self.start(calls(f"read; {script}"), stdin=-1, stdout=-1, env=self.environment(LOG=None))
        terminal = self.terminal(160, 40)
        self.top(terminal, "--pid", target.pid, "--kernels", interval="400ms")
        terminal.until("no process has called CUDA yet")
        before = self.total()
        target.send_line()
        self.assertEqual(target.process.stdout.readline(), b"done\n")
        made = self.total() - before
        self.assertGreater(made, 6500)
        text = terminal.until(f"{made:,}")
        titles = next(line for line in text.split("\n") if "CALLS/S" in line and "PID" in line)
        row = next(line for line in text.split("\n") if re.match(rf" *{target.pid} ", line))
        end = titles.index("TOTAL") + len("TOTAL")
        self.assertEqual(row[end - 8:end].strip(), f"{made:,}")
        self.assertIn("3.00 MiB", row[:titles.index("HELD") + 4])
        self.assertIn("5.00 MiB", row[titles.index("HELD") + 4:titles.index("PEAK") + 4])
        self.assertNotIn("LOST", text)
        terminal.press("q")
        self.check_as_before(terminal)
        for books in ("entered", "begun", "balance"):  # books that balance need no attention
            self.assertNotIn(books, terminal.shown())

    def test_rates(self):
        """Functions have the parts that they have of the driver's count, all in one interval."""
        target = self.start(calls("read; setup; loop 6000 { sync; query; query }; print done; sleep 600000"), stdin=-1, stdout=-1,
                            env=self.environment(LOG=None))
        terminal = self.terminal(120, 40)
        self.top(terminal, "--pid", target.pid, interval="6s")
        terminal.until("no process has called CUDA yet")
        target.send_line()
        self.assertEqual(target.process.stdout.readline(), b"done\n")
        counts = self.records()[target.pid].counts
        text = terminal.until("cuStreamQuery")
        rates = {name: int(rate.replace(",", "")) for name, rate in re.findall(rf"^(cuStream\w+) +{NUMBER} ", text, re.M)}
        seconds = counts["cuStreamQuery"] / rates["cuStreamQuery"]
        self.assertGreater(seconds, 5.9)
        self.assertLess(seconds, 6 + PATIENCE)
        self.assertAlmostEqual(rates["cuStreamSynchronize"], counts["cuStreamSynchronize"] / seconds, delta=1)
        terminal.press("F10")
        self.check_as_before(terminal)

    def test_kernels(self):
        """By name, with --kernels; without, launches are only counted."""
        script = "module m; function f m my_kernel; loop 100000 { launch f 1 1 1 1 1 1 0; sleep 5 }"
        terminal = self.terminal(100, 30)
        self.top(terminal, "--kernels", "--", *calls(f"setup; {script}"))
        self.assertRegex(terminal.until("my_kernel"), r"kernels +LAUNCH/S")
        terminal.press("q")
        self.check_as_before(terminal)
        self.assertIn("runs on, untraced", terminal.shown())
        self.end_calls()

    def test_inside(self):
        """The same page without eBPF: all calls are recorded there, so kernels are known."""
        if not os.path.exists(harness.INSIDE_LIBRARY):
            self.skipTest("the library inside is not built for this machine")
        terminal = self.terminal(100, 30)
        self.top(terminal, "--inside", "--", *calls("setup; module m; function f m my_kernel; malloc a 3M; "
                                                    "loop 100000 { launch f 1 1 1 1 1 1 0; sleep 5 }"))
        terminal.until("my_kernel")
        terminal.until("3.00 MiB")
        terminal.press("C-c")
        self.check_as_before(terminal)

    def end_calls(self):
        """A command that runs on."""
        pids = list(self.records())
        self.assertTrue(pids)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def test_command(self):
        """It does not write on the page, and its end ends it; its status is the status."""
        terminal = self.terminal()
        self.top(terminal, "--", *calls("print disturbing; setup; loop 100 { sync; sleep 10 }; print disturbing; exit 7"),
                 end="; echo sta''tus=$?")
        terminal.wait_for(terminal.is_taken, "a page")
        text = terminal.until("status=7")
        self.assertNotIn("disturbing", text)
        self.check_as_before(terminal)
        self.assertNotIn("balance", text)

    def test_hostile_name(self):
        """A process's name moves no cursor, changes no title, and does not reverse the line."""
        os.makedirs(f"{self.folder}/bin")
        program, *arguments = calls("setup; loop 100000 { sync; sleep 10 }")
        os.symlink(program, f"{self.folder}/bin/{HOSTILE}")
        hostile = self.start([f"{self.folder}/bin/{HOSTILE}", *arguments], env=self.environment(LOG=None))
        hostile.waits = False
        terminal = self.watched(hostile)
        self.assertIn("?[2J?]0;x?", terminal.shown())
        self.assertTrue(terminal.shown().startswith("cudabpf top"))
        terminal.press("q")
        self.check_as_before(terminal)

    def test_colours(self):
        target = self.worker("worker", 10)
        coloured = r"\033\[([0-9]*;)*(3[0-7]|9[0-7])[;m]"
        terminal = self.watched(target)
        self.assertRegex(terminal.shown(colours=True), coloured)
        terminal.press("q")
        self.check_as_before(terminal)
        terminal.run("export NO_COLOR=1")
        self.top(terminal, "--pid", target.pid)
        terminal.wait_for(lambda: self.row(terminal, target.pid), "a row")
        self.assertNotRegex(terminal.shown(colours=True), coloured)
        terminal.press("q")
        self.check_as_before(terminal)

    def test_without_utf8(self):
        target = self.worker("worker", 5)
        terminal = self.watched(target, LC_ALL="C")
        text = terminal.until("cuStreamSynch")
        self.assertTrue(text.isascii(), text)

    # --- keys

    def three(self):
        """They allocate once they are watched: what they had before is not known."""
        return [self.worker("alpha", 5, "1M", True), self.worker("beta", 40, "3M", True), self.worker("gamma", 300, "2M", True)]

    def sort_by(self, terminal, title, open_with):
        terminal.press(open_with)
        terminal.until("sort by")
        terminal.press("Home")
        rows = [line.split()[0] if line[0] != ">" else line.split()[1]
                for line in terminal.lines() if re.match(r"[> ] [A-Z]", line)]
        terminal.press(*["Down"] * rows.index(title), "Enter")
        terminal.until("PID NAME")

    def test_sorting(self):
        processes = self.three()
        alpha, beta, gamma = (process.pid for process in processes)
        terminal = self.watched(*processes)

        def until_order(*pids):
            terminal.wait_for(lambda: self.order(terminal, processes) == list(pids), f"order {pids}")
        self.sort_by(terminal, "CALLS/S", "F6")
        until_order(alpha, beta, gamma)
        self.sort_by(terminal, "HELD", "<")
        until_order(beta, gamma, alpha)
        terminal.press("I")
        until_order(alpha, gamma, beta)
        terminal.press("R")
        until_order(beta, gamma, alpha)
        self.sort_by(terminal, "NAME", ">")
        until_order(alpha, beta, gamma)
        terminal.press("q")
        self.check_as_before(terminal)

    def selected(self, terminal):
        """The process whose functions are shown."""
        found = re.search(r"functions of (\d+)", terminal.shown())
        return int(found[1]) if found else None

    def test_selecting(self):
        processes = self.three()
        terminal = self.watched(*processes)
        self.sort_by(terminal, "NAME", "F6")
        alpha, beta, gamma = (process.pid for process in processes)
        for key, pid in (("Down", beta), ("j", gamma), ("Down", gamma), ("k", beta), ("Up", alpha), ("End", gamma), ("Home", alpha),
                         ("PageDown", gamma), ("PageUp", alpha)):
            terminal.press(key)
            terminal.wait_for(lambda wanted=pid: self.selected(terminal) == wanted, f"{pid} after {key}")
        terminal.press("End")
        self.sort_by(terminal, "CALLS/S", "F6")  # it stays selected
        terminal.wait_for(lambda: self.selected(terminal) == gamma, "gamma")
        terminal.press("/", "b", "e", "Enter")
        terminal.wait_for(lambda: self.selected(terminal) == beta, "beta")
        terminal.press("F3", "Escape")
        terminal.press("q")
        self.check_as_before(terminal)

    def test_filter(self):
        processes = self.three()
        alpha, beta, gamma = (process.pid for process in processes)
        terminal = self.watched(*processes)
        terminal.press("F4")
        terminal.until("Filter: ")
        terminal.type("ET")
        terminal.wait_for(lambda: self.order(terminal, processes) == [beta], "beta alone")
        terminal.press("Enter")
        terminal.until("only ET")
        terminal.press("\\", "Escape")
        terminal.until_not("only")
        terminal.wait_for(lambda: set(self.order(terminal, processes)) == {alpha, beta, gamma}, "all")
        terminal.press("q")
        self.check_as_before(terminal)

    def test_pause(self):
        target = self.worker("worker", 5)
        terminal = self.watched(target)
        for key in ("Space", "p", "z", "Z"):
            terminal.press(key)
            paused = terminal.until("PAUSED")
            time.sleep(0.6)
            self.assertEqual(terminal.shown(), paused)
            terminal.press(key)
            terminal.until_not("PAUSED")
            terminal.wait_for(lambda before=paused: terminal.shown() != before, "going on")
        terminal.press("q")
        self.check_as_before(terminal)

    def test_expand(self):
        terminal = self.terminal()
        self.top(terminal, "--", *calls("setup; malloc a 3M; malloc b 1M; loop 100000 { sync; sleep 10 }"))
        terminal.until("4.00 MiB")
        for key in ("Enter", "+"):
            terminal.press(key)
            self.assertRegex(terminal.until("GPU 0"), r"GPU 0 +4\.00 MiB +4\.00 MiB")
            terminal.press(key)
            terminal.until_not("GPU 0")
        terminal.press("q")
        self.check_as_before(terminal)
        self.end_calls()

    def test_columns_and_help(self):
        target = self.worker("worker", 10)
        terminal = self.watched(target)
        terminal.press("F2", "Home", "Down", "Down", "Space", "Escape")
        terminal.until_not("CALLS/S  LAUNCH")
        terminal.press("C", "Down", "Down", "Enter", "F2")
        terminal.until("CALLS/S  LAUNCH")
        for key in ("F1", "?", "h"):
            terminal.press(key)
            terminal.until("draw all of it again")
            terminal.press("q")
            terminal.until("PID NAME")
        terminal.tmux("send-keys", "-R")  # what was drawn is gone
        terminal.press("C-l")
        terminal.until("PID NAME")
        terminal.press("q")
        self.check_as_before(terminal)

    def test_resizing(self):
        target = self.worker("worker", 10)
        terminal = self.watched(target)
        terminal.resize(40, 10)
        terminal.wait_for(lambda: any(re.search(r"PID NAME +CALLS/S CUDA%.$", line) for line in terminal.lines()), "fewer columns")
        self.assertLessEqual(max(map(len, terminal.lines())), 40)
        self.assertTrue(self.row(terminal, target.pid))
        terminal.resize(30, 8)
        terminal.until("too small")
        terminal.resize(120, 30)
        terminal.until("FROM GPU/S")
        terminal.resize(80, 24)
        terminal.until_not("FROM GPU/S")
        terminal.press("q")
        self.check_as_before(terminal)

    # --- ends

    def test_ctrl_c(self):
        """It goes to the command and ends it; the second one ends top."""
        terminal = self.terminal()
        self.top(terminal, "--", *calls("setup; loop 100000 { sync; sleep 5 }"), end="; echo sta''tus=$?")
        terminal.until("cuStreamSynch")
        terminal.press("C-c")
        terminal.until("status=130")
        self.check_as_before(terminal)
        target = self.worker("worker", 10)
        self.top(terminal, "--pid", target.pid)
        terminal.wait_for(lambda: self.row(terminal, target.pid), "a row")
        terminal.press("C-c")
        self.check_as_before(terminal)

    def test_stopped_and_continued(self):
        target = self.worker("worker", 10)
        terminal = self.watched(target)
        for _ in range(2):
            terminal.press("C-z")
            terminal.until("Stopped")
            terminal.wait_for(terminal.is_free, "free")
            terminal.run("echo me''anwhile")
            terminal.until("meanwhile")
            terminal.run("fg")
            terminal.wait_for(terminal.is_taken, "taken")
            terminal.until("F10Quit")
            terminal.wait_for(lambda: self.row(terminal, target.pid), "a row")
        os.kill(self.pid, signal.SIGSTOP)  # this time it could not give the terminal back
        wait_for(self.is_stopped, "stopped")
        terminal.run("fg")
        terminal.wait_for(lambda: terminal.is_taken() and "F10Quit" in terminal.shown(), "going on")
        terminal.press("q")
        self.check_as_before(terminal)

    def test_background(self):
        """It draws once it is in the foreground, and is not stopped before."""
        target = self.worker("worker", 10)
        terminal = self.terminal()
        self.top(terminal, "--pid", target.pid, end="&")
        time.sleep(1.5)
        self.assertFalse(self.is_stopped())
        self.assertTrue(terminal.is_free())
        terminal.run("fg")
        terminal.wait_for(terminal.is_taken, "taken")
        terminal.wait_for(lambda: self.row(terminal, target.pid), "a row")
        terminal.press("q")
        self.check_as_before(terminal)

    def test_signals(self):
        """Signals that request its end, and those of crashes."""
        target, terminal = self.worker("worker", 10), self.terminal()
        for number, status in ((signal.SIGTERM, 0), (signal.SIGHUP, 0), (signal.SIGSEGV, 139), (signal.SIGABRT, 134),
                               (signal.SIGUSR1, 138)):
            with self.subTest(number):
                terminal.run("clear")
                self.top(terminal, "--pid", target.pid, end="; echo sta''tus=$?")
                terminal.wait_for(lambda: self.row(terminal, target.pid), "a row")
                os.kill(self.pid, number)
                terminal.until(f"status={status}")
                self.check_as_before(terminal)

    def test_command_killed(self):
        terminal = self.terminal()
        self.top(terminal, "--", *calls("setup; loop 100000 { sync; sleep 5 }"), end="; echo sta''tus=$?")
        terminal.until("cuStreamSynch")
        self.end_calls()
        terminal.until("status=137")
        self.check_as_before(terminal)

    def test_stuck_terminal(self):
        """Ctrl-S stops the page, and neither the capture nor its end."""
        target = self.worker("worker", 1)
        terminal = self.watched(target)
        terminal.press("C-s")
        stuck = terminal.shown()
        time.sleep(1.5)
        self.assertEqual(terminal.shown(), stuck)
        os.kill(self.pid, signal.SIGTERM)
        wait_for(lambda: ended(self.pid), "ended", 8)
        self.check_as_before(terminal)

    def test_messages(self):
        """They are on the page, do not destroy it, and are on the main screen afterwards."""
        terminal = self.terminal(100, 30)
        self.top(terminal, "--", "sh", "-c", shlex.join(calls("setup; loop 100000 { sync; sleep 10 }")) + " & sleep 0.5")
        terminal.until("still running and traced until Ctrl-C")
        self.assertTrue(terminal.is_taken())
        terminal.press("q")
        self.check_as_before(terminal)
        self.assertIn("still running and traced until Ctrl-C", terminal.shown())
        self.end_calls()

    def test_write(self):
        """w writes what is kept, and says where, and q ends it; without --keep-last w says what it takes."""
        target = self.worker("worker", 10)
        path = f"{self.folder}/kept.jsonl.zst"
        terminal = self.terminal(120, 30)
        self.top(terminal, "--keep-last", "30s", "-o", path, "--pid", target.pid)
        terminal.wait_for(lambda: self.row(terminal, target.pid), "a row")
        terminal.until("w or `kill -USR1")
        terminal.press("w")
        terminal.until("written: ")
        self.assertTrue(terminal.is_taken())
        terminal.press("w", "q")  # at once: both are done
        self.check_as_before(terminal)
        for written in (path, path.replace(".jsonl", "-2.jsonl")):
            done = subprocess.run(["zstd", "-dcq", written], check=True, stdout=subprocess.PIPE)
            trace = harness.Trace(done.stdout.decode())
            self.assertEqual(trace.end["reason"], "asked")
            self.assertGreater(len(trace.named("cuStreamSynchronize")), 1)
        terminal = self.watched(target, width=120, height=30)
        terminal.press("w")
        terminal.until("w writes what --keep-last keeps")
        terminal.press("q")
        self.check_as_before(terminal)

    # --- where it is not

    def test_text(self):
        """On a terminal that cannot be drawn on, without a terminal, and on request: as text."""
        target = self.worker("worker", 10)
        terminal = self.terminal(200, 40)
        for before, flags in (("TERM=dumb", ""), ("TERM=", ""), ("", "--once"), ("", "--json")):
            terminal.run("clear")
            terminal.run(f"{before} {CUDABPF} top --profile full --library {LIBRARY} --interval 200ms {flags} --pid {target.pid}"
                         f"{'' if flags == '--once' else ' --duration 1s'}; echo all do''ne")
            text = " ".join(terminal.until("all done").split())  # lines break anywhere
            self.assertFalse("F10Quit" in text)
            self.assertIn('"accounts"' if flags == "--json" else "calls/s", text)
            self.assertNotIn("balance", text)
            self.assertLessEqual(text.count("hidden columns"), 1)
        terminal.run("clear")
        terminal.run(f"{CUDABPF} top --library {LIBRARY} --duration 1s --pid {target.pid} < /dev/null | tail -n 3; echo all do''ne")
        self.assertIn(f"{target.pid} worker", " ".join(terminal.until("all done").split()))


if __name__ == "__main__":
    harness.main()
