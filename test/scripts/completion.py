"""Asks bash, zsh and fish themselves what they offer for a command line. usage: completion.py CUDABPF [TEST...]
Exit status 77: skipped, with the reason printed."""
import contextlib
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
cudabpf = ""  # pylint: disable=invalid-name

# The words, as readline splits them, come in $words.
BASH_ASKS = r"""
source "$script" || exit 1
ask() {
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE=$* COMP_POINT=${#COMP_LINE}
  _cudabpf
  printf '%s\n' "${COMPREPLY[@]}"
}
"""
# What zsh is about to offer goes through compadd; so does what its functions only ask for.
ZSH_ASKS = r"""
PROMPT='' ; LISTMAX=0
autoload -Uz compinit && compinit -D -u
source $script
compadd() {
  if [[ ${@[1,(i)(-|--)]} == *-[a-zA-Z]#(O|A|D)* ]]; then builtin compadd "$@"; return; fi
  typeset -a hits described
  local named=${@[(I)-d]}
  if (( named )); then
    named=${@[named+1]}
    if [[ $named == \(* ]]; then eval "described=$named"; else described=("${(@P)named}"); fi
  fi
  builtin compadd -A hits -D described "$@"
  typeset -A path_of
  zparseopts -E p:=path_of P:=path_of
  local i
  for (( i = 1; i <= $#hits; i++ )); do print -r -- "${path_of[-p]}$hits[i]"$'\t'"$described[i]" >>$told; done
  builtin compadd "$@"
}
collect() { _main_complete; compstate[list]= compstate[insert]= }
zle -C collect list-choices collect
setopt extendedglob
zle-line-init() {
  local line
  for line in "${(@f)$(<$asked)}"; do
    print -r -- "asked $line" >>$told
    BUFFER=$line CURSOR=${#line}
    zle collect
  done
  exit
}
zle -N zle-line-init
"""


class Completion:
    """The same questions for every shell; ask() returns what is offered: {word: description or ""}."""
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        if not shutil.which(cls.shell):
            raise unittest.SkipTest(f"{cls.shell} is not installed; scripts/setup installs it")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.work = self.folder / "work"
        self.work.mkdir()
        self.script = self.folder / "script"
        self.script.write_text(self.printed("completion", self.shell), encoding="utf-8")
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LC_ALL": "C.UTF-8", "TERM": "vt100",
                            "script": str(self.script)}

    def printed(self, *arguments):
        return subprocess.run([cudabpf, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout

    def ask(self, line):
        """What is offered for the last word of a line."""
        return self.ask_all([line])[line]

    def offered(self, line):
        return sorted(word.replace("\\", "").rstrip("/ ") for word in self.ask(line))

    def start(self, name):
        """A process of that name that runs until the test ends; returns its pid."""
        program = self.folder / name
        program.symlink_to(shutil.which("sleep"))
        started = subprocess.Popen([program, "1234"])  # pylint: disable=consider-using-with
        self.addCleanup(started.wait)
        self.addCleanup(started.terminate)
        return str(started.pid)

    def test_subcommands(self):
        told = self.printed("--help").split("\nSubcommands", 1)[1].split("\nExamples", 1)[0]
        listed = re.findall(r"^  (\w+) ", told, re.MULTILINE)
        self.assertGreater(len(listed), 12)
        self.assertEqual([word for word in self.offered("cudabpf ") if not word.startswith("-")], sorted(listed))
        self.assertEqual(self.offered("cudabpf su"), ["summary"])
        self.assertEqual(self.offered("cudabpf --duration 3s --kernel su"), ["summary"])

    def test_help(self):
        """Of every subcommand, and of nothing else."""
        subcommands = [word for word in self.offered("cudabpf ") if not word.startswith("-")]
        self.assertIn("version", subcommands)
        self.assertEqual(self.offered("cudabpf help "), subcommands)
        self.assertEqual(self.offered("cudabpf help su"), ["summary"])

    def test_options(self):
        """As many as --help has, of each subcommand."""
        subcommands = [word for word in self.offered("cudabpf ") if not word.startswith("-")]
        lines = {f"cudabpf {subcommand} --": subcommand for subcommand in subcommands}
        for line, offered in self.ask_all(list(lines)).items():
            with self.subTest(line):
                known = set(re.findall(r"^  (?:-\w,)?(--[a-z-]+)", self.printed(lines[line], "--help"), re.MULTILINE))
                self.assertEqual({word.rstrip("= ") for word in offered if word.startswith("--") and word != "--"},
                                 known)
        self.assertIn("--pid", [word.rstrip("=") for word in self.offered("cudabpf attach --p")])

    def test_values(self):
        for option, line in (("--profile", "cudabpf run --profile "), ("--profile", "cudabpf --profile "),
                             ("--profile", "cudabpf functions --profile "), ("--by", "cudabpf calls --by "),
                             ("--by", "cudabpf ioctls t.jsonl --by "), ("--by", "cudabpf diff --by "),
                             ("--by", "cudabpf kernels --by "), ("--format", "cudabpf export --format "),
                             ("shell", "cudabpf completion ")):
            subcommand = line.split()[1]
            told = self.printed(*([] if subcommand.startswith("-") else [subcommand]), "--help")
            words = re.search(rf"^  {option} ([a-z|]+)", told, re.MULTILINE)[1].split("|")
            with self.subTest(line):
                self.assertEqual(self.offered(line), sorted(words))
        self.assertEqual(self.offered("cudabpf export --format p"), ["perfetto"])
        self.assertEqual([word.removeprefix("--format=") for word in self.offered("cudabpf export --format=p")],
                         ["perfetto"])

    def test_features(self):
        source = (ROOT / "src/collect/bpf/features.hpp").read_text(encoding="utf-8")
        names = sorted(re.findall(r'const char\* [A-Z_]+ = "(\w+)"', source))
        self.assertEqual(len(names), 10)
        for line in ("cudabpf run --no-feature ", "cudabpf attach --no-feature ", "cudabpf --no-feature "):
            self.assertEqual(self.offered(line), names)
        self.assertEqual(self.offered("cudabpf run --no-feature sleepable --no-feature x"), ["xid_tracepoint"])

    def test_conditions(self):
        """The measures that a condition may begin with; one condition follows an option, then traces."""
        (self.work / "t.jsonl").touch()
        self.assertEqual(self.offered("cudabpf diff --fail-if launches"), ["launches", "launches-per-iteration"])
        told = self.printed("diff", "--help").split("Measures: ", 1)[1]
        measures = sorted(re.findall(r"(?<![\w-])([a-z][a-z0-9-]+)", told))
        self.assertGreater(len(measures), 24)
        self.assertEqual(self.offered("cudabpf diff --fail-if "), measures)
        self.assertEqual(self.offered("cudabpf diff --fail-if launches>+0 "), ["t.jsonl"])
        self.assertIn("--fail-if", [word.rstrip("=") for word in self.offered("cudabpf diff --fail-if calls>+0 --f")])

    def test_nothing(self):
        """Where no value is known, files would be wrong."""
        (self.work / "t.jsonl").touch()
        for line in ("cudabpf --duration ", "cudabpf calls --top ", "cudabpf run --only ", "cudabpf nonsense ",
                     "cudabpf summary --pid ", "cudabpf export --format z", "cudabpf attach --container 12"):
            with self.subTest(line):
                self.assertEqual(self.offered(line), [])

    def test_traces(self):
        for name in ("a.jsonl", "b.jsonl.zst", "b c.jsonl", "a.txt", "z.txt"):
            (self.work / name).touch()
        (self.work / "traces").mkdir()
        (self.work / "traces/t.jsonl").touch()
        found = ["a.jsonl", "b c.jsonl", "b.jsonl.zst", "traces"]
        for line in ("cudabpf summary ", "cudabpf calls --by pid ", "cudabpf diff ", "cudabpf diff a.jsonl ",
                     "cudabpf diff a.jsonl --to ", "cudabpf export --format csv ", "cudabpf kernels --json "):
            with self.subTest(line):
                self.assertEqual(self.offered(line), found)
        self.assertEqual(self.offered("cudabpf summary a"), ["a.jsonl"])
        self.assertEqual(self.offered("cudabpf summary z"), ["z.txt"])
        self.assertEqual(self.offered("cudabpf summary traces/"), ["traces/t.jsonl"])
        self.assertEqual(self.offered(f"cudabpf summary {self.work}/tr"), [f"{self.work}/traces"])

    def test_files(self):
        for name in ("a.jsonl", "a.txt"):
            (self.work / name).touch()
        for line in ("cudabpf --output ", "cudabpf run -o ", "cudabpf attach --library ", "cudabpf memory --svg ",
                     "cudabpf export a.jsonl --output "):
            with self.subTest(line):
                self.assertEqual(self.offered(line), ["a.jsonl", "a.txt"])

    def test_processes(self):
        pid = self.start("odd-name")
        for line in ("cudabpf attach --pid ", "cudabpf attach -p "):
            offered = self.ask(line)
            self.assertIn(pid, offered)
            self.assertTrue(all(re.fullmatch("[0-9]+", word) for word in offered), offered)
            self.assertNotIn("2" if pathlib.Path("/proc/2/comm").read_text(encoding="utf-8") == "kthreadd\n" else "",
                             offered)
            if self.describes:
                self.assertIn("odd-name 1234", offered[pid])
        several = self.offered(f"cudabpf attach --pid 1,{pid[:-1]}")
        self.assertIn(pid, [word.removeprefix("1,") for word in several])

    def test_programs(self):
        self.start("odd-name")
        self.assertEqual(self.offered("cudabpf attach --name odd"), ["odd-name"])
        self.assertEqual(self.offered("cudabpf attach -n odd-n"), ["odd-name"])

    def test_cgroups(self):
        self.assertEqual(self.offered("cudabpf attach --container "), ["/sys/fs/cgroup"])
        self.assertIn("/sys/fs/cgroup", self.offered("cudabpf attach --container /sys/fs/cgr"))

    def test_users(self):
        self.assertEqual(self.offered("cudabpf run --user roo"), ["root"])

    def test_command(self):
        """What is run is completed as a command, and its words as its own."""
        self.assertIn("sleep", self.offered("cudabpf run -- slee"))
        self.assertIn("sleep", self.offered("cudabpf run --kernel -o x slee"))
        (self.work / "summary.txt").touch()
        for line in ("cudabpf run -- cat su", "cudabpf run --quiet -- cat su", "cudabpf run cat su"):
            with self.subTest(line):
                self.assertEqual(self.offered(line), ["summary.txt"])
        self.assertNotIn("--kernel", self.offered("cudabpf run -- sleep --k"))


class Bash(Completion, unittest.TestCase):
    shell = "bash"
    describes = False

    def ask_all(self, lines):
        offered = {}
        for line in lines:
            words = re.sub("=", " = ", line).split(" ")
            done = subprocess.run(["bash", "--norc", "-c", BASH_ASKS + 'ask "$@"', "bash", *words], cwd=self.work,
                                  env=self.environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), line)
            offered[line] = {word: "" for word in done.stdout.split("\n") if word}
        return offered

    def test_quoted(self):
        (self.work / "b c.jsonl").touch()
        for typed in ("b\\ ", "'b ", '"b'):
            words = ["cudabpf", "summary", typed]
            done = subprocess.run(["bash", "--norc", "-c", BASH_ASKS + 'ask "$@"', "bash", *words], cwd=self.work,
                                  env=self.environment, text=True, stdout=subprocess.PIPE, check=True)
            self.assertEqual(done.stdout, "b c.jsonl\n", typed)

    def test_readline(self):
        """bash itself, with a terminal: Tab inserts what is the only choice."""
        (self.work / "b c.jsonl").touch()
        self.environment["INPUTRC"] = "/dev/null"
        master, slave = pty.openpty()
        with contextlib.closing(os.fdopen(slave)) as terminal:
            with subprocess.Popen(["bash", "--norc", "-i"], stdin=terminal, stdout=terminal, stderr=terminal,
                                  cwd=self.work, env=self.environment, start_new_session=True) as shell:
                for typed in ('cudabpf() { printf "%s|" "$@" >>../told; }\n', 'source "$script"\n',
                              "cudabpf summary b\t\n", "cudabpf export --form\tcs\t b\t\n", "exit\n"):
                    os.write(master, typed.encode())
                shell.wait(timeout=20)
        os.close(master)
        told = (self.folder / "told").read_text(encoding="utf-8")
        self.assertEqual(told, "summary|b c.jsonl|export|--format|csv|b c.jsonl|")

    def test_clean(self):
        if not shutil.which("shellcheck"):
            self.skipTest("shellcheck is not installed; scripts/setup installs it")
        done = subprocess.run(["shellcheck", "--shell=bash", "--severity=warning", self.script], text=True,
                              stdout=subprocess.PIPE, check=False)
        self.assertEqual(done.stdout, "")


class Zsh(Completion, unittest.TestCase):
    shell = "zsh"
    describes = True

    def ask_all(self, lines):
        asked, told = self.folder / "asked", self.folder / "told"
        asked.write_text("\n".join(lines), encoding="utf-8")
        told.write_text("", encoding="utf-8")
        (self.folder / ".zshrc").write_text(ZSH_ASKS, encoding="utf-8")
        master, slave = pty.openpty()
        with contextlib.closing(os.fdopen(slave)) as terminal:
            with subprocess.Popen(["zsh", "-i", "-d"], stdin=terminal, stdout=terminal, stderr=subprocess.PIPE,
                                  cwd=self.work, start_new_session=True, text=True,
                                  env={**self.environment, "ZDOTDIR": str(self.folder), "asked": str(asked),
                                       "told": str(told)}) as shell:
                said = shell.communicate(timeout=60)[1]
        os.close(master)
        self.assertEqual(re.sub(r"\x1b.*?m|\s|%", "", said), "")
        offered = {}
        for line in told.read_text(encoding="utf-8").split("\n")[:-1]:
            if line.startswith("asked "):
                words = offered.setdefault(line.removeprefix("asked "), {})
            else:
                word, _, described = line.partition("\t")
                words[word] = described
        return offered


class Fish(Completion, unittest.TestCase):
    shell = "fish"
    describes = True

    def ask_all(self, lines):
        offered = {}
        for line in lines:
            done = subprocess.run(["fish", "--no-config", "-c", 'source $script; complete -C "$argv"', "--", line],
                                  cwd=self.work, env=self.environment, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), line)
            offered[line] = dict((entry + "\t").split("\t")[:2] for entry in done.stdout.split("\n")[:-1])
        return offered


if __name__ == "__main__":
    cudabpf = os.path.abspath(sys.argv.pop(1))
    program = unittest.main(exit=False, verbosity=1)
    for _, reason in program.result.skipped:
        print(f"SKIPPED: {reason}")
    sys.exit(1 if not program.result.wasSuccessful() else 77 if program.result.skipped else 0)
