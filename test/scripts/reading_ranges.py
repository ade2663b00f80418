"""Asks the subcommands that read traces about certain ranges of the program's own.
usage: reading_ranges.py CUDABPF"""
import json
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TRACE = ROOT / "traces/example-ranges.jsonl.zst"
WITHOUT_RANGES = ROOT / "traces/h200-gpt2.jsonl.zst"
READERS = ("summary", "timeline", "calls", "kernels", "ranges", "memory", "gaps", "errors", "energy", "ioctls", "collectives", "ranks")
cudabpf = ""  # pylint: disable=invalid-name


def calls(*part):
    return sum(one["count"] for one in json.loads(ask("calls", "--json", *part, TRACE)[0])["calls"])


def ask(*arguments, status=0, **options):
    """Returns what it printed, and what it said on standard error."""
    done = subprocess.run([cudabpf, *arguments], env={"PATH": os.environ["PATH"]}, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, **options)
    assert done.returncode == status, (arguments, done.returncode, done.stderr)
    return done.stdout, done.stderr


class ReadingRanges(unittest.TestCase):
    def test_every_answer_takes_them(self):
        for subcommand in READERS:
            with self.subTest(subcommand):
                answer = json.loads(ask(subcommand, "--json", "--range", "prefill", TRACE)[0])
                self.assertEqual(answer["trace"]["part"]["ranges"], "prefill")
                page = ask(subcommand, "--range", "*/decode/tok*", "--iteration", "3", TRACE)[0]
                self.assertIn("  part: in */decode/tok*, iteration 3 of 48, from", page)

    def test_no_such_range(self):
        for subcommand in READERS:
            with self.subTest(subcommand):
                text, said = ask(subcommand, "--range", "training", TRACE, status=2)
                self.assertEqual(text, "")
                self.assertIn("--range training: the trace has no such range", said)
                self.assertIn("it has request *, prefill, layer *, attention", said)
        self.assertIn("cudabpf run --ranges", ask("calls", "--range", "a", WITHOUT_RANGES, status=2)[1])
        self.assertIn("no range has an empty name", ask("calls", "--range", "", TRACE, status=2)[1])

    def test_ranges_add_up(self):
        everything = calls("--range", "request *")
        self.assertEqual(everything, calls() - 1)  # one is in no range
        self.assertEqual(calls("--range", "request 0") + calls("--range", "request 1"), everything)
        tokens = ("--range", "token *")
        self.assertEqual(calls(*tokens, "--from", "10ms") + calls(*tokens, "--to", "10ms"), calls(*tokens))

    def test_of_a_pipe(self):
        text = subprocess.run(["zstd", "-dcq", TRACE], stdout=subprocess.PIPE, check=True, text=True).stdout
        self.assertIn("  part: in prefill, from", ask("calls", "--range", "prefill", "-", input=text)[0])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    cudabpf = os.path.abspath(sys.argv.pop())
    unittest.main()
