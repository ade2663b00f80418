"""Runs the tests of a theme, which is a file: each in a process of its own, so that no test finds what another left.

Prints a line for each, and what failed ones printed. Writes all outcomes as JUnit to CUDABPF_RESULTS, a file's path, from
which scripts/list-not-passed takes the tests' names. Exit status 77: all were skipped."""
import contextlib
import ctypes
import os
import pickle
import select
import signal
import sys
import tempfile
import time
import traceback
import unittest
import xml.etree.ElementTree as ElementTree

LIMIT_S = 240  # for one test; each waits a shorter time for its own conditions
SUBREAPER = 36
SKIPPED = 77


class Outcome:
    def __init__(self, name, status, seconds=0.0, output="", reason=""):
        self.name, self.status, self.seconds, self.output, self.reason = name, status, seconds, output, reason


def become_subreaper():
    """Orphans of killed programs come to us, not to init."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)


def run_here(case):
    """Runs one test in this process; (status, reason)."""
    become_subreaper()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    result = unittest.TestResult()
    case.run(result)
    for _, text in result.errors + result.failures:
        print(text)
    if not result.wasSuccessful():
        return "fail", ""
    return ("notrun", result.skipped[0][1]) if result.skipped else ("run", "")


def child(case, output, answer):
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    try:
        outcome = run_here(case)
    except BaseException:  # pylint: disable=broad-except
        traceback.print_exc()
        outcome = "fail", ""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os.write(answer, pickle.dumps(outcome))
    os._exit(0)


def kill_children():
    """What a test that failed or was stopped left running, and what that had started: it would be in the way of others."""
    for _ in range(50):
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            left = file.read().split()
        for pid in map(int, left):
            os.kill(pid, signal.SIGKILL)
        if not left:
            return
        time.sleep(0.02)  # until those of a killed one are ours
        reap()


def reap():
    """Orphans that have ended. One that is closing a thousand probes may take a minute, and no test waits for it."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def run_apart(case):
    """Runs one test in a process of its own."""
    name = case.id().rpartition(".test_")[2]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        reading, writing = os.pipe()
        began = time.monotonic()
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            child(case, output, writing)
        os.close(writing)
        ready, _, _ = select.select([reading], [], [], LIMIT_S)
        if not ready:
            os.kill(pid, signal.SIGKILL)
        answer = os.read(reading, 1 << 16) if ready else b""
        os.close(reading)
        os.waitpid(pid, 0)
        status, reason = pickle.loads(answer) if answer else ("fail", "")
        if status == "fail":
            kill_children()
        reap()
        output.seek(0)
        printed = output.read()
        if not answer:
            printed += f"it did not end within {LIMIT_S} s" if not ready else "its process ended without an answer"
        return Outcome(name, status, time.monotonic() - began, printed, reason)


def write_results(path, theme, outcomes):
    suite = ElementTree.Element("testsuite", name=theme, tests=str(len(outcomes)))
    for outcome in outcomes:
        one = ElementTree.SubElement(suite, "testcase", name=f"{theme}: {outcome.name}", status=outcome.status,
                                     time=f"{outcome.seconds:.2f}")
        text = outcome.output + (f"SKIPPED: {outcome.reason}" if outcome.reason else "")
        text = "".join(c for c in text if c >= " " or c in "\n\t")  # XML has no others
        if outcome.status == "fail":
            ElementTree.SubElement(one, "failure", message="")
        if outcome.status == "notrun":
            ElementTree.SubElement(one, "skipped", message="")
        ElementTree.SubElement(one, "system-out").text = text
    ElementTree.ElementTree(suite).write(f"{path}.part", encoding="utf-8", xml_declaration=True)
    os.replace(f"{path}.part", path)


def report(outcome):
    word = {"run": "passed", "notrun": "skipped", "fail": "FAILED"}[outcome.status]
    print(f"{word:<8}{outcome.seconds:7.2f} s  {outcome.name}{': ' if outcome.reason else ''}{outcome.reason}")
    if outcome.status == "fail":
        print(outcome.output)


def run(cases):
    """Runs all; the exit status."""
    path = os.environ.get("CUDABPF_RESULTS")
    theme = os.path.splitext(os.path.basename(path or sys.argv[0]))[0]
    become_subreaper()
    outcomes = []
    for case in cases:
        outcomes.append(run_apart(case))
        report(outcomes[-1])
        if path:  # after each, so that a theme that is stopped leaves what it knows
            write_results(path, theme, outcomes)
    statuses = {outcome.status for outcome in outcomes}
    if "fail" in statuses or not outcomes:
        return 1
    return SKIPPED if statuses == {"notrun"} else 0


def skip_all(cases, reason):
    """Where no test of a theme can run."""
    print(f"SKIPPED: {reason}")
    return SKIPPED if cases else 1
