"""The program's own ranges: against what the program itself wrote down of them, by eBPF (`run --ranges`) and from inside."""
import collections
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "live"))

import harness  # noqa: E402  pylint: disable=wrong-import-position
from harness import LIBRARY, WORKLOADS, calls  # noqa: E402  pylint: disable=wrong-import-position

WAYS = ("--ranges", "--inside")
THREADS = """
    setup; range push main
    loop 40 { range push step; range push part domain=model; sync; range pop domain=model; range pop }
    thread { current ctx; loop 60 { range push step; sync; sync; range pop } }
    thread { current ctx; loop 50 { range push other copy=2; range push part domain=model copy=2; sync; range pop domain=model copy=2; range pop copy=2 } }
    join; range pop"""


class Live(harness.LiveTest):
    def named(self, script, way, *flags, status=0, **more):
        """The trace, and what the program knows of its ranges."""
        log = f"{self.folder}/ranges{way}"
        env = dict(self.environment(), FAKE_RANGES=log, **more)
        done = self.run_cudabpf("run", way, "-o", self.path, "--profile", "full", "--library", LIBRARY, *flags, "--", *calls(script), env=env)
        self.assertEqual(done.returncode, status, done.stderr)
        trace = self.read()
        self.assertEqual(trace.end["losses"], {})
        accounts = trace.end["accounts"]
        self.assertEqual(accounts["entered"], accounts["emitted"] + accounts["dropped"])
        self.assertEqual(accounts["received"], accounts["emitted"])
        known = []
        if os.path.exists(log):
            with open(log, encoding="utf-8") as lines:
                known = [json.loads(line) for line in lines]
            os.unlink(log)
        return trace, known

    @staticmethod
    def paths(trace):
        """By number: the names, the outermost first."""
        paths = {}
        for line in trace.of("range"):
            if line["op"] == "name":
                paths[line["range"]] = paths.get(line.get("in_range"), ()) + (line["label"],)
        return paths

    def check_equal(self, trace, known):
        """The same ranges, each as long as the program found, but for what the two readings of the clock around it took."""
        ranges = [line for line in trace.of("range") if line["op"] != "name"]
        began = trace.header["clocks"]["monotonic_ns"]
        key = lambda op, name, domain, pid, tid: (op, name, domain, pid, tid)  # noqa: E731
        found, wanted = collections.defaultdict(list), collections.defaultdict(list)
        for line in ranges:
            found[key(line["op"], line["label"], line.get("domain", ""), line["pid"], line["tid"])].append(line)
        for one in known:
            wanted[key(one["op"], one["name"], one["domain"], one["pid"], one["tid"])].append(one)
        self.assertEqual({of: len(lines) for of, lines in found.items()}, {of: len(lines) for of, lines in wanted.items()})
        for of, lines in found.items():
            for line, one in zip(sorted(lines, key=lambda line: line["ts"]), sorted(wanted[of], key=lambda one: one["from"])):
                from_ns, to_ns = one["from"] - began, one["to"] - began
                slack = 2000  # ticks of the processor's counter are converted
                self.assertLessEqual(from_ns - slack, line["ts"], (line, one))
                self.assertLessEqual(line["ts"] + line.get("duration_us", 0) * 1000, to_ns + slack, (line, one))

    def test_equal(self):
        """Threads, domains, and two libraries that have a copy of NVTX each: all that the program knows, and each call's innermost range."""
        for way in WAYS:
            with self.subTest(way):
                trace, known = self.named(THREADS, way)
                self.assertEqual(len(known), 1 + 80 + 60 + 100)
                self.check_equal(trace, known)
                paths = self.paths(trace)
                inside = collections.Counter(paths.get(call.get("range"), ()) for call in trace.named("cuStreamSynchronize"))
                self.assertEqual(inside, {("main", "step", "part"): 40, ("step",): 120, ("other", "part"): 50})
                self.assertTrue(trace.header["ranges"])

    def test_before_init(self):
        """A range that begins before cuInit is around what the program does then."""
        script = "range push load; range push init; setup; range pop; sync; range pop; sync"
        for way in WAYS:
            with self.subTest(way):
                trace, known = self.named(script, way)
                self.check_equal(trace, known)
                paths = self.paths(trace)
                self.assertEqual([paths.get(call.get("range")) for call in trace.named("cuStreamSynchronize")], [("load",), None])
                self.assertEqual(paths[trace.named("cuCtxSetCurrent")[0]["range"]], ("load", "init"))

    def test_attributes(self):
        """Registered and wide texts, categories, colours, payloads; ranges that end on another thread; marks."""
        script = """setup; range category 3 I/O; range category 3 Transfer domain=model
            range push a category=3 color=ff102030 payload=-7; range pop
            range push b domain=model category=3 real=0.5 text=registered; range pop domain=model
            range push c domain=model category=4 text=registered; range pop domain=model
            range push wide text=wide; range mark now; range pop
            range start r request; sync; thread { current ctx; range push inner; sync; range end r; sync; range pop }; join; sync"""
        for way in WAYS:
            with self.subTest(way):
                trace, _ = self.named(script, way)
                lines = {line["label"]: line for line in trace.of("range") if line["op"] != "name"}
                self.assertEqual({key: lines["a"][key] for key in ("category", "color", "payload")}, {"category": "I/O", "color": "#ff102030", "payload": -7})
                self.assertEqual({key: lines["b"][key] for key in ("domain", "category", "payload")}, {"domain": "model", "category": "Transfer", "payload": 0.5})
                self.assertEqual(lines["c"]["category"], "4")
                self.assertIn("wide\u00e4\u4e16\U0001f600", lines)
                self.assertEqual((lines["now"]["op"], lines["now"]["range"]), ("mark", lines["wide\u00e4\u4e16\U0001f600"]["range"]))
                self.assertEqual(lines["request"]["op"], "start")
                paths = self.paths(trace)
                self.assertEqual([paths.get(call.get("range")) for call in trace.named("cuStreamSynchronize")],
                                 [("request",), ("request", "inner"), ("request", "inner"), None])

    def test_other_tool(self):
        """A tool that was to have the ranges gets them all the same, and its handles are the program's."""
        marks = f"{self.folder}/marks"
        script = "setup; range push a; range push b domain=model text=registered; sync; range pop domain=model with=payload; range pop"
        for way in WAYS:
            with self.subTest(way):
                trace, known = self.named(script, way, NVTX_INJECTION64_PATH=f"{WORKLOADS}/libother_injection.so", OTHER_NVTX_MARKS=marks)
                self.check_equal(trace, known)
                self.assertEqual(self.paths(trace)[trace.named("cuStreamSynchronize")[0]["range"]], ("a", "b"))
                with open(marks, encoding="utf-8") as file:
                    self.assertEqual(file.read(), "a\nmodel:b\nmodel:pop\n")
                os.unlink(marks)

    def test_payloads(self):
        """Ranges that begin by their names and end by the extension for payloads, as NCCL's do; and those whose names are in payloads."""
        script = """setup; loop 3 { range push a domain=NCCL; sync; range pop domain=NCCL with=payload }; sync; range push b; sync; range pop with=payload
            range start r request domain=NCCL with=payload; sync; range end r domain=NCCL with=payload
            range push inner domain=NCCL with=payload; sync; range mark now with=payload; range pop domain=NCCL; sync"""
        for way in WAYS:
            with self.subTest(way):
                trace, known = self.named(script, way)
                unnamed = [one for one in known if one["name"] in ("request", "inner", "now")]
                self.assertEqual(len(unnamed), 3)
                for one in unnamed:
                    one["name"] = None
                self.check_equal(trace, known)
                paths = self.paths(trace)
                self.assertEqual([paths.get(call.get("range")) for call in trace.named("cuStreamSynchronize")],
                                 [("a",), ("a",), ("a",), None, ("b",), ("(unknown)",), ("(unknown)",), None])

    def test_fork(self):
        """A child has its own ranges; what its parent had open is not in it."""
        script = "setup; range push parent; fork { range push child; range pop; range push again; range pop }; wait; sync; range pop"
        for way in WAYS:
            with self.subTest(way):
                trace, known = self.named(script, way)
                self.check_equal(trace, known)
                paths = self.paths(trace)
                self.assertEqual(sorted(paths.values()), [("again",), ("child",), ("parent",)])

    def test_unfinished(self):
        """Ranges that are open when the program ends"""
        for way in WAYS:
            with self.subTest(way):
                trace, _ = self.named("setup; range push outer; range push inner; sync; quit 3", way, status=3)
                lines = [line for line in trace.of("range") if line["op"] == "push"]
                self.assertEqual([(line["label"], line.get("unfinished"), "duration_us" in line) for line in lines],
                                 [("inner", True, False), ("outer", True, False)])

    def test_not_wanted(self):
        trace, _ = self.named("setup; range push a; sync; range pop", "--inside", "--no-ranges")
        self.assertEqual(trace.of("range"), [])
        self.assertNotIn("ranges", trace.header)

    def test_rotated(self):
        """Each file says what its numbers stand for."""
        path = f"{self.folder}/part.jsonl"
        script = "setup; range push run; loop 300 { range push step; sync; range pop }; range pop"
        done = self.run_cudabpf("run", "--inside", "-o", path, "--rotate-size", "16K", "--profile", "full", "--library", LIBRARY, "--", *calls(script))
        self.assertEqual(done.returncode, 0, done.stderr)
        files = sorted(pathlib.Path(self.folder).glob("part.*.jsonl"))
        self.assertGreater(len(files), 2)
        for file in files:
            known = set()
            for line in self.read(file).lines:
                if line.get("op") == "name":
                    known.add(line["range"])
                elif "range" in line:
                    self.assertIn(line["range"], known, line)


harness.main()
