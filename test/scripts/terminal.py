"""What a person meets on a terminal: help, the pager, pages of any width. usage: terminal.py CUDABPF [TEST...]
Exit status 77: skipped, with the reason printed."""
import fcntl
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

from became_root import NOBODY, sudo_by, who_became_root

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PLACE = pathlib.Path(tempfile.mkdtemp())  # where any user finds the program and traces
TRACES = [PLACE / trace.name for trace in sorted((ROOT / "traces").glob("*.zst"))]
TRACE = str(PLACE / "h200-gpt2.jsonl.zst")
LONG, SHORT = ["calls", TRACE], ["errors", TRACE]  # than 24 rows
SOON = 60  # seconds; what is waited for takes less than one, but on a busy machine
cudabpf = ""  # pylint: disable=invalid-name


class Terminal:
    """cudabpf on a terminal of its own, with an environment of its own. What it says on standard error goes into a file:
    how far it has read, it may say anywhere."""

    def __init__(self, arguments, environment, width=80, height=24, user=None, program=None, said="/dev/null"):
        program = program or cudabpf
        self.output, self.status = b"", None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.closerange(3, 256)
                os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT, 0o666), 2)
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
                if user is not None and os.geteuid() == 0:
                    os.setgroups([])
                    os.setgid(user)
                    os.setuid(user)
                os.execve(program, [program, *arguments], environment)
            finally:
                os._exit(99)

    def read(self):
        """Whether there may be more."""
        if not select.select([self.fd], [], [], 0.1)[0]:
            return True
        try:
            self.output += os.read(self.fd, 65536)
        except OSError:  # no process has the terminal open any more
            return False
        return True

    def until(self, text):
        end = time.monotonic() + SOON
        while text.encode() not in self.output:
            if not self.read() or time.monotonic() > end:
                raise AssertionError(f"{text!r} did not come, but {self.output.decode(errors='replace')!r}")

    def press(self, keys):
        os.write(self.fd, keys.encode())

    def press_until(self, keys, text):
        """Again and again: what is pressed while a pager draws may be lost."""
        end = time.monotonic() + SOON
        while text.encode() not in self.output and time.monotonic() < end:
            self.press(keys)
            self.read()
        self.until(text)

    def end(self):
        """-> (what the terminal shows, exit status)"""
        end = time.monotonic() + SOON
        while self.read():
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                raise AssertionError(f"it did not end: {self.output.decode(errors='replace')!r}")
        os.close(self.fd)
        status = os.waitpid(self.pid, 0)[1]
        return self.output.decode().replace("\r\n", "\n"), os.waitstatus_to_exitcode(status)


class OnTerminal(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.folder.chmod(0o777)
        self.marker = self.folder / "marker"
        self.environment = {"PATH": "/usr/bin:/bin", "TERM": "xterm", "LC_ALL": "C.UTF-8", "HOME": str(self.folder)}

    def start(self, arguments, width=80, height=24, user=NOBODY, program=None, said="/dev/null", **environment):
        return Terminal(arguments, {**self.environment, **environment}, width, height, user, program, said)

    def shown(self, arguments, **options):
        text, status = self.start(arguments, **options).end()
        self.assertEqual(status, 0, text)
        return text

    def printed(self, *arguments, **environment):
        """What it prints where there is no terminal."""
        return subprocess.run([cudabpf, *arguments], env={**self.environment, **environment}, check=True, text=True,
                              stdout=subprocess.PIPE).stdout

    def listed(self, which=""):
        """The subcommands that --help lists."""
        groups = re.findall(rf"^Subcommands[^\n]*{which}:\n((?:  .*\n)+)", self.printed("--help"), re.MULTILINE)
        return re.findall(r"^  (\w+)", "".join(groups), re.MULTILINE)

    @staticmethod
    def plain(text):
        return re.sub(r"\033\[[0-9;]*m", "", text)

    def taken(self):
        """What a pager that copies its input was given."""
        text = self.marker.read_text(encoding="utf-8") if self.marker.exists() else None
        self.marker.unlink(missing_ok=True)
        return None if text is None else self.plain(text)

    def fits(self, text, width, what):
        for line in self.plain(text).splitlines():
            self.assertLessEqual(len(line), width, (what, line))


class Pager(OnTerminal):
    def copying(self):
        return f"cat >{self.marker}"

    def test_long_answers_only(self):
        """As long as the screen is too long: the prompt takes a row."""
        expected = self.printed(*LONG, COLUMNS="80")
        rows = expected.count("\n")
        self.assertGreater(rows, 24)
        self.assertEqual(self.shown(LONG, PAGER=self.copying()), "")
        self.assertEqual(self.taken(), expected)
        self.assertEqual(self.shown(LONG, PAGER=self.copying(), height=rows), "")
        self.assertEqual(self.taken(), expected)
        self.assertEqual(self.plain(self.shown(LONG, PAGER=self.copying(), height=rows + 1)), expected)
        self.assertIsNone(self.taken())
        self.assertEqual(self.plain(self.shown(SHORT, PAGER=self.copying())), self.printed(*SHORT, COLUMNS="80"))
        self.assertIsNone(self.taken())

    def test_every_long_answer(self):
        for arguments in (["summary", TRACE], ["memory", TRACE], ["timeline", TRACE], ["kernels", TRACE], ["ioctls", TRACE],
                          ["gaps", TRACE], ["diff", TRACE, TRACE], ["functions"], ["schema"], ["help"], ["help", "run"], ["run", "--help"]):
            with self.subTest(arguments[0]):
                shown = self.shown(arguments, PAGER=self.copying(), height=5)
                self.assertEqual(shown, "")
                self.assertIn("\n", self.taken())

    def test_whose_pager(self):
        for environment in ({"PAGER": "false", "CUDABPF_PAGER": self.copying()}, {"CUDABPF_PAGER": self.copying(), "PAGER": ""}):
            self.assertEqual(self.shown(LONG, **environment), "")
            self.assertIsNotNone(self.taken(), environment)
        for environment in ({"PAGER": ""}, {"PAGER": "cat"}, {"CUDABPF_PAGER": "", "PAGER": self.copying()}, {"PATH": "/none"},
                            {"PAGER": self.copying(), "TERM": "dumb"}, {"PAGER": self.copying(), "TERM": ""}):
            with self.subTest(environment):
                self.assertEqual(self.plain(self.shown(LONG, **environment)), self.printed(*LONG, COLUMNS="80"))
                self.assertIsNone(self.taken())

    def test_not_for_programs(self):
        self.assertEqual(self.shown([*LONG, "--json"], PAGER=self.copying()), self.printed(*LONG, "--json"))
        self.assertGreater(self.shown(["export", "--format", "csv", "-o", "-", TRACE], PAGER=self.copying()).count("\n"), 1000)
        self.assertGreater(self.shown(["functions", "--json"], PAGER=self.copying()).count("\n"), 100)
        self.assertIsNone(self.taken())

    def test_no_such_pager(self):
        text = self.plain(self.shown(LONG, PAGER="no-such-pager", said=str(self.folder / "said")))
        self.assertEqual(text, self.printed(*LONG, COLUMNS="80"))
        self.assertIn("no-such-pager", (self.folder / "said").read_text(encoding="utf-8"))

    def test_its_failure_is_nobodys(self):
        self.assertEqual(self.shown(LONG, PAGER="exit 3"), "")
        self.assertEqual(self.shown(["functions"], width=250, PAGER="exit 3"), "")  # before it has read all: more than a pipe holds

    def test_quit_early(self):
        if not shutil.which("less"):
            self.skipTest("less is not installed")
        for arguments in (LONG, ["functions"]):
            terminal = self.start(arguments, width=250)
            terminal.until("\n:")
            terminal.press("q")
            text, status = terminal.end()
            self.assertEqual(status, 0, text)
            self.assertLess(text.count("\n"), 30)

    def test_interrupted(self):
        """Ctrl-C is the pager's: less goes on, another ends, and so does cudabpf."""
        # exec: what a shell is about to start when Ctrl-C comes would stay, and hold the terminal.
        terminal = self.start(LONG, PAGER=f"touch {self.marker}; echo ready; exec sleep 1000")
        terminal.until("ready")
        terminal.press("\x03")
        self.assertEqual(terminal.end()[1], 0)
        self.assertTrue(self.marker.exists())
        if not shutil.which("less"):
            self.skipTest("less is not installed")
        terminal = self.start(LONG)
        terminal.until("\n:")
        terminal.press("\x03")
        terminal.press_until("G", "(END)")
        terminal.press("q")
        self.assertEqual(terminal.end()[1], 0)

    def test_it_gets_no_files(self):
        """Neither the trace nor anything else but the page."""
        pager = f"readlink /proc/$$/fd/* >{self.marker}"
        for shown in (lambda: self.shown(LONG, PAGER=pager),
                      lambda: self.shown(["-c", f"cat {TRACE} | {cudabpf} calls -"], program="/bin/sh", PAGER=pager)):
            shown()
            files = sorted(self.taken().split())
            self.assertEqual(len([file for file in files if file.startswith("pipe:")]), 1, files)
            for file in files:
                self.assertRegex(file, f"^(pipe:|/dev/pts/|/dev/null|/proc/|{self.marker})")

    def test_through_sudo(self):
        """It runs as the user who called sudo, and can never be more."""
        if os.geteuid() != 0:
            self.skipTest("it takes root to become another user")
        sudo = sudo_by(*who_became_root())
        self.shown(LONG, user=0, PAGER=f"grep -E '^(Uid|Gid|Cap|NoNew)' /proc/self/status >{self.marker}", **sudo)
        fields = dict(line.split(":\t") for line in self.taken().splitlines())
        self.assertEqual((fields["Uid"], fields["Gid"]), ("\t".join([sudo["SUDO_UID"]] * 4), "\t".join([sudo["SUDO_GID"]] * 4)))
        for name, value in fields.items():
            if name.startswith("Cap"):
                self.assertEqual(int(value, 16), 0, name)
        self.assertEqual(fields["NoNewPrivs"], "1")

    def test_with_lent_rights(self):
        """For root, and as another user, it cannot be made to start anything."""
        if os.geteuid() != 0:
            self.skipTest("it takes root to be another user")
        if not shutil.which("less"):
            self.skipTest("less is not installed")
        hostile = {"PAGER": f"touch {self.marker}", "LESS": f"+!touch {self.marker}", "LESSOPEN": f"|touch {self.marker} %s",
                   "EDITOR": f"touch {self.marker};", "SHELL": "/bin/sh", "LESSSECURE": ""}
        for user, environment in ((0, {}), (NOBODY, {"SUDO_UID": "12345"})):
            for keys in (f"!touch {self.marker}\n", f"|$touch {self.marker}\n", f":e {self.marker}\n", f"s{self.marker}\n", "v"):
                with self.subTest(user=user, keys=keys):
                    terminal = self.start(LONG, user=user, **hostile, **environment)
                    terminal.until("\x1b[K")
                    terminal.press(keys + "\n\nqqqq")
                    self.assertEqual(terminal.end()[1], 0)
                    self.assertFalse(self.marker.exists())
            self.assertEqual(self.plain(self.shown(LONG, user=user, **{**hostile, **environment, "PAGER": "cat"})),
                             self.printed(*LONG, COLUMNS="80"))

    def test_with_raised_rights(self):
        """With capabilities of its file it starts nothing."""
        if os.geteuid() != 0 or not shutil.which("setcap"):
            self.skipTest("it takes root and setcap to give a file capabilities")
        program = self.folder / "cudabpf"
        shutil.copy(cudabpf, program)
        if subprocess.run(["setcap", "cap_sys_ptrace=ep", program], check=False, stderr=subprocess.DEVNULL).returncode:
            self.skipTest("files cannot have capabilities here")
        text = self.shown(LONG, program=str(program), PAGER=self.copying())
        self.assertEqual(self.plain(text), self.printed(*LONG, COLUMNS="80"))
        self.assertIsNone(self.taken())


class Help(OnTerminal):
    def test_same(self):
        self.assertEqual(self.printed("help"), self.printed("--help"))
        self.assertEqual(self.printed("version"), self.printed("--version"))
        self.assertGreater(len(self.listed()), 15)
        for subcommand in self.listed():
            self.assertEqual(self.printed("help", subcommand), self.printed(subcommand, "--help"))

    def test_unknown(self):
        for arguments, hint in ((["help", "sumary"], "did you mean summary?"), (["help", "quite-another"], "`cudabpf help` lists"),
                                (["help", "run", "attach"], "`cudabpf help --help`"), (["version", "2"], "`cudabpf version --help`")):
            done = subprocess.run([cudabpf, *arguments], check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertIn(hint, done.stderr)

    def test_width(self):
        """As wide as the terminal, up to 100 columns; only commands and lists of values are never broken."""
        for subcommand in ["", *self.listed()]:
            for width in (40, 60, 80, 200):
                text = self.shown(["help", *([subcommand] if subcommand else [])], width=width, PAGER="")
                longest = max(len(line) for line in text.splitlines() if not re.match(r"  ((sudo |source <\()?cudabpf |--\w+ \S*\|)", line))
                self.assertLessEqual(longest, min(width, 100), subcommand)
                self.assertGreater(longest, min(width, 100) / 2, subcommand)
        self.fits(self.printed("--help"), 80, "--help")
        self.assertLess(len(self.printed("--help").splitlines()), len(self.printed("--help", COLUMNS="60").splitlines()))


class Pages(OnTerminal):
    def test_doctor(self):
        """The verdict comes first; without UTF-8 all of it is ASCII."""
        for width in (40, 80, 200):
            for locale in ("C", "C.UTF-8"):
                text, status = self.start(["doctor"], width=width, LC_ALL=locale).end()
                self.assertIn(status, (0, 120, 121))
                self.fits(text, width, "doctor")
                good, bad = ("ok", "NO") if locale == "C" else ("✓", "✗")
                can = "cudabpf can trace here" if status == 0 else "cudabpf cannot trace here yet: "
                self.assertEqual(self.plain(text).splitlines()[0][:len(good) + 1 + 22], f"{bad if status else good} {can}"[:len(good) + 1 + 22])
                self.assertIn("\033[", text)
                if locale == "C":
                    self.assertTrue(text.isascii(), text)

    def test_without_utf8(self):
        """As many lines, of the same width, and all of it ASCII."""
        for question in (["memory", TRACE], ["timeline", TRACE], ["summary", "--all", TRACE], ["functions"]):
            shown, plain = (self.plain(self.shown(question, width=80, PAGER="", LC_ALL=locale)) for locale in ("C.UTF-8", "C"))
            self.assertFalse(shown.isascii(), question)
            self.assertTrue(plain.isascii(), question)
            self.assertEqual([len(line) for line in plain.splitlines()], [len(line) for line in shown.splitlines()], question)

    def test_any_width(self):
        """No line is wider than the terminal."""
        questions = [[subcommand, str(trace)] for trace in TRACES
                     for subcommand in self.listed("that read traces") if subcommand not in ("diff", "report", "export", "serve", "merge")]
        self.assertGreater(len(questions), 7 * len(TRACES))
        questions += [["diff", str(TRACES[0]), str(trace)] for trace in TRACES[1:]]
        questions += [["timeline", TRACE, "--from", "15.15s", "--to", "15.152s"], ["errors", "--all", TRACE], ["functions"]]
        for question in questions:
            for width in (40, 60, 200):
                self.fits(self.shown(question, width=width, PAGER=""), width, question)


if __name__ == "__main__":
    PLACE.chmod(0o755)
    for original in (sys.argv.pop(1), *(ROOT / "traces").glob("*.zst")):
        shutil.copy(original, PLACE)
    cudabpf = str(PLACE / "cudabpf")
    try:
        ran = unittest.main(exit=False, verbosity=1)
    finally:
        shutil.rmtree(PLACE)
    for _, reason in ran.result.skipped:
        print(f"SKIPPED: {reason}")
    sys.exit(1 if not ran.result.wasSuccessful() else 77 if ran.result.skipped else 0)
