"""Compares what the subcommands answer about the recorded traces with test/golden/answers/, byte for byte.
usage: answers.py CUDABPF   UPDATE_GOLDEN=1 rewrites the files instead: read the difference before you commit it."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXPECTED = ROOT / "test/golden/answers"
GPT2, SIMPLE, TRANSFORMER, TWO_GPUS, VECTOR_ADD = (
    f"traces/h200-{name}.jsonl.zst" for name in ("gpt2", "simple-inference", "transformer", "two-gpus", "vector-add"))
SAMPLED = "test/golden/sampled/inference.jsonl.zst"
# A program that keeps a GPU busy, with what the GPU did: gpu_tracks.py makes it.
GPU_OPERATIONS = "test/golden/gpu_tracks.jsonl.zst"
ANSWERS = {
    "summary-gpt2": ["summary", GPT2],
    "summary-gpt2-all": ["summary", "--all", GPT2],
    "summary-simple": ["summary", SIMPLE],
    "summary-transformer": ["summary", TRANSFORMER],
    "summary-two-gpus": ["summary", TWO_GPUS],
    "summary-vector-add": ["summary", VECTOR_ADD],
    "timeline-gpt2": ["timeline", GPT2],
    "timeline-gpt2-all": ["timeline", GPT2, "--from", "0"],
    "timeline-two-gpus": ["timeline", TWO_GPUS],
    "timeline-closer": ["timeline", GPT2, "--from", "14.5s", "--to", "14.6s"],
    "kernels": ["kernels", TRANSFORMER],
    "kernels-by-name": ["kernels", "--by", "name", TWO_GPUS],
    "memory": ["memory", GPT2],
    "memory-two-gpus": ["memory", TWO_GPUS],
    "gaps": ["gaps", TRANSFORMER],
    "calls": ["calls", TRANSFORMER],
    "calls-by-device": ["calls", "--by", "device", "--top", "4", TWO_GPUS],
    "calls-by-stream": ["calls", "--by", "stream", "--top", "5", GPT2],
    "ioctls": ["ioctls", VECTOR_ADD],
    "errors": ["errors", GPT2],
    "energy": ["energy", GPT2],
    "energy-sampled": ["energy", SAMPLED],
    "summary-sampled": ["summary", SAMPLED],
    "timeline-sampled": ["timeline", SAMPLED],
    "timeline-gpu-operations": ["timeline", GPU_OPERATIONS],
    "timeline-gpu-operations-few": ["timeline", GPU_OPERATIONS, "--from", "53.5ms", "--to", "53.88ms"],
    "gaps-sampled": ["gaps", "--top", "1", SAMPLED],
    "diff": ["diff", VECTOR_ADD, TRANSFORMER],
    "diff-conditions": ["diff", TRANSFORMER, GPT2, "--top", "0", "--fail-if", "launches-per-iteration > +5 %",
                        "--fail-if", "iteration-time > 1 ms", "--fail-if", "errors > +0",
                        "--fail-if", "memory-peak:device < 1 GiB"],
    "diff-repeated": ["diff", "--top", "1", TRANSFORMER, SIMPLE, VECTOR_ADD, "--", GPT2, TWO_GPUS,
                      "--fail-if", "calls > +100 %", "--fail-if", "duration > +100 %"],
}
# A program that launches CUDA graphs; the trace is written by hand.
for subcommand in ("summary", "kernels", "timeline", "calls"):
    ANSWERS[f"{subcommand}-graphs"] = [subcommand, "test/golden/graphs.jsonl"]
ANSWERS["diff-graphs"] = ["diff", "test/golden/graphs.jsonl", "test/golden/graphs.jsonl", "--fail-if", "launches > +0",
                          "--fail-if", "kernel-runs > +0"]
# A program with its GPU's work measured: test/golden/gpu_kernels.py writes the traces.
MEASURED, SLOWER, WHOLE_GRAPHS = (f"test/golden/gpu_kernels{name}.jsonl" for name in ("", "_slower", "_whole"))
ANSWERS["kernels-measured"] = ["kernels", MEASURED]
ANSWERS["kernels-measured-by-name"] = ["kernels", "--by", "name", "--top", "2", MEASURED]
ANSWERS["kernels-whole-graphs"] = ["kernels", WHOLE_GRAPHS]
ANSWERS["diff-measured"] = ["diff", MEASURED, SLOWER, "--fail-if", "kernel-gpu-time:gemm > +5 %", "--fail-if",
                            "transfer-gpu-time:DtoH > +5 %", "--fail-if", "iteration-gpu-time > +100 us"]
ANSWERS["diff-measured-otherwise"] = ["diff", MEASURED, WHOLE_GRAPHS, "--top", "1", "--fail-if", "gpu-time > +5 %"]
# A program with the GPU's own times, as gpu_execution.py makes it.
GPU_EXECUTION = "test/golden/gpu_execution.jsonl"
ANSWERS["gaps-measured"] = ["gaps", "--top", "5", GPU_EXECUTION]
ANSWERS["gaps-measured-part"] = ["gaps", "--iteration", "9-11", "--top", "2", GPU_EXECUTION]
ANSWERS["summary-measured"] = ["summary", GPU_EXECUTION]
ANSWERS["summary-measured-all"] = ["summary", "--all", GPU_EXECUTION]
# Programs that one thing bounds each, as scripts/workloads/bounded.py makes them.
for bound in ("gpu", "queue", "host", "copies", "memory", "exhausted", "fault"):
    ANSWERS[f"bound-{bound}"] = ["summary", f"test/golden/bounds/{bound}.jsonl.zst"]
# Traces of two boots, whose clocks were not synchronised; and of one.
ANSWERS["merge"] = ["merge", TRANSFORMER, GPT2, TWO_GPUS, "-o", "/dev/null"]
ANSWERS["summary-merged"] = ["summary", TRANSFORMER, GPT2]
ANSWERS["timeline-merged"] = ["timeline", GPT2, TWO_GPUS]
# Two ranks, of which one comes late; two_ranks.py makes the trace.
EXAMPLE_RANKS = "traces/example-ranks.jsonl.zst"
ANSWERS["collectives"] = ["collectives", EXAMPLE_RANKS]
ANSWERS["collectives-without-communicators"] = ["collectives", TWO_GPUS]
ANSWERS["ranks"] = ["ranks", "--top", "5", EXAMPLE_RANKS]
for subcommand in ("summary", "gaps", "timeline"):
    ANSWERS[f"{subcommand}-ranks"] = [subcommand, EXAMPLE_RANKS]
# A program that names what it does; named_ranges.py makes the trace.
EXAMPLE_RANGES = "traces/example-ranges.jsonl.zst"
ANSWERS["ranges"] = ["ranges", EXAMPLE_RANGES]
ANSWERS["ranges-none"] = ["ranges", GPT2]
for subcommand in ("calls", "kernels"):
    ANSWERS[f"{subcommand}-by-range"] = [subcommand, "--by", "range", "--iteration", "2", EXAMPLE_RANGES]
ANSWERS["gaps-by-range"] = ["gaps", "--by", "range", "--top", "5", EXAMPLE_RANGES]
ANSWERS["timeline-ranges"] = ["timeline", "--range", "request 1", "--from", "15ms", "--to", "18ms", EXAMPLE_RANGES]
ANSWERS["kernels-of-ranges"] = ["kernels", "--range", "*/decode/token*/layer 2", EXAMPLE_RANGES]
ANSWERS["gaps-of-ranges"] = ["gaps", "--range", "attention", "--top", "3", EXAMPLE_RANGES]
ANSWERS["summary-ranges"] = ["summary", EXAMPLE_RANGES]
# Where in its Python a program makes calls; traces/README.md says how the trace was made.
EXAMPLE_PYTHON = "traces/example-python.jsonl.zst"
for subcommand in ("calls", "kernels"):
    ANSWERS[f"{subcommand}-by-line"] = [subcommand, "--by", "line", "--iteration", "2", EXAMPLE_PYTHON]
for subcommand in ("gaps", "memory"):
    ANSWERS[f"{subcommand}-by-line"] = [subcommand, "--by", "line", "--top", "5", EXAMPLE_PYTHON]
# A program that multiplies matrices; matrix_products.py makes the trace.
EXAMPLE_GEMMS = "traces/example-gemms.jsonl.zst"
ANSWERS["gemms"] = ["gemms", EXAMPLE_GEMMS]
ANSWERS["gemms-none"] = ["gemms", GPT2]
# Two processes of several libraries, and memory that runs out; who_held.py makes the trace.
WHO_HELD = "test/golden/who_held.jsonl"
for subcommand in ("summary", "memory", "errors"):
    ANSWERS[f"{subcommand}-who-held"] = [subcommand, WHO_HELD]
ANSWERS["memory-by-holder"] = ["memory", "--by", "holder", "--top", "3", WHO_HELD]
# PyTorch and NCCL on a GPU, with what the driver itself takes.
ANSWERS["memory-driver"] = ["memory", "--top", "3", "traces/h200-memory.jsonl.zst"]
STATUS = {"diff-conditions": 118, "diff-repeated": 118, "diff-graphs": 119, "diff-measured": 118,
          "diff-measured-otherwise": 119}  # of others: 0
cudabpf = ""  # pylint: disable=invalid-name


def answer(name, *more, **environment):
    arguments = [*ANSWERS[name], *more]
    done = subprocess.run([cudabpf, *arguments], cwd=ROOT, env={"PATH": os.environ["PATH"], **environment},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert done.returncode == STATUS.get(name, 0) and not done.stderr, (arguments, done.returncode, done.stderr)
    return done.stdout


class Answers(unittest.TestCase):
    maxDiff = None

    def test_text(self):
        for name in ANSWERS:
            with self.subTest(name):
                text, file = answer(name, COLUMNS="100"), EXPECTED / f"{name}.txt"
                if os.environ.get("UPDATE_GOLDEN"):
                    file.write_bytes(text)
                self.assertEqual(text.decode().splitlines(), file.read_text(encoding="utf-8").splitlines())

    def test_width(self):
        """Only a word that cannot be broken may be wider than the terminal."""
        for name in ANSWERS:
            for width in (40, 80, 160):
                for line in answer(name, COLUMNS=str(width)).decode().splitlines():
                    with self.subTest(name, width=width):
                        self.assertLessEqual(len(line), width)

    def test_json(self):
        for name, arguments in ANSWERS.items():
            with self.subTest(name):
                parsed = json.loads(answer(name, "--json"))
                self.assertEqual(len(parsed), len(parsed.keys()))
                if arguments[0] not in ("diff", "merge"):
                    self.assertTrue(parsed["trace"]["complete"])
                    self.assertEqual(parsed["trace"]["losses"], {})

    def test_pictures(self):
        """A timeline's picture of any trace is small, and XML."""
        for trace in (GPT2, SIMPLE, TRANSFORMER, TWO_GPUS, VECTOR_ADD, GPU_OPERATIONS):
            for part in ((), ("--from", "0")):
                with self.subTest(trace, part=part), tempfile.TemporaryDirectory() as folder:
                    picture = pathlib.Path(folder, "t.svg")
                    subprocess.run([cudabpf, "timeline", trace, *part, "--svg", picture], cwd=ROOT, check=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    self.assertLess(picture.stat().st_size, 1 << 20)
                    root = xml.dom.minidom.parse(str(picture)).documentElement
                    self.assertGreater(len(root.getElementsByTagName("rect")), 20)

    def test_files_are_used(self):
        self.assertEqual({file.stem for file in EXPECTED.iterdir()}, set(ANSWERS))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    cudabpf = os.path.abspath(sys.argv.pop())
    unittest.main()
