"""Checks what `cudabpf __complete` offers at the cursor, and what bash, zsh and fish themselves offer of that.
usage: completion.py CUDABPF [TEST...]   Exit status 77: skipped, with the reason printed."""
import collections
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
BASH_SCRIPT = r"""
source "$script" || exit 1
ask() {
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE=$* COMP_POINT=${#COMP_LINE}
  _cudabpf "$1"
  printf '%s\n' "${COMPREPLY[@]}"
}
"""
# What zsh is about to offer goes through compadd; so does what its functions only ask for.
ZSH_SCRIPT = r"""
PROMPT='' ; LISTMAX=0
if [[ $functions_at ]]; then fpath=($functions_at $fpath); fi
autoload -Uz compinit && compinit -D -u
[[ $functions_at ]] || source $script
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
  for (( i = 1; i <= $#hits; i++ )); do print -r -- "${path_of[-p]}$hits[i]"$'\t'"$described[i]" >>$offers; done
  builtin compadd "$@"
}
collect() { _main_complete; compstate[list]= compstate[insert]= }
zle -C collect list-choices collect
setopt extendedglob
zle-line-init() {
  local line
  for line in "${(@f)$(<$typed)}"; do
    print -r -- "typed $line" >>$offers
    BUFFER=$line CURSOR=${#line}
    zle collect
  done
  exit
}
zle -N zle-line-init
"""


Offer = collections.namedtuple("Offer", "kind at what words")


def printed(*arguments):
    return subprocess.run([cudabpf, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def start(test, folder, name):
    """A process of that name that runs until the test ends; returns its pid."""
    program = folder / name
    program.symlink_to(shutil.which("sleep"))
    started = subprocess.Popen([program, "1234"])  # pylint: disable=consider-using-with
    test.addCleanup(started.wait)
    test.addCleanup(started.terminate)
    return str(started.pid)


def new_folder(test):
    folder = tempfile.TemporaryDirectory()
    test.addCleanup(folder.cleanup)
    return pathlib.Path(folder.name)


class Candidates(unittest.TestCase):
    """What may replace the last word of a line, whichever the shell."""
    maxDiff = None

    def ask(self, line):
        first, *lines = printed("__complete", *line.split(" ")[1:]).split("\n")[:-1]
        kind, at, what = first.split(" ", 2)
        words = dict((entry + "\t").split("\t")[:2] for entry in lines)
        self.assertEqual(len(words), len(lines), f"{line}: a word is offered twice")
        return Offer(kind, int(at), what, words)

    def words(self, line):
        offer = self.ask(line)
        self.assertEqual(offer.kind, "words", line)
        return list(offer.words)

    def test_subcommands(self):
        help_text = printed("--help").split("\nSubcommands", 1)[1].split("\nExamples", 1)[0]
        listed = re.findall(r"^  (\w+) ", help_text, re.MULTILINE)
        self.assertGreater(len(listed), 12)
        offer = self.ask("cudabpf ")
        self.assertEqual(sorted(offer.words), sorted(listed))
        self.assertEqual((offer.kind, offer.at, offer.what), ("words", 0, "subcommand"))
        self.assertEqual(offer.words["run"], "Trace a command and all its children")
        for line in ("cudabpf su", "cudabpf --duration 3s --kernel su", "cudabpf help ", "cudabpf help su"):
            self.assertEqual(self.ask(line).words, offer.words, line)
        self.assertEqual(printed("__complete"), printed("__complete", ""))
        self.assertNotIn("__complete", printed("--help") + str(offer))

    def test_options(self):
        """As many as --help has, of each subcommand; and it is known what each of them takes."""
        for subcommand in self.words("cudabpf "):
            with self.subTest(subcommand):
                known = re.findall(r"^  (?:(-\w),)?(--[a-z-]+)", printed(subcommand, "--help"), re.MULTILINE)
                offered = self.ask(f"cudabpf {subcommand} --")
                self.assertEqual(sorted(offered.words), sorted(filter(None, sum(known, ()))))
                self.assertNotIn("", offered.words.values())
                for option in offered.words:
                    self.assertEqual(self.ask(f"cudabpf {subcommand} {option}=").at, len(option) + 1)
        self.assertEqual(self.words("cudabpf version "), ["--help", "-h"])

    def test_given(self):
        """An option that was given is offered again only if it may be repeated."""
        for given, gone in (("--quiet", {"--quiet", "-q"}), ("-q", {"--quiet", "-q"}), ("--library=a", set()),
                            ("--library a", set()), ("--only a", {"--only"}),
                            ("-o x", {"--output", "-o"}), ("--output = x", {"--output", "-o"})):
            with self.subTest(given):
                self.assertEqual(set(self.words("cudabpf run -")) - set(self.words(f"cudabpf run {given} -")), gone)

    def test_values(self):
        for option, line in (("--profile", "cudabpf run --profile "), ("--profile", "cudabpf --profile "),
                             ("--profile", "cudabpf functions --profile "), ("--by", "cudabpf calls --by "),
                             ("--by", "cudabpf ioctls t.jsonl --by "), ("--by", "cudabpf diff --by "),
                             ("--by", "cudabpf kernels --by "), ("--by", "cudabpf gaps --by "),
                             ("--by", "cudabpf memory --by "), ("--format", "cudabpf export --format "),
                             ("shell", "cudabpf completion ")):
            subcommand = line.split()[1]
            help_text = printed(*([] if subcommand.startswith("-") else [subcommand]), "--help")
            words = re.search(rf"^  {option} ([a-z|]+)", help_text, re.MULTILINE)[1].split("|")
            with self.subTest(line):
                self.assertEqual(self.words(line), words)
        # bash makes three words of the first two lines.
        for line, at in (("cudabpf export --format =", 0), ("cudabpf export --format = p", 0),
                         ("cudabpf export --format=", 9), ("cudabpf export --format=p", 9)):
            offer = self.ask(line)
            self.assertIn("perfetto", offer.words)
            self.assertEqual((offer.at, offer.what), (at, "|".join(offer.words)), line)
        self.assertEqual(self.words("cudabpf run --gpu="), ["graphs"])
        self.assertEqual(self.words("cudabpf run --gpu ="), ["graphs"])

    def test_features(self):
        source = (ROOT / "src/collect/bpf/features.hpp").read_text(encoding="utf-8")
        names = sorted(re.findall(r'const char\* [A-Z_]+ = "(\w+)"', source))
        self.assertEqual(len(names), 10)
        for line in ("cudabpf run --no-feature ", "cudabpf attach --no-feature ", "cudabpf --no-feature ",
                     "cudabpf run --no-feature sleepable --no-feature x"):
            self.assertEqual(sorted(self.words(line)), names, line)

    def test_conditions(self):
        """The measures that a condition may begin with; one condition follows an option, then traces."""
        help_text = printed("diff", "--help").split("Measures: ", 1)[1]
        measures = sorted(re.findall(r"(?<![\w-])([a-z][a-z0-9-]+)", help_text))
        self.assertGreater(len(measures), 24)
        self.assertEqual(sorted(self.words("cudabpf diff --fail-if ")), measures)
        self.assertEqual(self.ask("cudabpf diff --fail-if launches>+0 "), ("traces", 0, "A B", {}))
        self.assertIn("--fail-if", self.words("cudabpf diff --fail-if calls>+0 --f"))

    def test_nothing(self):
        """Where no value is known, files would be wrong; what a value is, is said."""
        for line, what in (("cudabpf --duration ", "TIME"), ("cudabpf --duration=", "TIME"), ("cudabpf calls --top ", "N"),
                           ("cudabpf run --only ", "PATTERN"), ("cudabpf summary --pid ", "PID"), ("cudabpf nonsense ", ""),
                           ("cudabpf nonsense -", ""), ("cudabpf run --nonsense=", ""), ("cudabpf version x", ""),
                           ("cudabpf completion bash z", ""), ("cudabpf attach --container 12", "ID|CGROUP")):
            with self.subTest(line):
                offer = self.ask(line)
                self.assertEqual((offer.kind, offer.what, offer.words), ("words", what, {}))

    def test_what_the_shell_knows(self):
        for kind, lines in {
                "traces": ("cudabpf summary ", "cudabpf calls --by pid ", "cudabpf diff ", "cudabpf diff a.jsonl ",
                           "cudabpf diff a.jsonl --to ", "cudabpf export --format csv ", "cudabpf kernels --json ",
                           "cudabpf summary a", "cudabpf summary -- -"),
                "files": ("cudabpf --output ", "cudabpf run -o ", "cudabpf attach --library ", "cudabpf memory --svg ",
                          "cudabpf export a.jsonl --output "),
                "folders": ("cudabpf serve ", "cudabpf attach --container /sys/fs/cgr"),
                "users": ("cudabpf run --user roo",)}.items():
            for line in lines:
                with self.subTest(line):
                    offer = self.ask(line)
                    self.assertEqual((offer.kind, offer.at, offer.words), (kind, 0, {}))
        self.assertEqual(self.ask("cudabpf run --output=a")[:3], ("files", len("--output="), "FILE"))
        self.assertEqual(self.words("cudabpf attach --container "), ["/sys/fs/cgroup/"])

    def test_processes(self):
        folder = new_folder(self)
        pid, hostile = start(self, folder, "odd-name"), start(self, folder, "odd\t\x1b[1m")
        for line, at in (("cudabpf attach --pid ", 0), ("cudabpf attach -p ", 0), (f"cudabpf attach --pid 1,{pid}", 2),
                         ("cudabpf attach --pid=1,2,", 10)):
            offer = self.ask(line)
            self.assertEqual((offer.kind, offer.at), ("words", at), line)
            self.assertIn("odd-name 1234", offer.words[pid])
            self.assertIn("odd??[1m 1234", offer.words[hostile])
            self.assertTrue(all(re.fullmatch("[0-9]+", word) for word in offer.words), offer)
            self.assertNotIn("__complete", str(offer.words))
            if pathlib.Path("/proc/2/comm").read_text(encoding="utf-8") == "kthreadd\n":
                self.assertNotIn("2", offer.words)
        for line in ("cudabpf attach --name odd", "cudabpf attach -n "):
            self.assertEqual([word for word in self.words(line) if word.startswith("odd")], ["odd-name"])

    def test_command(self):
        """From what is run on, words are another program's."""
        for line, at in (("cudabpf run ", 2), ("cudabpf run slee", 2), ("cudabpf run -- slee", 3), ("cudabpf run -- -", 3),
                         ("cudabpf run --kernel -o x slee", 5), ("cudabpf run -- cat su", 3), ("cudabpf run cat -", 2),
                         ("cudabpf run --gpu graphs -- cat su", 5), ("cudabpf run --sample 50 cat su", 4),
                         ("cudabpf run --gpu = graphs cat --a = b", 5), ("cudabpf run cat -- --k", 2)):
            with self.subTest(line):
                self.assertEqual(self.ask(line)[:2], ("command", at))
        self.assertIn("--kernel", self.words("cudabpf run --k"))


class Shell:
    """What a shell makes of it; ask() returns what is offered: {word: description or ""}."""
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        if not shutil.which(cls.shell):
            raise unittest.SkipTest(f"{cls.shell} is not installed; scripts/setup installs it")

    def setUp(self):
        self.folder = new_folder(self)
        self.work = self.folder / "work"
        self.work.mkdir()
        (self.folder / "bin").mkdir()
        (self.folder / "bin/cudabpf").symlink_to(cudabpf)
        self.script = self.folder / "script"
        self.script.write_text(printed("completion", self.shell), encoding="utf-8")
        self.environment = {"PATH": f"{self.folder}/bin:{os.environ['PATH']}", "HOME": str(self.folder), "LC_ALL": "C.UTF-8",
                            "TERM": "vt100", "script": str(self.script)}

    def ask(self, line):
        return self.ask_all([line])[line]

    def check(self, expected):
        """What is offered for the last word of each line, without what quotes it or ends it."""
        for line, offered in self.ask_all(list(expected)).items():
            with self.subTest(line):
                self.assertEqual(sorted(word.replace("\\", "").rstrip("/ ") for word in offered), expected[line])

    def test_words(self):
        offered = self.ask("cudabpf ")
        self.assertEqual(sorted(offered), sorted(re.findall(r"^(\w+)\t", printed("__complete"), re.MULTILINE)))
        if self.describes:
            self.assertIn("Trace a command and all its children", offered["run"])
        self.check({
            "cudabpf su": ["summary"],
            "~/bin/cudabpf su": ["summary"],
            "cudabpf attach --p": ["--pid", "--profile", "--python-slower"],
            "cudabpf export --format p": ["perfetto"],
            "cudabpf diff --fail-if launches": ["launches", "launches-per-iteration"],
            "cudabpf run --user roo": ["root"],
            "cudabpf attach --container ": ["/sys/fs/cgroup"],
            "cudabpf --duration ": [],
            "cudabpf nonsense ": [],
        })
        value, = self.ask("cudabpf export --format=p")
        self.assertEqual(value.removeprefix("--format="), "perfetto")

    def test_processes(self):
        pid = start(self, self.folder, "odd: name")
        offered = self.ask(f"cudabpf attach --pid {pid}")
        self.assertIn(pid, offered)
        if self.describes:
            self.assertIn("odd: name 1234", offered[pid])
        self.assertIn(pid, [word.removeprefix("1,") for word in self.ask(f"cudabpf attach --pid 1,{pid[:-1]}")])
        self.check({"cudabpf attach --name odd": ["odd: name"]})

    def test_files(self):
        for name in ("a.jsonl", "b.jsonl.zst", "b c.jsonl", "a.txt", "z.txt"):
            (self.work / name).touch()
        (self.work / "traces").mkdir()
        (self.work / "traces/t.jsonl").touch()
        self.check({
            "cudabpf summary ": ["a.jsonl", "b c.jsonl", "b.jsonl.zst", "traces"],
            "cudabpf diff --fail-if calls>+0 a.jsonl --to a": ["a.jsonl"],
            "cudabpf summary z": ["z.txt"],
            "cudabpf summary traces/": ["traces/t.jsonl"],
            f"cudabpf summary {self.work}/tr": [f"{self.work}/traces"],
            "cudabpf --output a": ["a.jsonl", "a.txt"],
            "cudabpf serve ": ["traces"],
            "cudabpf attach --container /sys/fs/cgr": ["/sys/fs/cgroup"],
        })
        if self.shell != "bash":  # which readline's words are given to, already split
            self.check({"cudabpf summary b\\ ": ["b c.jsonl"], "cudabpf summary 'b ": ["b c.jsonl"]})
        value, = self.ask("cudabpf run --output=z")
        self.assertEqual(value.removeprefix("--output="), "z.txt")

    def test_command(self):
        """What is run is completed as a command, and its words as its own."""
        for line in ("cudabpf run -- slee", "cudabpf run --kernel -o x slee"):
            self.assertIn("sleep", self.ask(line))
        (self.work / "summary.txt").touch()
        self.check({line: ["summary.txt"] for line in ("cudabpf run -- cat su", "cudabpf run --quiet -- cat su",
                                                       "cudabpf run cat su")})
        self.assertNotIn("--kernel", self.ask("cudabpf run -- sleep --k"))

    def test_absent(self):
        """Where cudabpf does not run there is nothing to offer, and nothing is said."""
        program = self.folder / "bin/cudabpf"
        program.unlink()
        self.check({"cudabpf ": [], f"{program} ": []})
        program.symlink_to(shutil.which("false"))
        self.check({"cudabpf ": []})


class Bash(Shell, unittest.TestCase):
    shell = "bash"
    describes = False

    def ask_all(self, lines):
        offered = {}
        for line in lines:
            words = re.sub("=", " = ", line).split(" ")
            done = subprocess.run(["bash", "--norc", "-c", BASH_SCRIPT + 'ask "$@"', "bash", *words], cwd=self.work,
                                  env=self.environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), line)
            offered[line] = {word: "" for word in done.stdout.split("\n") if word}
        return offered

    def test_quoted(self):
        (self.work / "b c.jsonl").touch()
        for typed in ("b\\ ", "'b ", '"b'):
            words = ["cudabpf", "summary", typed]
            done = subprocess.run(["bash", "--norc", "-c", BASH_SCRIPT + 'ask "$@"', "bash", *words], cwd=self.work,
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
                for typed in ('cudabpf() { printf "%s|" "$@" >>../called; }\n', 'source "$script"\n',
                              "cudabpf summary b\t\n", "cudabpf export --form\tcs\t b\t\n", "exit\n"):
                    os.write(master, typed.encode())
                shell.wait(timeout=20)
        os.close(master)
        called = (self.folder / "called").read_text(encoding="utf-8")
        self.assertEqual(called, "summary|b c.jsonl|export|--format|csv|b c.jsonl|")

    def test_clean(self):
        if not shutil.which("shellcheck"):
            self.skipTest("shellcheck is not installed; scripts/setup installs it")
        done = subprocess.run(["shellcheck", "--shell=bash", "--severity=warning", self.script], text=True,
                              stdout=subprocess.PIPE, check=False)
        self.assertEqual(done.stdout, "")


class Zsh(Shell, unittest.TestCase):
    shell = "zsh"
    describes = True

    def ask_all(self, lines):
        typed, offers = self.folder / "typed", self.folder / "offers"
        typed.write_text("\n".join(lines), encoding="utf-8")
        offers.write_text("", encoding="utf-8")
        (self.folder / ".zshrc").write_text(ZSH_SCRIPT, encoding="utf-8")
        master, slave = pty.openpty()
        with contextlib.closing(os.fdopen(slave)) as terminal:
            with subprocess.Popen(["zsh", "-i", "-d"], stdin=terminal, stdout=terminal, stderr=subprocess.PIPE,
                                  cwd=self.work, start_new_session=True, text=True,
                                  env={**self.environment, "ZDOTDIR": str(self.folder), "typed": str(typed),
                                       "offers": str(offers)}) as shell:
                said = shell.communicate(timeout=60)[1]
        os.close(master)
        self.assertEqual(re.sub(r"\x1b.*?m|\s|%", "", said), "")
        offered = {}
        for line in offers.read_text(encoding="utf-8").split("\n")[:-1]:
            if line.startswith("typed "):
                words = offered.setdefault(line.removeprefix("typed "), {})
            else:
                word, _, described = line.partition("\t")
                words[word] = described
        return offered

    def test_loaded(self):
        """As it is installed: loaded by its name, from a folder in $fpath."""
        folder = self.folder / "functions"
        folder.mkdir()
        self.script.rename(folder / "_cudabpf")
        self.environment["functions_at"] = str(folder)
        self.check({"cudabpf su": ["summary"], "cudabpf export --format c": ["chrome", "csv"]})


class Fish(Shell, unittest.TestCase):
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
