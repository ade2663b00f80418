#!/usr/bin/env python3
"""Checks that what cudabpf export writes, as other programs read it, agrees with the trace's lines.

CUDABPF_BUILD names the build folder. Exit status 77: skipped, with the reason printed.
"""
import collections
import csv
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import readers

HERE = os.path.dirname(os.path.abspath(__file__))
CUDABPF = os.path.join(os.path.abspath(os.environ.get("CUDABPF_BUILD", "build")), "cudabpf")
SCHEMA = f"{HERE}/perfetto.proto"
HANDMADE = f"{HERE}/trace.jsonl"
GPU_OPERATIONS = f"{HERE}/../golden/gpu_tracks.jsonl.zst"
# Those without GPU times, where the picture has what was enqueued.
RECORDED = sorted(glob.glob(f"{HERE}/../../traces/h200-*.jsonl.zst"))
BOOTTIME = 50309459874  # at ts 0 of the hand-made trace


def needs(program):
    if not shutil.which(program):
        raise unittest.SkipTest(f"no {program}; scripts/setup installs it")


def lines_of(path):
    if path.endswith(".zst"):
        needs("zstd")
        text = subprocess.run(["zstd", "-dc", path], check=True, stdout=subprocess.PIPE).stdout.decode()
    else:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    return [json.loads(line, parse_float=str) for line in text.splitlines()]


def operations_of(lines):
    """What GPUs did, by their own times."""
    return [line for line in lines if line["type"] == "gpu" and line["op"] in ("kernel", "copy", "set", "graph")]


def duration(line):
    return readers.nanoseconds(line["duration_us"])


def is_driver(line):
    return line["type"] == "kernel" and "id" not in line and line["op"] != "interrupt"


class Export(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def export(self, trace, *flags, status=0):
        """Returns what it printed."""
        result = subprocess.run([CUDABPF, "export", trace, *flags], cwd=self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual(result.returncode, status, result.stderr)
        return result

    def chrome(self, trace):
        self.export(trace, "--format", "chrome", "-o", "t.json")
        return readers.read_chrome(f"{self.folder}/t.json")

    def perfetto(self, trace, *flags):
        needs("protoc")
        self.export(trace, "--format", "perfetto", "-o", "t.perfetto-trace", *flags)
        return readers.read_perfetto(f"{self.folder}/t.perfetto-trace", SCHEMA)

    # --- the same questions for both pictures

    def check_calls(self, picture, lines, zero):
        calls = {line["id"]: line for line in lines if "id" in line and line["type"] != "block"}  # which are not drawn
        drawn = picture.by_id()
        self.assertEqual(sorted(drawn), sorted(id for id, line in calls.items()
                                               if "duration_us" in line or "unfinished" in line))
        for id, line in calls.items():
            self.check_call(line, drawn, picture, zero)

    def check_call(self, line, drawn, picture, zero):
        id = line["id"]
        if id not in drawn:
            marks = [mark for mark in picture.marks if mark[3].get("id") == id and mark[0].kind == "thread"]
            self.assertEqual([(mark[3].get("function", mark[1]), mark[2]) for mark in marks],
                             [(line["name"], zero + line["ts"])])
            return
        slice, details = drawn[id], drawn[id].details
        grid, ptr = details.get("grid"), details.get("ptr")
        # A launch is named by its kernel.
        name = details.get("function", slice.name)
        if "function" in details:
            self.assertIn(slice.name.split("<")[0], details["kernel"])
        exported = {"id": id, "name": name, "begin": slice.begin, "end": slice.end, "tid": slice.track.tid,
                "type": slice.category, "parent": slice.parent and slice.parent.details["id"],
                "grid": json.loads(f"[{grid}]") if isinstance(grid, str) else grid,
                "ptr": hex(ptr) if isinstance(ptr, int) else ptr}
        exported.update((field, details.get(field)) for field in ("kernel", "error", "size", "kind", "src_device", "dst_device"))
        end = zero + line["ts"] + duration(line) if "duration_us" in line else None
        wanted = {field: line.get(field) for field in exported}
        # A call of a higher layer encloses it as one of its own does.
        wanted.update(begin=zero + line["ts"], end=end, parent=line.get("parent") or line.get("within"))
        self.assertEqual(exported, wanted)

    def check_driver(self, picture, lines, zero):
        wanted = collections.Counter(
            (line["name"], line["pid"], zero + line["ts"], zero + line["ts"] + duration(line), line.get("call"),
             line.get("control"), line.get("class"), line.get("device_file"))
            for line in lines if is_driver(line))
        callers = {flow: slice.details["id"] for slice in picture.slices for flow in slice.flows_out}
        drawn = collections.Counter()
        for slice in picture.slices:
            if slice.track.kind == "driver":
                self.assertIsNone(slice.parent)
                caller = callers[slice.flows_in[0]] if slice.flows_in else None
                drawn[slice.name, slice.track.pid, slice.begin, slice.end, caller, slice.details.get("control"),
                      slice.details.get("class"), slice.details.get("device_file")] += 1
        self.assertEqual(drawn, wanted)

    def check_enqueued(self, picture, lines, zero):
        calls = picture.by_id()
        put = [line for line in lines if line.get("async") and "stream" in line and not {"error", "captured"} & set(line)]
        wanted = collections.Counter(
            (line["pid"], line["stream"], zero + line["ts"], calls[line["id"]].name if line["id"] in calls else None)
            for line in put)
        marks = [mark for mark in picture.marks if mark[0].kind == "stream"]
        drawn = collections.Counter((track.pid, re.match("stream (0x[0-9a-f]+)", track.name)[1], ts, name)
                                    for track, name, ts, _ in marks)
        for line in put:
            if line["id"] not in calls:  # neither a slice nor named by one
                mark = next(mark for mark in marks if mark[2] == zero + line["ts"])
                drawn[line["pid"], line["stream"], mark[2], mark[1]] -= 1
                drawn[line["pid"], line["stream"], mark[2], None] += 1
        self.assertEqual(+drawn, wanted)
        for track, _, _, _ in marks:
            self.assertTrue(track.name.endswith(": when enqueued, not when run"), track.name)
        # An arrow leads there from each call with a duration.
        self.assertEqual(
            collections.Counter((slice.details["id"], slice.begin, mark[1]) for slice, mark in picture.arrows),
            collections.Counter((line["id"], zero + line["ts"], calls[line["id"]].name) for line in put
                                if "duration_us" in line))
        for slice, mark in picture.arrows:
            self.assertEqual((slice.track.kind, slice.begin, slice.track.pid), ("thread", mark[2], mark[0].pid))

    def check_gpu(self, picture, lines, zero):
        """What GPUs did is on tracks of their queues, and each call's arrow leads to what was done first for it.
        -> the names of each queue's tracks"""
        calls = {line["id"]: line for line in lines if "id" in line}
        operations = operations_of(lines)
        wanted, firsts = collections.Counter(), {}
        for line in operations:
            queued = line["ts"] - calls[line["call"]]["ts"] if "call" in line else None
            what = "collective" if line.get("kernel", "").startswith("nccl") else line["op"]
            wanted[what, line["pid"], zero + line["ts"], zero + line["ts"] + duration(line), line.get("call"), queued, line["queue"],
                   line.get("node"), line.get("kernel"), str(line.get("grid")), line.get("size"), line.get("direction"),
                   line.get("unjoined")] += 1
            if "call" in line:
                firsts[line["call"]] = min(firsts.get(line["call"], 1 << 63), zero + line["ts"])
        drawn, names = collections.Counter(), collections.defaultdict(set)
        for slice in picture.slices:
            if slice.track.kind != "queue":
                continue
            self.assertIsNone(slice.parent)
            details = slice.details
            grid = details.get("grid")
            grid = f"[{grid}]" if isinstance(grid, str) else str(grid)
            category = slice.category
            if category == "collective" and "kernel" not in details:  # a copy, once the collective that made it is known
                self.assertEqual(calls[calls[details["call"]]["within"]]["type"], "collective")
                category = "copy"
            drawn[category, slice.track.pid, slice.begin, slice.end, details.get("call"), details.get("queued_ns"), details["queue"],
                  details.get("node"), details.get("kernel"), grid, details.get("size"), details.get("direction"),
                  details.get("unjoined")] += 1
            names[details["queue"]].add(slice.track.name)
        self.assertEqual(drawn, wanted)
        self.assertEqual({call.details["id"]: work.begin for call, work in picture.gpu_arrows}, firsts)
        for call, work in picture.gpu_arrows:
            self.assertEqual((call.track.kind, work.details["call"]), ("thread", call.details["id"]))
            if "kernel" in call.details:
                self.assertEqual(work.name, call.name)
        # What is measured needs no marks of when it was enqueued.
        self.assertEqual([mark for mark in picture.marks if mark[0].kind == "stream"], [])
        self.assertEqual(picture.arrows, [])
        return names

    def check_queues(self, names):
        for queue, stream in ((7, "default stream"), (13, "0x55d0c8a10020"), (14, "0x7f10c0002a80")):
            tracks = {name.removeprefix("GPU 0 ").removeprefix("GPU 0, ") for name in names[queue]}
            self.assertIn(f"stream {queue} ({stream})", tracks)
            self.assertLessEqual(tracks, {f"stream {queue} ({stream})", f"stream {queue} ({stream}), overlapping 1"})

    def check_names(self, picture):
        """Different kernels have different names, as far as they are short."""
        names = collections.defaultdict(set)
        for slice in picture.slices:
            if "function" in slice.details:
                names[slice.name].add(slice.details["kernel"])
                self.assertLessEqual(len(slice.name), len(slice.details["kernel"]))
        self.assertTrue(names)
        self.assertEqual({name: kernels for name, kernels in names.items() if len(kernels) > 1}, {})

    def check_execution(self, picture, trace, zero):
        """Phases and iterations are those of `summary`."""
        answer = json.loads(subprocess.run([CUDABPF, "summary", "--json", trace], check=True,
                                         stdout=subprocess.PIPE).stdout, parse_float=str)["summary"]
        phases = [(slice.name, slice.begin - zero, slice.end - zero)
                  for slice in picture.slices if slice.track.kind == "phases"]
        self.assertEqual(phases, [(phase["name"], readers.nanoseconds(phase["begin_us"]), readers.nanoseconds(phase["end_us"]))
                                  for phase in answer["phases"] if "end_us" in phase and phase["begin_us"] != phase["end_us"]])
        iterations = [slice for slice in picture.slices if slice.track.kind == "iterations"]
        if not answer["iterations"]:
            self.assertEqual(iterations, [])
            return
        self.assertEqual(len(iterations), answer["iterations"]["count"])
        self.assertEqual(iterations[0].begin - zero, readers.nanoseconds(answer["iterations"]["begin_us"]))
        self.assertEqual(iterations[-1].end - zero, readers.nanoseconds(answer["iterations"]["end_us"]))
        self.assertEqual(sum(slice.name.startswith("warm-up") for slice in iterations), answer["iterations"]["warm_up"])
        for before, after in zip(iterations, iterations[1:]):
            self.assertLessEqual(before.end, after.begin)
        self.assertEqual({slice.track.pid for slice in picture.slices if slice.track.kind in ("phases", "iterations")},
                         {answer["thread"]["pid"]})

    def check(self, picture, lines, zero):
        self.check_calls(picture, lines, zero)
        self.check_driver(picture, lines, zero)
        if operations_of(lines):
            self.check_gpu(picture, lines, zero)
        else:
            self.check_enqueued(picture, lines, zero)

    def check_handmade(self, picture, zero, second):
        """`second`: the id of the process whose pid another had before."""
        process = "python"
        held = picture.counters[100, process, "memory held: device"]
        self.assertEqual(held, [(zero + 31000, 4096), (zero + 25001000, 0)])
        self.assertEqual(picture.counters[100, process, "memory held: host"],
                         [(zero + 33000, 1000), (zero + 26000000, 0)])
        self.assertEqual(picture.counters[100, process, "launches/s"], [(zero, 200), (zero + 10000000, 0)])
        self.assertEqual(picture.counters[200, 'wor"k<e>r', "launches/s"], [(zero, 100), (zero + 10000000, 0)])
        self.assertEqual(len(picture.counters), 4)
        calls = picture.by_id()
        self.assertEqual(calls[18].track.process, 'wor"k<e>r')
        self.assertEqual(calls[18].track.pid, 200)
        self.assertEqual((calls[19].track.process, calls[19].track.pid), second)
        machine = {(track.name, name, ts) for track, name, ts, _ in picture.marks if track.kind == "machine"}
        self.assertEqual(machine, {("GPU errors", "Xid 79", zero + 47000),
                                   ("what is missing", "lost: ring_full_entry", zero + 48000)})
        details = {name: details for track, name, _, details in picture.marks if track.kind == "machine"}
        self.assertEqual(details["lost: ring_full_entry"], {"count": "120"})
        self.assertEqual(details["Xid 79"]["meaning"], "the GPU has fallen off the bus")
        interrupts = {(slice.track.name, slice.begin, slice.end) for slice in picture.slices
                      if slice.track.kind == "machine"}
        self.assertEqual(interrupts, {("interrupts: isr, CPU 3", zero + 46000, zero + 46500),
                                      ("interrupts: isr, CPU 1", zero + 46100, zero + 46700),
                                      ("interrupts: bottom_half, CPU 3", zero + 46050, zero + 46850)})
        states = {mark[3]["id"]: mark[3]["state"] for mark in picture.marks if "state" in mark[3]}
        self.assertEqual(states, {15: "return_lost", 16: "entry_lost"})
        self.assertEqual(calls[18].details["state"], "unfinished")

    # --- tests

    def test_chrome_handmade(self):
        lines = lines_of(HANDMADE)
        picture, trace = self.chrome(HANDMADE)
        self.check(picture, lines, 0)
        self.check_handmade(picture, 0, ("second (another process 200)", 10000200))
        self.assertEqual(trace["otherData"]["losses"]["ring_full_entry"]["count"], 120)

    def test_chrome_recorded(self):
        for trace in RECORDED:
            picture, _ = self.chrome(trace)
            self.check(picture, lines_of(trace), 0)
            self.check_names(picture)
            self.check_execution(picture, trace, 0)

    def test_perfetto_handmade(self):
        lines = lines_of(HANDMADE)
        for flags in ((), ("--plain",)):
            picture, packets = self.perfetto(HANDMADE, *flags)
            self.check(picture, lines, BOOTTIME)
            self.check_handmade(picture, BOOTTIME, ("second", 200))
            clocks = {clock["clock_id"][0]: clock["timestamp"][0]
                      for clock in packets[0]["clock_snapshot"][0]["clocks"]}
            self.assertEqual(clocks, {1: 1795271709582810872, 3: 50309459758, 6: BOOTTIME})

    def test_perfetto_recorded(self):
        for trace in RECORDED:
            picture, _ = self.perfetto(trace)
            lines = lines_of(trace)
            self.check(picture, lines, lines[0]["clocks"]["boottime_ns"])
            self.check_names(picture)
            self.check_execution(picture, trace, lines[0]["clocks"]["boottime_ns"])

    def test_gpu_operations(self):
        lines = lines_of(GPU_OPERATIONS)
        self.assertGreater(len(operations_of(lines)), 5000)
        picture, _ = self.chrome(GPU_OPERATIONS)
        self.check_calls(picture, lines, 0)
        self.check_queues(self.check_gpu(picture, lines, 0))
        self.assertIn("copy HtoD 4.00 MiB", {slice.name for slice in picture.slices})
        picture, _ = self.perfetto(GPU_OPERATIONS)
        self.check_calls(picture, lines, lines[0]["clocks"]["boottime_ns"])
        self.check_queues(self.check_gpu(picture, lines, lines[0]["clocks"]["boottime_ns"]))
        self.assertIn("fill 1.00 MiB", {slice.name for slice in picture.slices})

    def test_perfetto_is_small(self):
        for trace in RECORDED:
            needs("zstd")
            size = len(subprocess.run(["zstd", "-dc", trace], check=True, stdout=subprocess.PIPE).stdout)
            self.export(trace, "--format", "perfetto", "-o", "t.perfetto-trace")
            self.assertLess(os.path.getsize(f"{self.folder}/t.perfetto-trace"), size / 5)

    def test_csv(self):
        for trace in (HANDMADE, GPU_OPERATIONS, *RECORDED):
            self.export(trace, "--format", "csv", "-o", "t.csv")
            with open(f"{self.folder}/t.csv", encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file, strict=True))
            lines = [line for line in lines_of(trace) if line["type"] not in ("trace", "end", "process", "library", "range", "stack", "python")
                     and line.get("op") not in ("times", "content", "comm")]
            self.assertEqual(len(rows), len(lines))
            for row, line in zip(rows, lines):
                self.check_row(row, line)

    def check_row(self, row, line):
        self.assertNotIn(None, row)
        same = ("id", "type", "op", "symbol", "pid", "tid", "ret", "error", "parent", "within", "call", "size", "kind", "ptr",
                "dst", "src", "stream", "shared", "handle", "device", "device_file", "src_device", "dst_device", "control", "class", "group", "status", "ioctls",
                "count", "queue", "node", "direction", "unjoined")
        for field in same:
            self.assertEqual(row[field], str(line.get(field, "")), field)
        self.assertEqual(row["name"], line.get("reason", line.get("name", "")))
        self.assertEqual(row["kernel"], line.get("kernel", "").replace("\a", "?"))
        self.assertEqual(row["ts_ns"], str(line["ts"]))
        self.assertEqual(row["duration_ns"], str(duration(line)) if "duration_us" in line else "")
        self.assertEqual(row["async"], "true" if line.get("async") else "")
        for field in ("grid", "block"):
            self.assertEqual(row[field], "x".join(map(str, line.get(field, []))))
        if "args" in line:
            self.assertEqual(json.loads(row["args"], parse_float=str), line["args"])

    def test_alnair(self):
        self.export(HANDMADE, "--format", "alnair")
        with open(f"{self.folder}/trace.alnair/metrics.log", encoding="utf-8") as file:
            metrics = file.read().splitlines()
        # Host memory is not the device's, and all of the device's was freed.
        self.assertEqual(metrics[0], "name:mem_used,count:0")
        self.assertIn("name:cuLaunchKernel,count:4,burst:5", metrics)
        self.assertIn("name:cuCtxSynchronize,count:1,burst:0", metrics)
        with open(f"{self.folder}/trace.alnair/timeline.log", encoding="utf-8") as file:
            timeline = file.read().splitlines()
        for line in timeline:
            self.assertRegex(line, r"^name:\w+, start:\d+, burst:\d+, bytes:\d+, kind:(-1|[0-4])$")
        start = 1795271709582810872
        self.assertIn(f"name:cuMemcpyHtoDAsync, start:{start + 36000}, burst:1, bytes:4096, kind:1", timeline)
        self.assertIn(f"name:cuInit, start:{start + 1000}, burst:3, bytes:0, kind:-1", timeline)
        timed = [line for line in lines_of(HANDMADE) if "id" in line and "duration_us" in line]
        self.assertEqual([re.match(r"name:(\w+)", line)[1] for line in timeline], [line["name"] for line in timed])

    def test_names_of_files(self):
        with open(f"{self.folder}/trace.csv", "w", encoding="utf-8") as old:
            old.write("of another time")
        self.export(HANDMADE, "--format", "csv")
        self.assertEqual(os.listdir(self.folder), ["trace.csv"])
        os.mkdir(f"{self.folder}/trace.alnair")
        self.export(HANDMADE, "--format", "alnair")
        self.assertEqual(sorted(os.listdir(self.folder)), ["trace.alnair", "trace.csv"])
        os.mkdir(f"{self.folder}/here")
        self.export(HANDMADE, "--format", "csv", "-o", "here")
        self.export(HANDMADE, "--format", "all", "-o", "new")
        self.assertEqual(os.listdir(f"{self.folder}/here"), ["trace.csv"])
        self.assertEqual(sorted(os.listdir(f"{self.folder}/new")),
                         ["trace.alnair", "trace.chrome.json", "trace.csv", "trace.folded.txt", "trace.perfetto-trace"])
        answer = json.loads(self.export(HANDMADE, "--format", "csv", "--json", "-o", "trace.csv").stdout)
        size = os.path.getsize(f"{self.folder}/trace.csv")
        self.assertEqual(answer["files"], [{"path": "trace.csv", "bytes": size}])
        with open(f"{self.folder}/trace.csv", encoding="utf-8") as file:
            written = file.read()
        result = self.export(HANDMADE, "--format", "csv", "-o", "-")
        self.assertEqual(result.stdout, written)
        self.assertIn("ring_full_entry", result.stderr)
        self.export(HANDMADE, "--format", "alnair", "-o", "-", status=2)
        self.export(HANDMADE, "--format", "csv", "-o", "nowhere/t.csv", status=124)
        shutil.copy(HANDMADE, f"{self.folder}/own.jsonl")
        self.assertIn("is the trace itself", self.export("own.jsonl", "-o", "./own.jsonl", status=2).stderr)
        self.assertEqual(lines_of(f"{self.folder}/own.jsonl"), lines_of(HANDMADE))

    def test_trace_that_ends_in_an_error(self):
        self.export(HANDMADE, "nothing", "--format", "all", status=125)
        self.assertEqual(os.listdir(self.folder), [])

    def test_full_disk(self):
        for format in ("chrome", "perfetto", "csv"):
            with open("/dev/full", "wb") as full:
                result = subprocess.run([CUDABPF, "export", RECORDED[0], "--format", format, "-o", "-"],
                                        stdout=full, stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual(result.returncode, 124)
            self.assertIn("No space left on device", result.stderr)

    def test_cut_off(self):
        with open(HANDMADE, encoding="utf-8") as file:
            text = file.read()
        with open(f"{self.folder}/cut.jsonl", "w", encoding="utf-8") as file:
            file.write(text[:text.index('{"id":6')])  # its parents are missing
        picture, _ = self.chrome("cut.jsonl")
        self.assertIn(("what is missing", "the trace was cut off", 19000),
                      [(track.name, name, ts) for track, name, ts, _ in picture.marks])
        calls = picture.by_id()
        self.assertEqual(sorted(calls), [1, 3, 4, 5])
        self.assertEqual(calls[5].parent, calls[3])


if __name__ == "__main__":
    program = unittest.main(exit=False)
    if not program.result.wasSuccessful():
        sys.exit(1)
    for _, reason in program.result.skipped:
        print(f"SKIPPED: {reason}")
    sys.exit(77 if program.result.skipped else 0)
