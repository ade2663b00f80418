"""What tests share: this machine. Whether it takes BPF programs, which of those are ours, and whose turn it is.

Tests that load BPF programs take turns. Tests that record from inside run beside them, but not beside a tracer that
disturbs them: a test waits for them before it starts one. The turns are locks on files in the build folder, so they also
hold between several runs of ctest."""
import contextlib
import fcntl
import json
import os
import platform
import re
import subprocess
import sys
import tempfile

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bpf/cudabpf.bpf.c")
BPFTOOL = os.environ.get("BPFTOOL", "bpftool")  # ctest gives the one used by the build
TRACERS = ("cudabpf", "print_tallies")
WITHOUT_TARGET = ("attach", "top")  # subcommands that trace; run has a command
TARGETS = {"--pid", "-p", "--name", "--container", "--", "--help"}


def alone(test):
    """Marks a test, or a class of tests, beside which no other must run: for another reason than that it starts a tracer
    that disturbs others, or where it does so in a way that `disturbs` cannot see."""
    test.alone = True
    return test


def uses_bpf(test):
    """Marks a test of recording inside that loads BPF programs, too."""
    test.uses_bpf = True
    return test


class Turn:
    """A test's, for as long as its process lives."""

    def __init__(self, folder, bpf, is_alone):
        self.folder, self.held = folder, []
        self.sharing, self.has_machine = not bpf and not is_alone, False
        if bpf:
            self.lock("bpf", fcntl.LOCK_EX)
        if is_alone:
            self.take_machine()
        elif self.sharing:
            self.lock("machine", fcntl.LOCK_SH)
        sys.addaudithook(self.audit)

    def lock(self, name, how):
        """Everybody waits at the door first, so that those who share are not always ahead of one who wants all."""
        with open(f"{self.folder}/test/{name}.door", "wb") as door:
            fcntl.flock(door, fcntl.LOCK_EX)
            self.held.append(open(f"{self.folder}/test/{name}.lock", "wb"))  # pylint: disable=consider-using-with
            fcntl.flock(self.held[-1], how)

    def take_machine(self):
        assert not self.sharing, "a test of recording inside that traces the whole machine has to be marked as alone"
        if not self.has_machine:
            self.has_machine = True
            self.lock("machine", fcntl.LOCK_EX)

    def before(self, command):
        """To be called before this command is started by other ways than subprocess."""
        if disturbs(command):
            self.take_machine()

    def audit(self, event, arguments):
        if event == "subprocess.Popen":
            self.before(list(map(os.fsdecode, arguments[1])))


def disturbs(command):
    """Whether a command, given to a program like sudo or not, starts a tracer that sees processes of other tests; or one that
    puts return probes into their libraries, which only exceptions and calls on other stacks do not survive."""
    for number, word in enumerate(command):
        if os.path.basename(word) in TRACERS:
            rest = command[number + 1:]
            if "--inside" in rest:
                return False
            everything = not rest or rest[0].startswith("-") or rest[0] in WITHOUT_TARGET
            return (everything and not TARGETS & set(rest)) or any(word.startswith("--no-feature") for word in rest)
    return False


def why_no_bpf(cudabpf):
    """Why no test can load BPF programs here; nothing if it can."""
    if os.geteuid() != 0:
        return "live tests load BPF programs, which takes root"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([cudabpf, "run", "-q", "-o", f"{folder}/t.jsonl", "--", "true"], check=False,
                              text=True, stderr=subprocess.PIPE)
    return f"this machine takes no BPF programs: {done.stderr.strip()}" if done.returncode in (120, 121) else ""


def why_not_inside():
    return "" if platform.machine() == "x86_64" else "only x86-64 programs are traced from inside"


def parent_of(pid):
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return int(file.read().rpartition(")")[2].split()[1])
    return 0


def is_of_this_test(pid):
    while pid > 1:
        if pid == os.getpid():
            return True
        pid = parent_of(pid)
    return False


def our_programs():
    """The ids of the BPF programs in the kernel that have the names of ours, but for those that another tracer on this
    machine holds."""
    with open(PROGRAMS, encoding="utf-8") as file:
        ours = {name[:15] for name in re.findall(r'^(?:SEC.*)?int (?:BPF_PROG\()?(\w+)', file.read(), re.MULTILINE)}
    assert {"call_entry", "call_launch_ses", "driver_exit", "process_fork"} <= ours, ours
    listed = subprocess.run([BPFTOOL, "prog", "list", "-j"], check=True, stdout=subprocess.PIPE).stdout
    found = [program for program in json.loads(listed or "[]") if program.get("name") in ours]
    return {program["id"] for program in found
            if not program.get("pids") or any(is_of_this_test(holder["pid"]) for holder in program["pids"])}
