"""Answers the questions of docs/trace-format.md with jq, and compares the answers with `cudabpf summary` of the trace.
usage: questions.py CUDABPF TRACE...   One of the live tests answers them for a trace that was just recorded.

Exit status 77: skipped, with the reason printed."""
import collections
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DOCUMENT = ROOT / "docs/trace-format.md"
QUESTIONS = ("types", "names", "allocations", "launches", "launch_gaps", "kernel_lines", "slowest", "errors", "unfinished")


def questions():
    """The questions as written in the document, by subject."""
    text = DOCUMENT.read_text(encoding="utf-8").partition("\n## Questions to a trace\n")[2]
    commands = [line for line in text.split("```")[1].splitlines() if line.startswith("grep ")]
    assert len(commands) == len(QUESTIONS), f"{DOCUMENT} has {len(commands)} questions, and {len(QUESTIONS)} are known here"
    return dict(zip(QUESTIONS, commands))


def output(command, trace):
    done = subprocess.run(["bash", "-o", "pipefail", "-c", f"T=$1; {command}", "bash", trace], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # grep exits with 1 if it finds nothing, but a trace has lines.
    assert done.returncode == 0 and not done.stderr, f"{command}\n{done.stderr}"
    return done.stdout


def objects(text):
    """The values that jq printed one after another, over any number of lines."""
    decoder, at, found = json.JSONDecoder(), 0, []
    while text[at:].lstrip():
        at += len(text[at:]) - len(text[at:].lstrip())
        value, at = decoder.raw_decode(text, at)
        found.append(value)
    return found


def answers(cudabpf, subcommand, trace):
    done = subprocess.run([cudabpf, subcommand, "--json", trace], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)[subcommand]


def slowest_of(calls):
    """If several calls took as long as the last one shown, any of them may be there."""
    calls = [(call["duration_us"], call["name"]) for call in calls]
    least = calls[-1][0] if calls else 0
    return [duration for duration, _ in calls], collections.Counter(call for call in calls if call[0] > least)


def ask(test, cudabpf, trace):
    """Answers all of them; `test` is a unittest.TestCase."""
    commands = questions()
    results = {name: output(command, trace) for name, command in commands.items()}
    summary, calls = answers(cudabpf, "summary", trace), answers(cudabpf, "calls", trace)

    types = {name: int(count) for count, name in (line.split(maxsplit=1) for line in results["types"].splitlines())}
    test.assertEqual(summary["lines_by_type"], types)
    test.assertEqual(sorted(summary["lines_by_name"]), sorted(set(results["names"].splitlines()) - {"null"}))

    sizes = [alloc["size"] for alloc in objects(results["allocations"])]
    test.assertEqual(summary["allocations"]["count"], len(sizes))
    if max(filter(None, sizes), default=0) < 2**53:  # what jq can hold
        test.assertEqual(summary["allocations"]["bytes"], sum(filter(None, sizes)))

    # jq prints an object over several lines, and `wc` counts them.
    counted = commands["launches"].removesuffix(" | wc -l")
    test.assertNotEqual(counted, commands["launches"])
    launches = output(counted, trace)
    test.assertEqual(int(results["launches"]), launches.count("\n"))
    test.assertEqual(summary["launches"], len(objects(launches)))

    launch_kernel = sum(one["count"] for one in calls if one["name"] == "cuLaunchKernel")
    test.assertEqual(summary["lines_by_name"].get("cuLaunchKernel", 0), launch_kernel)
    gaps = [float(gap) for gap in results["launch_gaps"].split()]
    test.assertEqual(len(gaps), max(0, launch_kernel - 1))

    kernel_lines = objects(results["kernel_lines"])
    test.assertEqual(summary["lines_by_type"].get("kernel", 0), len(kernel_lines))
    by_name = collections.Counter(line["name"] for line in kernel_lines)
    test.assertEqual({name: summary["lines_by_name"][name] for name in by_name}, dict(by_name))

    both = sorted(summary["slowest"] + summary["slowest_of_driver"], key=lambda one: -one["duration_us"])
    test.assertEqual(slowest_of(both[:10]), slowest_of(json.loads(results["slowest"])))

    test.assertEqual(sum(one["count"] for one in calls), summary["calls"])
    unfinished = [line for line in objects(results["unfinished"]) if "id" in line]
    test.assertEqual(summary["unfinished"], len(unfinished))
    failed = collections.Counter(line["error"] for line in objects(results["errors"]))
    for one in summary["errors"]:
        test.assertGreaterEqual(failed[one["error"]], one["count"])


class Questions(unittest.TestCase):
    maxDiff = None
    cudabpf, traces = "", ()

    def test_recorded_traces(self):
        for trace in self.traces:
            with self.subTest(trace=trace), tempfile.NamedTemporaryFile(suffix=".jsonl") as plain:
                # A name without blanks, since the questions do not quote it.
                subprocess.run(["zstd", "-dcfq", trace], check=True, stdout=plain)
                plain.flush()
                ask(self, self.cudabpf, plain.name)


def main():
    for tool in ("jq", "zstd"):
        if not shutil.which(tool):
            print(f"SKIPPED: {tool} is not installed; scripts/setup installs it")
            sys.exit(77)
    Questions.cudabpf, *Questions.traces = sys.argv[1:]
    if not Questions.traces:
        sys.exit(__doc__)
    unittest.main(argv=sys.argv[:1])


if __name__ == "__main__":
    main()
