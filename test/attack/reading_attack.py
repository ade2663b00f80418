"""Traces that were changed at random, given to every subcommand that reads: none crashes, takes more than a gibibyte of
addresses, writes JSON that is none, or passes on what a terminal obeys or a browser runs."""
import concurrent.futures
import glob
import json
import os
import pathlib
import random
import re
import resource
import subprocess
import time

import hostile
from output_attack import OBEYED

READS = int(os.environ.get("ATTACK_READS", "2500"))  # of each kind
ADDRESSES = FILES = 1 << 30
SLOW_S = 60  # the longest takes less than one on a machine of its own
PART = 200  # lines of a trace that is read
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KINDS = {
    "pages": (("summary",), ("summary", "--all"), ("kernels",), ("gaps",), ("energy",), ("memory",), ("timeline",)),
    "json": tuple((name, "--json") for name in ("summary", "calls", "kernels", "gaps", "energy", "memory", "errors", "ioctls", "timeline",
                                                     "collectives", "ranks")),
    "differences": (("diff",), ("diff", "--json")),
    "files": (("export", "--format", "chrome"), ("export", "--format", "perfetto"), ("report",)),
}
NUMBERS = (0, -1, 1, 2**31, 2**32, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -2**63, 1e308, -1e308, 1e-320, 0.1, 10**29)
TEXTS = ("", "__proto__", "constructor", "</script><script>alert(1)</script>", "\u2028\u2029", "\x1b[31m", "\u202e", "0x", "0xffffffffffffffff",
         "-0x1", "0x10000000000000000", "a" * 5000, "\x00", "\ud800", "kernel", "launch", "null", "%s%n", "../../x", "NaN")
KEYS = TEXTS + ("pid", "tid", "ts", "stream", "device", "gpu", "call", "parent", "duration_us", "kernel", "graph", "ret", "error", "size", "ptr",
                "type", "op", "queue", "part", "id")


class Mutator:
    """Changes a few things in a few lines."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def value(self, depth=0):
        one = self.random
        made = [lambda: one.choice(NUMBERS), lambda: one.choice(TEXTS), lambda: None, lambda: True, lambda: one.randrange(-5, 100),
                lambda: one.random() * 10 ** one.randrange(-9, 20)]
        if depth < 3:
            made += [lambda: [self.value(depth + 1) for _ in range(one.randrange(4))], lambda: {one.choice(TEXTS): self.value(depth + 1)}]
        return one.choice(made)()

    def change(self, fields):
        for _ in range(self.random.choice((1, 1, 1, 2, 4))):
            if not fields:
                return
            key, what = self.random.choice(list(fields)), self.random.random()
            if what < 0.5:
                fields[key] = self.value()
            elif what < 0.6:
                del fields[key]
            elif what < 0.7:
                fields[self.random.choice(KEYS)] = self.value()
            elif isinstance(fields[key], dict):
                self.change(fields[key])
            elif isinstance(fields[key], list) and fields[key]:
                fields[key][self.random.randrange(len(fields[key]))] = self.value()
            elif isinstance(fields[key], (int, float)) and not isinstance(fields[key], bool):
                fields[key] = self.random.choice((fields[key] * 1000, -fields[key], fields[key] + 1, 2 ** self.random.randrange(64)))

    def changed(self, line):
        try:
            fields = json.loads(line)
        except ValueError:
            return line
        if isinstance(fields, dict):
            self.change(fields)
        return json.dumps(fields, ensure_ascii=self.random.random() < 0.5).encode("utf-8", "surrogatepass")

    def trace(self, lines):
        """A part of the trace, with header and end."""
        if len(lines) > PART + 3:
            begin = self.random.randrange(2, len(lines) - PART)
            lines = lines[:2] + lines[begin:begin + PART] + lines[-1:]
        lines = list(lines)
        for _ in range(self.random.choice((1, 2, 5, 20, 60))):
            at, other, what = self.random.randrange(len(lines)), self.random.randrange(len(lines)), self.random.random()
            if what < 0.7:
                lines[at] = self.changed(lines[at])
            elif what < 0.75 and lines[at]:
                broken = bytearray(lines[at])
                broken[self.random.randrange(len(broken))] = self.random.randrange(256)
                lines[at] = bytes(broken)
            elif what < 0.8:
                lines[at], lines[other] = lines[other], lines[at]
            elif what < 0.85:
                lines.insert(at, lines[other])
            elif what < 0.88 and len(lines) > 1:
                del lines[at]
            elif what < 0.9:
                lines[at] = lines[at][:self.random.randrange(len(lines[at]) + 1)]
            elif what < 0.95:
                end = self.random.choice((0, -1))
                lines[end] = self.changed(lines[end])
        return b"\n".join(lines) + (b"\n" if self.random.random() < 0.9 else b"")


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILES,) * 2)


def strict(text):
    """Raises ValueError unless it is JSON without NaN and without a key twice."""
    def object_of(pairs):
        keys = [key for key, _ in pairs]
        if len(keys) != len(set(keys)):
            raise ValueError(f"a key twice: {keys}")
        return dict(pairs)

    def constant(name):
        raise ValueError(name)
    return json.loads(text.decode(), object_pairs_hook=object_of, parse_constant=constant)


class Live(hostile.Attack):
    def read_changed(self, kind):
        seed = int(os.environ.get("ATTACK_SEED", time.time()))
        print(f"seed {seed}")
        paths = sorted(glob.glob(f"{ROOT}/traces/h200-*.zst") + glob.glob(f"{ROOT}/test/golden/*.jsonl") + glob.glob(f"{ROOT}/test/golden/**/*.zst"))
        originals = [self.lines_of(path) for path in paths]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for found in pool.map(lambda number: self.read_one(kind, number, seed, originals), range(READS)):
                self.assertEqual(found, "")

    @staticmethod
    def lines_of(path):
        command = ["zstdcat" if path.endswith(".zst") else "cat", path]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.splitlines()

    def read_one(self, kind, number, seed, originals):
        """What is wrong with a command's answer about a changed trace; nothing if all is well."""
        mutator = Mutator(f"{seed} {kind} {number}")
        trace, output = f"{self.folder}/{number}.jsonl", f"{self.folder}/{number}.out"
        with open(trace, "wb") as file:
            file.write(mutator.trace(mutator.random.choice(originals)))
        name, *flags = mutator.random.choice(KINDS[kind])
        other = [str(ROOT / "traces/h200-transformer.jsonl.zst")] if name == "diff" else []
        command = [hostile.harness.CUDABPF, name, trace, *other, *flags, *(["-o", output] if name in ("export", "report") else [])]
        done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=SLOW_S,
                              preexec_fn=limits)
        why = self.complaint(done, flags, output)
        if why:
            return f"{' '.join(command[1:])} (seed {seed}, number {number}): {why}"
        for path in (trace, output):
            if os.path.exists(path):
                os.remove(path)
        return ""

    @staticmethod
    def complaint(done, flags, output):
        if done.returncode not in (0, 125):
            return f"it ends with {done.returncode}: {done.stderr[-300:]}"
        if OBEYED.search(done.stderr.decode()):
            return f"a terminal obeys its message: {done.stderr}"
        if done.returncode:
            return ""
        if "--json" not in flags and OBEYED.search(done.stdout.decode()):
            return f"a terminal obeys its answer: {ascii(done.stdout.decode())[:300]}"
        try:
            if "--json" in flags:
                strict(done.stdout)
            if "chrome" in flags:
                strict(pathlib.Path(output).read_bytes())
        except ValueError as why:
            return f"it is no JSON: {why}"
        if done.args[1] == "report":
            page = pathlib.Path(output).read_text(encoding="utf-8")
            if re.search(r"alert\(1\)</script|\u2028", page):
                return "its page runs what the trace says"
        return ""


def test_of(kind):
    return lambda self: self.read_changed(kind)


for name in KINDS:
    setattr(Live, f"test_{name}", test_of(name))


if __name__ == "__main__":
    hostile.harness.main()
