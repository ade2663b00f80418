"""What recording adds, measured by turns so short that the machine's speed is the same in all, because whole runs differ by more
than recording costs: of one program that is recorded and not, or of several programs of which one runs at a time."""
import contextlib
import math
import os
import random
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time


class Turn:
    """A time in which something was attached to a running program, and the figures that the program
    printed meanwhile. `attach` returns its beginning and end if it knows them better."""

    def __init__(self, name, attach, pid):
        self.name, self.figures = name, []
        begin = time.time()
        span = attach(pid)
        self.begin, self.end = span or (begin, time.time())

    def take(self, rounds, margin):
        """Takes the rounds that began and ended in it; at its edges recording begins and ends."""
        self.figures = [figure for began, ended, figure in rounds if self.begin + margin < began and ended < self.end - margin]


def take_rounds(turns, output, margin=0.3):
    """Gives each turn the rounds that the program printed meanwhile, less those at its edges."""
    printed = [[float(word) for word in line.split("\t")[1:]] for line in output if line.endswith("\n")]
    rounds = [(began, ended, figure) for (began, _), (ended, figure) in zip(printed, printed[1:])]
    for turn in turns:
        turn.take(rounds, margin)


def unit_of(rate):
    """The unit of what is spent, and how many of it make what a figure counts by. `rate`: figures are tokens a second."""
    return ("µs a token", 1e6) if rate else ("µs", 1)


def spent_in(turns, rate):
    """-> the time that a round took in each turn, in the median; without figures it is no number"""
    figures = [statistics.median(turn.figures or [float("nan")]) for turn in turns]
    return [unit_of(rate)[1] / figure if rate else figure for figure in figures]


def memories_below(pid):
    """The memory that this cudabpf shares with the processes that it records, as open files."""
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{fd}"
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(path).startswith("/memfd:cudabpf "):
                found.append(os.open(path, os.O_RDWR))
    return found


def switch(memories, recording):
    """By the word `on` (include/cudabpf/inside.h: struct ci_shared, enum ci_on)."""
    for memory in memories:
        os.pwrite(memory, struct.pack("I", 2 if recording else 0), 4)


def recorded_and_not(command, folder, seconds, turn):
    """-> turns of one program that prints its rounds without end. `command`: begins with a cudabpf that records inside. Functions
    stay patched: a call that is not recorded costs some nanoseconds more than an untouched one."""
    with open(f"{folder}/rounds", "w+", encoding="utf-8") as output:
        with subprocess.Popen(command, stdout=output) as tracer:
            try:
                while not os.path.getsize(output.name):
                    if tracer.poll() is not None:
                        sys.exit(f"bench-gpu: {' '.join(command)}: status {tracer.returncode}")
                    time.sleep(0.1)
                memories, turns = memories_below(tracer.pid), []
                for number in range(int(seconds / turn) | 1):
                    switch(memories, number % 2)
                    turns.append(Turn("recorded" if number % 2 else "not", lambda _: time.sleep(turn), tracer.pid))
                for memory in memories:
                    os.close(memory)
            finally:
                subprocess.run(["pkill", "-TERM", "-P", str(tracer.pid)], check=False)
        output.seek(0)
        take_rounds(turns, output, margin=turn / 20)
    return turns


class Runner:
    """A program that prints its rounds without end, and is stopped while it is others' turn."""

    def __init__(self, name, command, environment, folder):
        self.name, self.turns = name, []
        self.output = tempfile.NamedTemporaryFile("w+", dir=folder, encoding="utf-8")
        self.started = subprocess.Popen(command, stdout=self.output, env=dict(os.environ, **environment))
        self.ready = False

    def pid(self):
        """The program's, which may run below a cudabpf, which is never stopped itself."""
        below = subprocess.run(["pgrep", "-P", str(self.started.pid), "python"], check=False, stdout=subprocess.PIPE, text=True)
        return int((below.stdout.split() or [self.started.pid])[0])

    def is_ready(self, rounds=3):
        """Stops it, once it has printed so many."""
        if not self.ready and self.started.poll() is not None:
            sys.exit(f"{self.name}: status {self.started.returncode}")
        with open(self.output.name, encoding="utf-8") as file:
            if not self.ready and sum(1 for _ in file) >= rounds:
                os.kill(self.pid(), signal.SIGSTOP)
                self.ready = True
        return self.ready

    def take_turn(self, seconds):
        pid = self.pid()
        os.kill(pid, signal.SIGCONT)
        self.turns.append(Turn(self.name, lambda _: time.sleep(seconds), pid))
        os.kill(pid, signal.SIGSTOP)

    def interrupt(self):
        """As by Ctrl-C, so that the recorder writes the rest."""
        with contextlib.suppress(ProcessLookupError):
            pid = self.pid()
            os.kill(pid, signal.SIGINT)
            os.kill(pid, signal.SIGCONT)

    def end(self):
        try:
            self.started.wait(timeout=60)
        except subprocess.TimeoutExpired:
            for pid in (self.pid(), self.started.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.started.wait()
        self.output.close()


def side_by_side(commands, folder, cycles, turn, patience=180):
    """Programs that are all there at once, of which one runs at a time, in an order that is another each time: the first one would
    have the other's tracer beside it. `commands`: a list of (name, command, environment), of which some have the same name
    -> {name: [turns of each]}"""
    runners = []
    try:
        for command in commands:
            runners.append(Runner(*command, folder))
        give_up = time.monotonic() + patience
        while not all([runner.is_ready() for runner in runners]):  # polls each of them
            if time.monotonic() > give_up:
                sys.exit(f"not all programs had begun after {patience} s")
            time.sleep(0.05)
        for _ in range(cycles):
            for runner in random.sample(runners, len(runners)):
                runner.take_turn(turn)
        found = {}
        for runner in runners:
            runner.output.seek(0)
            take_rounds(runner.turns, runner.output, margin=turn / 10)
            found.setdefault(runner.name, []).append(runner.turns)
        return found
    finally:
        for runner in runners:
            runner.interrupt()
        for runner in runners:
            runner.end()


def print_side_by_side(found, rate):
    """Each variant's time against that of the first in the same cycle; and by process, of which no two are alike: each of the first
    against the mean of them all."""
    unit, _ = unit_of(rate)
    by_name = {name: [spent_in(turns, rate) for turns in each] for name, each in found.items()}
    base = [statistics.mean(cycle) for cycle in zip(*next(iter(by_name.values())))]
    for name, each in by_name.items():
        shares = [[now / idle - 1 for now, idle in zip(turns, base) if not math.isnan(now + idle)] for turns in each]
        if min(map(len, shares)) < 5:
            print(f"| {name} | only {min(map(len, shares))} cycles could be compared | |")
            continue
        middle = statistics.median(value for turns in each for value in turns if not math.isnan(value))
        by_process = ", ".join(f"{100 * statistics.median(one):+.1f}" for one in shares)
        print(f"| {name} | {middle:.2f} {unit} | {100 * statistics.median([x for one in shares for x in one]):+.1f} % | {by_process} |", flush=True)


def print_head(loop, unit, seconds, turn):
    print(f"\n### {loop} in a running program: {unit}, recorded for {turn} s, and not for as long, for {seconds} s\n\n"
          "| | not recorded | recorded | added, with the 95 % interval of the median |\n|---|---|---|---|")


def added(turns, rate):
    """-> what a turn that is not recorded takes, what a recorded one adds in the median, the ends of its 95 % interval, and in how many
    turns; None if these are too few. By each recorded turn and the two beside it."""
    spent = spent_in(turns, rate)
    more = sorted(now - (before + after) / 2 for before, now, after in zip(spent[::2], spent[1::2], spent[2::2])
                  if not math.isnan(before + now + after))
    if len(more) < 10:
        return None
    middle, reach = len(more) / 2, 0.98 * len(more) ** 0.5
    low, high = (more[min(max(0, round(middle + sign * reach)), len(more) - 1)] for sign in (-1, 1))
    return statistics.median(value for value in spent[::2] if not math.isnan(value)), statistics.median(more), low, high, len(more)


def compare(name, turns, rate):
    """Prints what recording adds. `rate`: figures are tokens a second."""
    unit, scale = unit_of(rate)
    found = added(turns, rate)
    if not found:
        return print(f"| {name} | too few turns could be compared | | |")
    base, middle, low, high, count = found
    shown = (lambda value: scale / value) if rate else (lambda value: value)
    return print(f"| {name} | {shown(base):.3f} | {shown(base + middle):.3f} | {middle:+.3f} {unit} ({low:+.3f} to {high:+.3f}), "
                 f"{100 * middle / base:+.2f} % ({100 * low / base:+.2f} to {100 * high / base:+.2f}); {count} turns |", flush=True)
