"""What there is to compare: a trace's lines, and what the simulated driver wrote down about each process."""
import collections
import glob
import json
import os
import re


class Record:
    """What the simulated driver wrote down about one process, of the calls that the way of tracing can see."""

    def __init__(self, folder, pid, inside):
        self.pid, self.folder, self.inside = pid, folder, inside
        self.all_counts = self.account("counts")
        self.unseen, self.doubtful = self.account("unseen"), self.account("doubtful")
        hidden = merge((self.unseen, self.doubtful)) if self.inside else {}
        self.counts = {symbol: count - hidden.get(symbol, 0) for symbol, count in self.all_counts.items()
                       if count > hidden.get(symbol, 0)}

    def account(self, name):
        """The counts of all copies of the driver in the process."""
        total = collections.Counter()
        for path in glob.glob(f"{self.folder}/{name}.{self.pid}.tsv") + glob.glob(f"{self.folder}/{name}.{self.pid}.*.tsv"):
            with open(path, encoding="utf-8") as file:
                total.update({symbol: int(count) for symbol, count in (line.split("\t") for line in file)})
        return {symbol: count for symbol, count in total.items() if count}

    def log(self):
        path = f"{self.folder}/calls.{self.pid}.jsonl"
        if not os.path.exists(path):
            return ""
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()

    def log_has(self, *words):
        log = self.log()
        return any(word in log for word in words)

    @property
    def calls(self):
        found = [json.loads(line) for line in self.log().split("\n")[:-1]]
        return [call for call in found if not self.inside or call["injection"] == "after"]


def records(folder, inside):
    pids = {int(re.search(r"counts\.(\d+)\.", path)[1]) for path in glob.glob(f"{folder}/counts.*.tsv")}
    return {pid: Record(folder, pid, inside) for pid in sorted(pids)}


def merge(counts):
    return sum((collections.Counter(c) for c in counts), collections.Counter())


class Trace:
    """A trace file's lines, by kind."""

    def __init__(self, text, whole=True):
        lines = text.split("\n")
        self.cut = lines.pop()  # what comes after the last newline
        self.lines = [json.loads(line) for line in lines]
        self.header = self.lines[0]
        self.end = self.lines[-1] if self.lines[-1]["type"] == "end" else None
        self.calls = [line for line in self.lines if "id" in line]
        self.processes = self.of("process")
        self.lost = self.of("lost")
        self.libraries = self.of("library")
        if whole:
            assert self.cut == "" and self.header["type"] == "trace" and self.end, lines[-1:]

    def of(self, kind):
        return [line for line in self.lines if line["type"] == kind and "id" not in line]

    def named(self, symbol):
        return [call for call in self.calls if symbol_of(call) == symbol]

    def counts(self, *pids):
        """{symbol: lines} of all processes, or of these."""
        return collections.Counter(symbol_of(c) for c in self.calls if not pids or c["pid"] in pids)

    def process(self, operation, pid):
        return [p for p in self.processes if p["op"] == operation and p["pid"] == pid]


def symbol_of(call):
    return call.get("symbol", call["name"])
