#!/usr/bin/env python3
"""Merges traces of several hosts, made from recorded ones by changing their headers, and compares what is in the merge,
and what answers say of it, with the traces.

CUDABPF_BUILD names the build folder. UPDATE_GOLDEN=1 rewrites test/merge/merged.jsonl instead of comparing with it: read
the difference. Exit status 77: skipped, with the reason printed.
"""
import collections
import csv
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CUDABPF = pathlib.Path(os.environ.get("CUDABPF_BUILD", "build")).resolve() / "cudabpf"
SMALL = ROOT / "test/export/trace.jsonl"
OF_RANKS = ROOT / "traces/example-ranks.jsonl.zst"
GOLDEN = HERE / "merged.jsonl"
DAY = 1_795_271_709_000_000_000
SYNCHRONISED, NOT_SYNCHRONISED = 0x2001, 0x40


def clock_error(most_us, status=SYNCHRONISED):
    return {"offset_ns": 0, "max_error_us": most_us, "estimated_error_us": 1, "status": status}


class Merge(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    @staticmethod
    def text_of(source):
        if source.suffix == ".zst":
            return subprocess.run(["zstd", "-dc", source], check=True, stdout=subprocess.PIPE).stdout.decode()
        return source.read_text()

    def host(self, name, source, begins=0, most_us=200, status=SYNCHRONISED, boot=None, monotonic=50_000_000_000):
        """A trace as it would be from that host, which began so many ns after DAY."""
        first, rest = self.text_of(source).split("\n", 1)
        header = json.loads(first)
        header |= {"host": name.split(".")[0], "boot_id": boot or f"boot of {name}", "clock_error": clock_error(most_us, status),
                   "clocks": {"realtime_ns": DAY + begins, "monotonic_ns": monotonic, "boottime_ns": monotonic}}
        path = self.folder / f"{name}.jsonl"
        path.write_text(json.dumps(header, separators=(",", ":"), ensure_ascii=False) + "\n" + rest)
        return path

    def rank(self, name, pid, ppm=0, identity="", more_launches=0, **of_host):
        """The trace of one of the ranks in OF_RANKS, on a host whose clock is so many millionths too fast."""
        lines = [json.loads(line) for line in self.text_of(OF_RANKS).splitlines()]
        own = [line for line in lines[1:-1] if line.get("pid") == pid]
        for line in own:
            line["ts"] += line["ts"] * ppm // 1_000_000
            if identity and line.get("op") == "comm":
                line["identity"] = identity
        last = next(line for line in reversed(own) if line.get("op") == "launch")
        own += [{key: value for key, value in last.items() if key not in ("within", "parent")} |
                {"id": 1_000_000 + i, "ts": lines[-1]["ts"] - 100_000 + 100 * i, "duration_us": 0.05} for i in range(more_launches)]
        lines[-1] |= {"lines": len(own) + 2, "calls": sum("id" in line for line in own), "accounts": {},
                      "gpu_operations": {"operations": 0, "joined": 0, "unjoined": {}, "invalid": 0, "calls": 0, "answered": 0,
                                         "clock_error_ns": 500}}
        source = self.folder / "source.jsonl"
        source.write_text("".join(json.dumps(line) + "\n" for line in [lines[0], *own, lines[-1]]))
        return self.host(name, source, **of_host)

    def placed(self, *ranks):
        """-> how far the second is from where it belongs, in us; its line of --json"""
        said = json.loads(self.cudabpf("merge", *ranks, "-o", self.folder / "merged.jsonl", "--json").stdout)
        first, second = said["merged"]
        return second["offset_us"] - first["offset_us"], second

    def cudabpf(self, *arguments, status=0):
        result = subprocess.run([CUDABPF, *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual(result.returncode, status, result.stderr)
        return result

    def answer(self, *arguments):
        return json.loads(self.cudabpf(*arguments, "--json").stdout)

    def lines(self, path):
        return [json.loads(line) for line in path.read_text().splitlines()]

    def two_hosts(self, source, **of_second):
        return self.host("node1", source), self.host("node2", source, **({"begins": 300_000} | of_second))

    def test_collectives_place_hosts(self):
        """What ranks did together says more than clocks that may be wrong by 100 ms, or by nobody knows how much."""
        for most_us, status in ((100_000, SYNCHRONISED), (1, NOT_SYNCHRONISED)):
            clocks = {"most_us": most_us, "status": status}
            wrong_by, second = self.placed(self.rank("node1", 4200, **clocks),
                                           self.rank("node2", 4201, begins=40_000_000, monotonic=7_000_000_000, **clocks))
            self.assertEqual((second["alignment"], second["host"]), ("collectives", "node2"))
            self.assertLessEqual(abs(wrong_by), second["bound_us"])
            self.assertLess(second["bound_us"], 400)
            bound = self.answer("summary", self.folder / "merged.jsonl")["trace"]["order_bound_us"]
            self.assertEqual(bound, second["bound_us"])

    def test_rank_that_waits_is_shown(self):
        """The rank that is late launches a little more, and does not look as if others waited for it."""
        merged = self.folder / "merged.jsonl"
        self.cudabpf("merge", self.rank("node1", 4200), self.rank("node2", 4201, more_launches=3, begins=3_000_000), "-o", merged)
        summary = self.answer("summary", merged)["summary"]
        self.assertEqual((summary["shown"]["pid"], summary["shown"]["chosen"]), (4200, "waits for another rank"))
        self.assertEqual(summary["verdict"][0]["title"], "Waiting for rank 1")
        of_late = self.answer("summary", "--pid", "10004201", merged)["summary"]
        self.assertEqual((of_late["shown"]["pid"], of_late["shown"]["chosen"]), (10004201, "asked for"))
        self.assertGreater(of_late["shown"]["launches"], summary["shown"]["launches"])

    def test_collectives_of_clocks_that_run_wrong(self):
        """No kernel ends before another rank's began by more than the bound, though a clock is 300 ppm too fast."""
        _, second = self.placed(self.rank("node1", 4200, most_us=100_000), self.rank("node2", 4201, ppm=300, begins=3_000_000, most_us=100_000))
        self.assertEqual(second["alignment"], "collectives")
        kernels = collections.defaultdict(list)
        for line in self.lines(self.folder / "merged.jsonl"):
            if line["type"] == "gpu" and "AllReduce" in line.get("kernel", ""):
                kernels[line["pid"]].append((line["ts"], line["ts"] + line["duration_us"] * 1000))
        pairs = list(zip(*kernels.values()))
        self.assertEqual(len(pairs), 120)
        for (begin, end), (other_begin, other_end) in pairs:
            self.assertLess(max(begin, other_begin), min(end, other_end) + second["bound_us"] * 1000)

    def test_collectives_that_place_nothing(self):
        """Those of other communicators."""
        clocks = {"status": NOT_SYNCHRONISED}
        _, second = self.placed(self.rank("node1", 4200, **clocks), self.rank("node2", 4201, identity="0x1", begins=3_000_000, **clocks))
        self.assertEqual((second["alignment"], second.get("bound_us")), ("time of day", None))

    def test_golden(self):
        merged = self.folder / "merged.jsonl"
        self.cudabpf("merge", *self.two_hosts(SMALL), "-o", merged)
        if os.environ.get("UPDATE_GOLDEN"):
            shutil.copy(merged, GOLDEN)
        self.assertEqual(merged.read_text().splitlines(), GOLDEN.read_text().splitlines())

    def test_one_time(self):
        merged = self.folder / "merged.jsonl.zst"
        said = json.loads(self.cudabpf("merge", *self.two_hosts(SMALL), "-o", merged, "--json").stdout)
        first, second = said["merged"]
        self.assertEqual((first["offset_us"], first["alignment"], first["bound_us"]), (0, "same boot", 0))
        self.assertEqual((second["offset_us"], second["alignment"], second["host"]), (300, "time of day", "node2"))
        self.assertEqual(said["order_bound_us"], second["bound_us"])
        self.assertEqual(said["order_bound_us"], first["error_us"] + second["error_us"])
        self.assertGreater(said["order_bound_us"], 400)
        self.assertEqual(said["hosts"], ["node1", "node2"])
        trace = self.answer("calls", merged)["trace"]  # it is read like any other
        self.assertEqual(trace["merged"], said["merged"])
        self.assertTrue(trace["complete"])
        page = self.cudabpf("timeline", merged).stdout
        self.assertIn("The hosts' clocks may differ by up to", page)
        self.assertIn("on node1 and node2", page)

    def test_not_synchronised(self):
        traces = self.two_hosts(SMALL, status=NOT_SYNCHRONISED, most_us=16_000_000)
        for command in (["summary", *traces], ["merge", *traces, "-o", self.folder / "m.jsonl"]):
            page = self.cudabpf(*command).stdout
            self.assertIn("NOT KNOWN", page)
            self.assertIn("node2: its clock is not synchronised", " ".join(page.split()))
        self.assertIsNone(self.answer("calls", *traces)["trace"]["order_bound_us"])

    def test_same_boot_is_exact(self):
        traces = self.two_hosts(SMALL, boot="boot of node1", monotonic=50_000_100_000, status=NOT_SYNCHRONISED)
        trace = self.answer("calls", *traces)["trace"]
        self.assertEqual([one["offset_us"] for one in trace["merged"]], [0, 100])
        self.assertEqual((trace["order_bound_us"], trace["hosts"]), (0, ["node1", "node2"]))
        self.assertIn("the order of events is exact", self.cudabpf("gaps", *traces).stdout)

    def test_rows_of_hosts(self):
        """Pictures name the host of each process, and have those of a host together."""
        recorded = [ROOT / f"traces/h200-{name}.jsonl.zst" for name in ("two-gpus", "gpt2")]
        traces = self.host("node1", recorded[0], begins=3_000_000_000), self.host("node2", recorded[1])
        processes = self.answer("timeline", *traces)["timeline"]["processes"]
        named = [(one["pid"], one["host"]) for one in processes]
        self.assertEqual(sorted(named), [(646, "node1"), (697, "node1"), (698, "node1"), (10_000_629, "node2")])
        self.assertIn([host for _, host in named], (["node1"] * 3 + ["node2"], ["node2"] + ["node1"] * 3))
        page = self.cudabpf("timeline", *traces).stdout
        self.assertIn("process 10000629 python3 on node2\n", page)
        gpus = page.split("GPUs, from NVML (all processes)\n")[1]
        self.assertRegex(gpus, r"^  GPU \d+, SM activity")  # below no process's name
        self.cudabpf("timeline", *traces, "--svg", self.folder / "t.svg")
        self.assertIn("on node2", (self.folder / "t.svg").read_text())
        self.cudabpf("export", *traces, "--format", "all", "--plain", "-o", self.folder)
        chrome = json.loads((self.folder / "node1.chrome.json").read_text())["traceEvents"]
        names = {event["pid"]: event["args"]["name"] for event in chrome if event["name"] == "process_name"}
        self.assertEqual({pid: names[pid] for pid, _ in named}, {pid: f"python3 on {host}" for pid, host in named})
        self.assertIn(b"python3 on node2", (self.folder / "node1.perfetto-trace").read_bytes())
        for name in "node1.perfetto-trace", "node1.chrome.json":  # as a note, besides
            self.assertIn(b"clocks may differ by up to", (self.folder / name).read_bytes())
        self.assertIn("the hosts' clocks", {event["args"].get("name") for event in chrome if event["name"] == "thread_name"})
        rows = list(csv.DictReader((self.folder / "node1.csv").read_text().splitlines()))
        self.assertEqual({(row["host"], int(row["pid"]) // 10_000_000) for row in rows if row["pid"]}, {("node1", 0), ("node2", 1)})
        self.assertIn("10000629 python3 on node2", self.cudabpf("summary", *traces).stdout)
        self.assertIn("process 10000629 python3 on node2", self.cudabpf("calls", "--by", "pid", *traces).stdout)
        shown = self.answer("summary", *traces, "--pid", "10000629")["summary"]["shown"]
        self.assertEqual((shown["pid"], shown["comm"]), (10_000_629, "python3"))
        self.assertIn("report takes one trace, or two to compare, not 3", self.cudabpf("report", *traces, traces[0], status=2).stderr)

    def test_process_recorded_twice(self):
        traces = self.host("node1.a", SMALL, boot="one"), self.host("node1.b", SMALL, boot="one", monotonic=50_000_001_000)
        for command in (["merge", *traces, "-o", self.folder / "m.jsonl"], ["kernels", *traces]):
            self.assertRegex(self.cudabpf(*command, status=2).stderr, r"process \d+ of node1 is in .*node1\.a\.jsonl and in .*node1\.b")
        self.assertFalse((self.folder / "m.jsonl").exists())

    def test_lines_are_the_traces_own(self):
        """Each line is one of a trace's, but for its time, its numbers and its host; ids lead to the same calls."""
        for source in (SMALL, ROOT / "traces/h200-two-gpus.jsonl.zst"):
            traces = self.two_hosts(source)
            merged = self.folder / "merged.jsonl"
            self.cudabpf("merge", *traces, "-o", merged)
            self.check_lines([self.lines(trace) for trace in traces], self.lines(merged))

    def check_lines(self, traces, merged):
        number = {"node1": 0, "node2": 1}
        left = [collections.deque(lines[1:-1]) for lines in traces]
        ids = [{}, {}]
        for line in merged[1:-1]:
            host = number[line.pop("host")]
            own = left[host].popleft()
            for key in ("id", "parent", "within", "call"):
                self.assertEqual(key in line, key in own)
                if key in own:
                    self.assertEqual(ids[host].setdefault(own[key], line[key]), line[key])
            for key in ("pid", "tid", "ppid"):
                if own.get(key):
                    self.assertEqual(line[key], own[key] + host * 10_000_000)
            if "device" in own:
                self.assertEqual(line["device"], own["device"] + host * 1000)
            if "graph" in own and not isinstance(own["graph"], str):
                self.assertEqual(line["graph"], own["graph"] * 2 + host)
            self.assertEqual(line["ts"], own["ts"] + host * 300_000)
            changed = {"id", "parent", "within", "call", "pid", "tid", "ppid", "device", "src_device", "dst_device", "gpu", "graph",
                       "ts", "since", "until", "processes", "residents", "resident_from", "resident_to"}
            self.assertEqual([(key, line[key]) for key in line if key not in changed], [(key, own[key]) for key in own if key not in changed])
            self.assertEqual(list(line), list(own))
        self.assertEqual([len(one) for one in left], [0, 0])
        self.assertEqual(len(set(ids[0].values()) | set(ids[1].values())), len(ids[0]) + len(ids[1]))

    def test_answers_add_up(self):
        """The figures of all traces together are those of each, added up; a file of the merge has the same as the traces."""
        recorded = [ROOT / f"traces/h200-{name}.jsonl.zst" for name in ("two-gpus", "transformer")]
        sources = [*recorded, ROOT / "test/golden/gpu_kernels.jsonl", ROOT / "test/golden/sampled/inference.jsonl.zst"]
        traces = [self.host(f"node{i}", source, begins=i * 1000) for i, source in enumerate(sources)]
        merged = self.folder / "merged.jsonl.zst"
        self.cudabpf("merge", *traces, "-o", merged)
        for command, figures in FIGURES.items():
            alone = [self.answer(command, trace) for trace in traces]
            together, of_file = self.answer(command, *traces), self.answer(command, merged)
            for answer in (together, of_file):
                self.assertEqual(answer.pop("trace")["calls"], sum(one["trace"]["calls"] for one in alone))
            self.assertEqual(together, of_file, command)
            for figure in figures:
                self.assertAlmostEqual(figure(together), sum(figure(one) for one in alone), places=3, msg=command)

    def test_ranks_need_no_clock(self):
        """What one trace says of two ranks, a trace of each says, too: on one host, or on two whose clocks nobody compared."""
        def recorded(*rank):
            done = subprocess.run([sys.executable, "-B", ROOT / "test/golden/two_ranks.py", *rank], check=True, stdout=subprocess.PIPE, text=True)
            return done.stdout

        def said(*traces):
            (of,) = self.answer("ranks", *traces)["communicators"]
            return {key: of[key] for key in ("ranks", "verdict", "late", "step_us", "matched", "time_us", "transfer_us", "waits", "steps")}

        both, folder = self.folder / "both.jsonl", self.folder / "ranks"
        both.write_text(recorded())
        folder.mkdir()
        expected = said(both)
        self.assertEqual(expected["verdict"], "skew")
        self.assertEqual(expected["late"]["rank"], 1)
        self.assertAlmostEqual(expected["late"]["per_step_us"], 3030, delta=60)
        for host in ("example", "other"):
            for rank in "01":
                first, rest = recorded(rank).split("\n", 1)
                header = json.loads(first)
                if (rank, host) == ("1", "other"):
                    header |= {"host": host, "boot_id": "another"}
                (folder / f"rank{rank}.jsonl").write_text(json.dumps(header) + "\n" + rest)
            with self.subTest(host):
                self.assertEqual(said(folder), expected)
                self.assertEqual(said(folder / "rank1.jsonl", folder / "rank0.jsonl"), expected)
        alone = self.answer("ranks", folder / "rank0.jsonl")["communicators"][0]
        self.assertEqual((alone["ranks"], len(alone["recorded"]), alone["verdict"]), (2, 1, "inconclusive"))
        self.assertIn("no traces", self.cudabpf("ranks", self.empty(), status=2).stderr)

    def empty(self):
        folder = self.folder / "empty"
        folder.mkdir()
        return folder

    def test_files_of_rotated_traces(self):
        whole, other = self.two_hosts(ROOT / "traces/h200-vector-add.jsonl.zst")
        lines = whole.read_text().splitlines()
        header, end = json.loads(lines[0]), json.loads(lines[-1])
        at = len(lines) // 2
        since = json.loads(lines[at])["ts"]
        parts = []
        for part, own in (1, lines[1:at]), (2, lines[at:-1]):
            calls = sum('"id":' in line for line in own)
            mine = {**end, "part": part, "last": part == 2, "calls": calls, "whole": {"duration_ns": end["duration_ns"], "calls": end["calls"]}}
            parts.append(self.folder / f"node1.{part:04}.jsonl")
            parts[-1].write_text("\n".join([json.dumps({**header, "part": part, "since": since * (part == 2)}), *own, json.dumps(mine)]) + "\n")
        expected = self.answer("calls", whole, other)
        for files in ([*parts, other], [parts[0], other, parts[1]], [other, *parts]):
            answer = self.answer("calls", *files)
            self.assertEqual(answer["trace"]["calls"], expected["trace"]["calls"])
            self.assertTrue(answer["trace"]["complete"])
            self.assertEqual(len(answer["trace"]["merged"]), 2)
        self.assertFalse(self.answer("calls", parts[1], other)["trace"]["complete"])
        self.assertIn("is part 1 of the trace, and", self.cudabpf("calls", *reversed(parts), status=2).stderr)


def over(rows, *path):
    """The sum of what is at this path in each row."""
    def at(row):
        for key in path:
            row = row.get(key) if row else None
        return row or 0
    return sum(at(row) for row in rows)


def measured(gaps):
    """Its GPUs; none, if the trace does not say what these did."""
    return gaps.get("measured", {}).get("gpus", [])


# Figures that add up: all that are sums over calls, processes and GPUs.
FIGURES = {
    "calls": [lambda answer, key=key: over(answer["calls"], key) for key in ("count", "errors", "timed", "total_us")],
    "ioctls": [lambda answer, key=key: over(answer["operations"], key) for key in ("count", "failed", "total_us")]
              + [lambda answer: over(answer["calls"], "count"), lambda answer: over(answer["devices"], "total_us")],
    "kernels": [lambda answer, key=key: answer["launches"][key] for key in ("count", "runs", "in_graphs", "known_graph_launches")]
               + [lambda answer, of=of: over(answer["kernels"], of, "total_us") for of in ("call", "gpu", "queue")],
    "memory": [lambda answer, key=key: over(answer["memory"]["all"]["kinds"].values(), key)
               for key in ("allocations", "allocated", "frees", "freed", "held", "ended_with_context", "ended_with_process")]
              + [lambda answer: over(answer["memory"]["processes"], "kinds", "device", "peak")],
    "errors": [lambda answer, key=key: answer[key] for key in ("calls", "failed_calls", "failed_operations", "unfinished_calls")],
    "gaps": [lambda answer: len(answer["processes"]), lambda answer: over(answer["processes"], "idle", "total_us"),
             lambda answer: over(answer["processes"], "working_time_us"), lambda answer: over(measured(answer), "busy_us"),
             lambda answer: over(measured(answer), "idle_us"),
             lambda answer: over(measured(answer), "idle_by_cause_us", "host_in_calls")],
    "energy": [lambda answer: len(answer["gpu_energy_report"]["gpus"]),
               lambda answer: over(answer["gpu_energy_report"]["gpus"], "all", "energy_j")],
    "summary": [lambda answer, key=key: answer["summary"][key]
                for key in ("calls", "unfinished", "launches", "kernel_runs", "launching_us", "driver_calls", "graph_launches")]
               + [lambda answer: over(answer["summary"]["transfers"].values(), "bytes"),
                  lambda answer: over(answer["summary"].get("gpus", []), "energy_j"), lambda answer: len(answer["summary"]["processes"])],
    "timeline": [lambda answer: len(answer["timeline"]["processes"])],
}


if __name__ == "__main__":
    if not shutil.which("zstd"):
        print("SKIPPED: there is no zstd; scripts/setup installs it")
        sys.exit(77)
    unittest.main()
