"""`cudabpf metrics`: collectives as many as the simulated NCCL was given, and those in graphs as often as the driver ran them."""
import collections
import glob
import json
import sys

import scraping
from scraping import LIBRARY, ROOT, harness

sys.path.insert(0, str(ROOT / "test/fake_nccl"))

from steps import COLLECTIVES, PROGRAM, SIZES  # noqa: E402  pylint: disable=wrong-import-position

METRICS = [f"cudabpf_collective{name}_total" for name in ("s", "_bytes")]
BEGIN = ["ncclCommInitRank", "a", 1, 0, 2]
HALF_MIB = 1 << 17  # floats


class Live(scraping.Scraping):
    def log(self, name):
        path, = glob.glob(f"{self.record_folder}/{name}.*.jsonl")
        with open(path, encoding="utf-8") as file:
            return sorted(map(json.loads, file), key=lambda call: call["begin_ns"])

    def truth(self):
        """How often collectives ran and what they passed, by operation; and how many kernels of NCCL the driver ran."""
        ran, kernels, graphs, captured = collections.Counter(), 0, {}, None
        for call in sorted(self.log("nccl") + self.log("calls"), key=lambda call: call["begin_ns"]):
            symbol = call["symbol"]
            operation = COLLECTIVES.get(symbol.removeprefix("nccl"))
            if operation and not call["ret"] and not call["nested"]:
                count, kind = call["args"][2:4]
                done = {(METRICS[0], operation): 1, (METRICS[1], operation): count * SIZES[kind]}
                (ran if captured is None else captured).update(done)
            elif symbol.startswith("cuStreamBeginCapture"):
                captured = collections.Counter()
            elif symbol == "cuStreamEndCapture":
                last, captured = captured, None
            elif symbol.startswith("cuGraphInstantiate"):
                graphs[call["outs"][0]] = last
            elif symbol == "cuGraphLaunch":
                ran.update(graphs[call["args"][0]])
                kernels += sum(node.get("kernel", "").startswith("nccl") for node in call["ran"])
            elif symbol == "cuLaunchKernel":
                kernels += not call.get("captured")
        return ran, kernels

    def counted(self, page):
        return {(name, labels): value for name in METRICS for labels in set(COLLECTIVES.values()) if (value := page.of(name, operation=labels))}

    def check(self, *steps, flags=()):
        metrics = self.start_metrics("--library", harness.NCCL, "--profile", "full", *flags)
        program = self.start([harness.PYTHON, "-c", PROGRAM, LIBRARY, harness.NCCL, json.dumps([[BEGIN, *steps]])], env=self.environment())
        self.assertEqual(program.wait(), 0)
        ran, kernels = self.truth()
        page = self.page_with(lambda page: not page.of("cudabpf_processes"), "the program's end")
        self.assertEqual(self.counted(page), ran)
        self.assertEqual(page.of(METRICS[0]), kernels)
        self.assertEqual(page.of("cudabpf_unknown_graph_launches_total"), 0)
        self.assertEqual(page.of("cudabpf_calls_total"), self.total() + len(self.log("nccl")))
        self.assertEqual(page.of("cudabpf_call_seconds_count"), page.of("cudabpf_calls_total"))
        self.assertEqual(page.of("cudabpf_lost_events_total"), 0)
        self.ended(metrics)
        return page

    def test_captured(self):
        """They run at each launch of their graph, and not where they are captured."""
        page = self.check(["ncclAllReduce", 1, 7, 0, "a"], ["capture"], ["ncclAllReduce", HALF_MIB, 7, 0, "a"], ["ncclAllGather", 3, 7, "a"],
                          ["instantiate"], ["repeat", 20, ["launch"], ["ncclAllReduce", 4, 7, 0, "a"]])
        self.assertEqual(page.of(METRICS[0], operation="all_reduce", size="8MiB"), 20)
        self.assertEqual(page.of(METRICS[0], operation="all_reduce", size="8KiB"), 21)
        self.assertGreater(page.of("cudabpf_collective_call_seconds_total", operation="all_gather"), 0)

    def on_other_stream(self, *flags):
        self.check(["repeat", 50, ["other stream"], ["ncclAllReduce", 1, 7, 0, "a"]], ["capture"], ["other stream"], ["ncclAllReduce", 2, 7, 0, "a"],
                   ["other stream"], ["instantiate"], ["repeat", 30, ["launch"], ["other stream"], ["ncclAllGather", 5, 7, "a"], ["other stream"]],
                   ["capture"], ["ncclReduceScatter", 6, 7, 0, "a"], ["instantiate"], flags=flags)

    def test_other_stream(self):
        """On streams that join the capture by an event; what was captured and never launched has not run."""
        self.on_other_stream()

    def test_recorder(self):
        """Beside the flight recorder all calls are recorded, from the first one on."""
        self.on_other_stream("--keep-last", "10s", "-o", f"{self.folder}/dump.jsonl.zst")

    def test_graphs(self):
        """Several graphs, the newest launched each time."""
        graph = [["capture"], ["ncclAllReduce", 2, 7, 0, "a"], ["ncclReduceScatter", 9, 7, 0, "a"], ["instantiate"], ["launch"], ["launch"]]
        page = self.check(["repeat", 10, *graph, ["sync"]])
        self.assertEqual(page.of(METRICS[0]), 40)

    def test_launched_without(self):
        """A graph that holds none."""
        self.check(["ncclAllReduce", 1, 7, 0, "a"], ["capture"], ["instantiate"], ["launch"], ["launch"])


if __name__ == "__main__":
    harness.main()
