"""What a traced program's Python says of each call, and what the trace says of stacks."""
import collections
import glob
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "live"))

import harness  # noqa: E402  pylint: disable=wrong-import-position

PYTHON = os.environ.get("CUDABPF_PYTHON", harness.PYTHON)  # another interpreter for the traced programs
CALLS = str(pathlib.Path(__file__).resolve().parent.parent / "workloads" / "python_calls.py")
MOST_FUNCTION, MOST_FILE = 512, 1024


def cut(text, most):
    return text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


def shown(frames, most):
    return [(cut(function, MOST_FUNCTION), cut(file, MOST_FILE), line) for function, file, line in frames[:most]]


class PythonTest(harness.LiveTest):
    def said_by_python(self, log):
        """The calls by thread, as Python says them, and how often code lay where freed code had lain."""
        known, reused = collections.defaultdict(list), 0
        for path in glob.glob(f"{log}.*"):
            with open(path, encoding="utf-8") as lines:
                for line in map(json.loads, lines):
                    reused += line.get("reused", 0)
                    if "symbol" in line:
                        known[line["pid"], line["tid"]].append(line)
            os.unlink(path)
        return known, reused

    def check_accounts_balance(self, trace):
        accounts = trace.end["accounts"]
        self.assertEqual(accounts["entered"], accounts["emitted"] + accounts["dropped"])
        self.assertEqual(accounts["received"], accounts["emitted"])

    def stacks_of(self, trace):
        """By their numbers; each is described before the first call that has it."""
        stacks = {}
        for line in trace.lines:
            if line["type"] == "stack":
                self.assertNotIn(line["stack"], stacks)
                stacks[line["stack"]] = line
            elif "stack" in line:
                self.assertIn(line["stack"], stacks)
        return stacks

    def calls_by_thread(self, trace):
        found = collections.defaultdict(list)
        for line in sorted(trace.calls, key=lambda line: line["ts"]):
            found[line["pid"], line["tid"]].append(line)
        return found

    def check_stack(self, stack, frames, most):
        """It is what Python says."""
        self.assertEqual([(one["function"], one["file"], one["line"]) for one in stack["frames"]], shown(frames, most))
        self.assertEqual(stack.get("cut", False), len(frames) > most)
