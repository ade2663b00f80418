"""What a person meets on the command line of the subcommands that read traces: texts, exit statuses, files.
usage: reading.py CUDABPF"""
import contextlib
import json
import os
import pathlib
import re
import pty
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TRACE = ROOT / "test/export/trace.jsonl"
READERS = ("summary", "calls", "kernels", "gemms", "ranges", "collectives", "ranks", "gaps", "ioctls", "memory", "timeline", "errors", "energy")
HEADER = '{"type":"trace","format":"cudabpf-trace","format_version":"2.0"}\n'
cudabpf = ""  # pylint: disable=invalid-name


def call(number, name="cuInit", fields=""):
    return (f'{{"id":{number},"type":"init","op":"init","name":"{name}","ts":{number * 1000},"duration_us":1.000,'
            f'"pid":7,"tid":7,"ret":0{fields}}}\n')


class Reading(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "t.jsonl").write_bytes(TRACE.read_bytes())

    def ask(self, *arguments, status=0, **options):
        """Returns what it printed, and what it said on standard error."""
        done = subprocess.run([cudabpf, *arguments], cwd=self.folder, env={"PATH": os.environ["PATH"]}, text=True,
                              stdout=options.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE, check=False,
                              **options)
        self.assertEqual(done.returncode, status, (arguments, done.stderr))
        return done.stdout, done.stderr

    def test_mistyped(self):
        for arguments, meant in ((["sumary", "t.jsonl"], "summary"), (["calls", "--tops", "3", "t.jsonl"], "--top"),
                                 (["export", "--formt=csv", "t.jsonl"], "--format"), (["--kernal"], "--kernel")):
            _, said = self.ask(*arguments, status=2)
            self.assertIn(f"did you mean {meant}?", said)
        self.assertIn("`cudabpf summary t.jsonl` reads a trace", self.ask("t.jsonl", status=2)[1])
        self.assertIn("`cudabpf --help`", self.ask("quite-another-thing", status=2)[1])
        self.assertEqual(self.ask("calls", status=2)[1], "cudabpf: error: missing TRACE: usage is `cudabpf calls TRACE`\n"
                                                         "cudabpf: hint: see `cudabpf calls --help`\n")

    def test_bare(self):
        """The name alone traces nothing, not even for root."""
        text, said = self.ask()
        self.assertEqual(text, self.ask("--help")[0])
        self.assertRegex(said, "^cudabpf: hint: this traces every process on the machine: `sudo cudabpf --duration 30s`")
        self.assertEqual(os.listdir(self.folder), ["t.jsonl"])

    def test_nothing_before_an_error(self):
        for answer in ("summary", "energy"):
            text, said = self.ask(answer, "t.jsonl", "--pid", "1", status=123)
            self.assertEqual((text, said.count("\n")), ("", 2))

    def test_every_reader_is_tried(self):
        """Here, in the answers that are kept, and in the benchmark."""
        listed = re.search(r"^Subcommands that read traces:\n((?:  .*\n)+)", self.ask("--help")[0], re.MULTILINE)[1]
        readers = re.findall(r"^  (\w+)", listed, re.MULTILINE)
        self.assertEqual(set(readers), {*READERS, "merge", "diff", "report", "serve", "export"})
        readers.remove("serve")  # takes no trace, and has tests of its own
        for script, without in (("test/golden/answers.py", {"report", "export"}), ("scripts/bench-analyze", {"merge"})):
            words = set(re.findall(r'"(\w+)', (ROOT / script).read_text(encoding="utf-8")))
            words |= set(re.findall(r'f"(\w+) --', (ROOT / script).read_text(encoding="utf-8")))
            self.assertLessEqual(set(readers) - without, words, script)

    def test_help_is_of_reading(self):
        for subcommand in (*READERS, "diff", "report", "export"):
            text, _ = self.ask(subcommand, "--help")
            self.assertIn(f"\n  cudabpf {subcommand} ", text)
            self.assertNotIn("sudo", text)

    def test_standard_input_has_a_name(self):
        for text, said in ((HEADER, ""), ("", "standard input is empty"), ("hello", "standard input is not a cudabpf trace"),
                           ("\n\n", "standard input is not a cudabpf trace"), (HEADER + call(1), "")):
            printed, error = self.ask("errors", "-", input=text, status=125 if said else 0)
            self.assertIn(said, error)
            if not said:
                self.assertIn("cut off: standard input: it has no end", printed)
        self.assertIn("CUDA calls: standard input", self.ask("timeline", "--svg", "-", "-", input=HEADER + call(1))[0])

    def test_header_alone(self):
        (self.folder / "t.jsonl").write_text(HEADER, encoding="utf-8")
        for subcommand in READERS:
            self.assertTrue(self.ask(subcommand, "t.jsonl")[0].startswith(
                "INCOMPLETE\n  missing: t.jsonl: it has no end\nThe trace holds no calls."), subcommand)
            self.assertEqual(json.loads(self.ask(subcommand, "t.jsonl", "--json")[0])["trace"]["calls"], 0)
        self.assertIn("A holds no calls.", self.ask("diff", "t.jsonl", "t.jsonl")[0])
        text, _ = self.ask("export", "t.jsonl")
        self.assertIn("The trace holds no calls.", text)
        self.assertIn("t.chrome.json", text)
        self.assertIn("Open it at https://ui.perfetto.dev", text)
        text, _ = self.ask("report", "t.jsonl")
        self.assertIn("The trace holds no calls.", text)
        self.assertIn("t.html", text)

    def test_report(self):
        text, _ = self.ask("report", "t.jsonl", "-o", "out.html")
        self.assertIn("out.html", text)
        page = (self.folder / "out.html").read_text(encoding="utf-8")
        self.assertTrue(page.startswith("<!doctype html>"))
        self.assertIn("<title>t.jsonl – cudabpf report</title>", page)
        self.assertEqual(self.ask("report", "t.jsonl", "-o", "-")[0], page)
        files = json.loads(self.ask("report", "t.jsonl", "-o", "out.html", "--json")[0])["files"]
        self.assertEqual(files, [{"path": "out.html", "bytes": len(page.encode())}])
        self.assertIn("-o - writes none", self.ask("report", "t.jsonl", "-o", "-", "--open", status=2)[1])
        self.assertIn("Open it in any browser", text)
        for tool, warning in (("exit 0", ""), ("exit 3", "xdg-open found no browser here: copy "), (None, "there is no xdg-open here to open it with: open ")):
            (self.folder / "bin").mkdir(exist_ok=True)
            opener = self.folder / "bin/xdg-open"
            opener.unlink(missing_ok=True)
            if tool:
                opener.write_text(f'#!/bin/sh\necho "$1" > {self.folder}/opened\n{tool}\n', encoding="utf-8")
                opener.chmod(0o755)
            done = subprocess.run([cudabpf, "report", "t.jsonl", "-o", "out.html", "--open"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, check=True, env=dict(os.environ, PATH=str(self.folder / "bin")))
            self.assertIn(warning, done.stderr)
            self.assertEqual("xdg-open" in done.stderr, bool(warning), done.stderr)
        self.assertEqual((self.folder / "opened").read_text(encoding="utf-8").strip(), str(self.folder / "out.html"))
        self.ask("report", "t.jsonl", "-o", "t.jsonl", status=2)
        with open("/dev/full", "w", encoding="utf-8") as full:
            self.ask("report", "t.jsonl", "-o", "-", stdout=full, status=124)

    def test_report_of_two(self):
        (self.folder / "u.jsonl").write_bytes(TRACE.read_bytes())
        self.assertIn("t.vs-u.html", self.ask("report", "t.jsonl", "u.jsonl")[0])
        page = (self.folder / "t.vs-u.html").read_text(encoding="utf-8")
        self.assertIn("<title>t.jsonl and u.jsonl – cudabpf report</title>", page)
        answer = json.loads(self.ask("report", "t.jsonl", "u.jsonl", "--json")[0])
        self.assertEqual(answer["a"]["calls"], answer["b"]["calls"])
        self.assertEqual(answer["files"], [{"path": "t.vs-u.html", "bytes": len(page.encode())}])
        self.assertIn("compared whole", self.ask("report", "t.jsonl", "u.jsonl", "--from", "1us", status=2)[1])
        self.assertIn("not 3", self.ask("report", "t.jsonl", "u.jsonl", "t.jsonl", status=2)[1])
        self.ask("report", "t.jsonl", "u.jsonl", "-o", "u.jsonl", status=2)

    def test_pictures(self):
        for subcommand in ("timeline", "memory"):
            page, said = self.ask(subcommand, "t.jsonl", "--svg", "out.svg")
            picture = (self.folder / "out.svg").read_text(encoding="utf-8")
            self.assertEqual(page, self.ask(subcommand, "t.jsonl")[0])
            self.assertRegex(said, r"written\n +[\d.]+ \w+  out.svg\n")
            text, said = self.ask(subcommand, "t.jsonl", "--svg", "-")
            self.assertEqual(text, picture)
            self.assertTrue(said.startswith(page))
            self.assertFalse((self.folder / "-").exists())
            with open("/dev/full", "w", encoding="utf-8") as full:
                self.ask(subcommand, "t.jsonl", "--svg", "-", stdout=full, status=124)

    def write_hostile(self, tail):
        """A trace in which every text that a traced program can choose ends in what terminals act on."""
        structure = {"type", "op", "format", "format_version", "severity", "ptr", "dst", "src", "handle", "stream", "kind"}

        def worse(value, key=""):
            if isinstance(value, dict):
                return {name: worse(of, name) for name, of in value.items()}
            if isinstance(value, list):
                return [worse(one, key) for one in value]
            return value if key in structure or not isinstance(value, str) else value + tail
        lines = (ROOT / "test/golden/trace.jsonl").read_text(encoding="utf-8").splitlines()
        lines[-1:-1] = (
            '{"type":"kernel","op":"ioctl","name":"NV_ESC","ts":300,"duration_us":1.000,"pid":4242,"tid":4242,"ret":-1,'
            '"error":"EINVAL","device_file":"nvidia0","control":"NV_CTRL","status":"NV_ERR"}',
            '{"type":"error","op":"xid","name":"Xid 79","ts":400,"xid":79,"meaning":"off","bus_id":"0","comm":"a","message":"b"}',
            '{"type":"lost","ts":500,"reason":"another","severity":"lost","count":1,"since":0,"until":2}')
        with open(self.folder / "h.jsonl", "w", encoding="utf-8") as file:
            for line in lines:
                file.write(json.dumps(worse(json.loads(line)), ensure_ascii=False) + "\n")
            file.write('{"type":"' + tail.replace("\033", "") + '\n')  # and one that cannot be read

    def test_hostile_trace(self):
        """None of it reaches the terminal, and no line is wider than that, except for file names."""
        hostile = "\033]0;title\007\r\u009b2J\u202e\u200b\U000e0041"
        for tail in (hostile, hostile + "long 東京 " * 500, hostile + "x" * 5000):
            self.write_hostile(tail)
            questions = [[subcommand, "h.jsonl"] for subcommand in READERS]
            questions += [["diff", "h.jsonl", "t.jsonl"], ["diff", "t.jsonl", "h.jsonl"], ["timeline", "--to", "1ms", "h.jsonl"],
                          ["errors", "--all", "h.jsonl"], ["calls", "--by", "pid", "h.jsonl"],
                          ["kernels", "--by", "name", "h.jsonl"], ["timeline", "--svg", "-", "h.jsonl"], ["memory", "--svg", "-", "h.jsonl"],
                          ["export", "--format", "chrome", "-o", "-", "h.jsonl"], ["export", "--format", "csv", "-o", "-", "h.jsonl"]]
            for question in [*questions, *([*question, "--json"] for question in questions[:10])]:
                for width in (40, 80, 120) if question in questions[:10] else (40, 80):
                    done = subprocess.run([cudabpf, *question], cwd=self.folder, env={"COLUMNS": str(width)}, check=False,
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                    if b"expected" in done.stderr or done.returncode == 2:
                        self.fail(done.stderr.decode())
                    text = done.stdout.decode() + done.stderr.decode()
                    self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\U000e0041]", question)
                    if "-o" in question or "--svg" in question or "--json" in question:
                        continue
                    for line in text.splitlines():
                        wide = sum(2 if "\u3000" < c else 1 for c in line)
                        self.assertLessEqual(wide, width, (question, line))

    def test_window_beyond_the_end(self):
        text, said = self.ask("timeline", "t.jsonl", "--from", "1h", status=2)
        self.assertEqual(text, "")
        self.assertIn("--from is not before the end of the trace", said)
        self.ask("timeline", "t.jsonl", "--from", "10us", "--to", "2h")
        self.assertIn("--to is not after --from", self.ask("timeline", "t.jsonl", "--to", "0", status=2)[1])

    def test_part_of_phase_is_its_time(self):
        """What is shown of a phase is what is shown of the time from its beginning to its end."""
        for name in ("gpt2", "simple-inference", "transformer", "two-gpus", "vector-add"):
            trace = ROOT / f"traces/h200-{name}.jsonl.zst"
            phases = json.loads(self.ask("summary", "--json", trace)[0])["summary"]["phases"]
            stretches = [phase for phase in phases if phase.get("end_us", 0) > phase.get("begin_us", 0)]
            self.assertGreaterEqual(len(stretches), 4)
            calls = 0
            for phase in stretches:
                window = [f"--from={round(phase['begin_us'] * 1000)}ns", f"--to={round(phase['end_us'] * 1000)}ns"]
                if not phase["begin_us"]:
                    del window[0]
                by_name, by_time = (json.loads(self.ask("calls", "--json", *part, trace)[0])
                                    for part in (["--phase", phase["name"]], window))
                self.assertEqual(by_name["trace"]["part"].pop("name"), phase["name"])
                self.assertEqual(by_name, by_time)
                count = sum(function["count"] for function in by_name["calls"])
                self.assertEqual(count, by_name["trace"]["part"]["calls"])
                self.assertGreaterEqual(count, phase["calls"], phase["name"])
                calls += count
            if name != "two-gpus":  # its other process goes on
                self.assertEqual(calls, json.loads(self.ask("calls", "--json", trace)[0])["trace"]["calls"])

    def test_iterations_add_up(self):
        """Each has its launches; together they have those that the summary shows."""
        trace = ROOT / "traces/h200-gpt2.jsonl.zst"
        def launches(*part):
            return json.loads(self.ask("kernels", "--json", *part, trace)[0])["launches"]["count"]
        def summary(*part):
            return json.loads(self.ask("summary", "--json", *part, trace)[0])["summary"]
        whole = summary()["iterations"]
        count, warm_up = whole["count"], whole["warm_up"]
        each = [launches("--iteration", str(number)) for number in range(1, count + 1)]
        usual = sorted(each)[count // 2]
        self.assertEqual((min(each), usual, max(each)), (whole["fewest_launches"], whole["launches"], whole["most_launches"]))
        self.assertEqual(each[-1], launches("--iteration", "last"))
        self.assertEqual(sum(each[9:20]), launches("--iteration", "10-20"))
        self.assertEqual(launches("--phase", "inference"), launches("--iteration", f"{warm_up + 1}-last"))
        part = summary("--iteration", "10-20")
        self.assertEqual((part["iterations"]["count"], part["iterations"]["in_part"]), (count, 11))
        self.assertEqual(part["launches"], sum(each[9:20]))
        self.assertAlmostEqual(sum(phase["time_us"] for phase in part["phases"]), part["duration_us"], delta=0.001)
        self.assertAlmostEqual(sum(phase["share"] for phase in part["phases"]), 100)
        self.assertEqual(summary("--phase", "inference")["inference_idle"], summary()["inference_idle"])

    def test_part_is_told(self):
        trace = ROOT / "traces/h200-gpt2.jsonl.zst"
        for subcommand in READERS:
            lines = self.ask(subcommand, "--phase", "warm", trace)[0].splitlines()
            self.assertEqual(lines[0], "2026-11-28 06:05:53 UTC on vm, NVIDIA H200, driver 580.159.04, profile default")
            self.assertRegex(lines[1], r"^  part: warm-up, from 1\d\.\d{6} s to 14\.\d{6} s, [\d.]+ ms$", subcommand)
            self.assertIn("  part: iterations 34 to 35 of 35, from", self.ask(subcommand, "--iteration", "34-last", trace)[0])
            self.assertIn("  part: from 14.000000 s to 15", self.ask(subcommand, "--from", "14s", trace)[0])
            self.assertIn("  part: warm-up, inference, from", self.ask(subcommand, "--phase", "Warm up,infer", trace)[0])
        self.assertIn("  part: iteration 1 of 35, from", self.ask("export", "--iteration", "1", trace)[0])

    def test_no_such_part(self):
        trace = ROOT / "traces/h200-gpt2.jsonl.zst"
        phases = "before the first call, initialisation, loading, warm-up, inference, clean-up"
        for part, said in ((["--phase", "training"], "no such phase"), (["--phase", "in"], "initialisation or input transfer"),
                           (["--phase", ""], "no such phase"), (["--phase", "sync"], "no stretch of time"),
                           (["--phase", "init,clean"], "something else is between"),
                           (["--iteration", "36"], "1 to 35"), (["--iteration", "30-40"], "1 to 35"),
                           (["--iteration", "0"], "the first is 1"), (["--iteration", "9-3"], "the first is 1"),
                           (["--iteration", "-"], "the first is 1"), (["--iteration", "2-"], "the first is 1"),
                           (["--iteration", "99999999999999999999"], "the first is 1"),
                           (["--from", "1h"], "it ends at 15."), (["--from", "2s", "--to", "1s"], "--to is not after --from"),
                           (["--phase", "inference", "--from", "1s"], "--phase"), (["--iteration", "1", "--to", "9s"], "--iteration"),
                           (["--phase", "inference", "--iteration", "1"], "--iteration")):
            for subcommand in ("calls", "timeline"):
                text, error = self.ask(subcommand, *part, trace, status=2)
                self.assertEqual(text, "", part)
                self.assertIn(said, error)
                if said == "no such phase":
                    self.assertIn(phases, error)
        self.ask("export", "--from", "1h", trace, status=2)
        self.assertEqual(os.listdir(self.folder), ["t.jsonl"])
        self.assertIn("no iterations were found", self.ask("calls", "--iteration", "1", "t.jsonl", status=2)[1])
        for part in (["--phase", "inference"], ["--iteration", "1"]):
            self.assertIn("no call of thread 999999 is in the trace", self.ask("summary", "--tid", "999999", *part, trace, status=123)[1])
        (self.folder / "none.jsonl").write_text(HEADER, encoding="utf-8")
        self.assertIn("it has no phases", self.ask("calls", "--phase", "work", "none.jsonl", status=2)[1])

    def test_phases_of_a_pipe(self):
        text = (self.folder / "t.jsonl").read_text(encoding="utf-8")
        for part in (["--phase", "work"], ["--iteration", "1"]):
            self.assertIn("standard input: phases and iterations", self.ask("calls", *part, "-", input=text, status=2)[1])
            self.assertIn("write it to a file first", self.ask("calls", *part, "/dev/stdin", input=text, status=2)[1])
        self.ask("calls", "--to", "1s", "-", input=text)

    def test_incomplete_is_said_first(self):
        """Of what was cut off, what cannot be read and what was lost."""
        end = '{"type":"end","ts":9000,"duration_ns":9000,"losses":{}}\n'
        lost = '{"type":"lost","ts":8000,"reason":"ring_full","severity":"%s","count":1234,"since":0,"until":2}\n'
        for text, said in ((call(1), "t.jsonl: it has no end"), (call(1) + "{\n" + end, "1 line that could not be read"),
                           (call(1) + lost % "lost" + end, "1,234 ring_full"),
                           (call(1) + call(2)[:40], "t.jsonl: it ends within line 3"), (call(1) + end, "")):
            (self.folder / "t.jsonl").write_text(HEADER.replace("}", ',"host":"here"}') + text, encoding="utf-8")
            for subcommand in READERS:
                lines = self.ask(subcommand, "t.jsonl")[0].splitlines()
                self.assertEqual(lines[:2] if said else lines[:1],
                                 ["INCOMPLETE: here", f"  missing: {said}"] if said else ["here"], subcommand)

    def test_times_of_day(self):
        trace = ROOT / "traces/h200-gpt2.jsonl.zst"
        def output(zone, *arguments, status=0):
            done = subprocess.run([cudabpf, "gaps", "--top", "1", *arguments, trace], env={"TZ": zone, "COLUMNS": "160"}, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
            self.assertEqual(done.returncode, status, done.stderr)
            return done.stdout + done.stderr
        (self.folder / "none.jsonl").write_text(HEADER, encoding="utf-8")
        relative = output("UTC")
        gap = json.loads(output("UTC", "--json"))["measured"]["longest_idle"][0]["begin_us"]
        self.assertIn(f" {gap // 1 / 1e6:.6f} s ", relative)
        # The trace began at 06:05:53.529986408 UTC.
        seconds = f"{(53_529_986_408 + round(gap * 1000)) // 1000 / 1e6:.6f}"
        for zone, flags, date, hour in (("UTC", ["--time", "utc"], "2026-11-28 06:05:53 UTC", "06"),
                                        ("EST5", ["--time", "utc"], "2026-11-28 06:05:53 UTC", "06"),
                                        ("EST5", ["--time", "local"], "2026-11-28 01:05:53 EST", "01"),
                                        ("CET-1", ["--time", "local"], "2026-11-28 07:05:53 CET", "07")):
            text = output(zone, *flags)
            self.assertTrue(text.startswith(date), text)
            self.assertIn(f" {hour}:05:{seconds} ", text)
        for zone, flags in (("UTC", ["--time", "utc", "--from", "06:06:08"]), ("EST5", ["--from", "06:06:08Z"]),
                            ("EST5", ["--time", "local", "--from", "01:06:08"]), ("EST5", ["--from", "2026-11-28T01:06:08-05:00"]),
                            ("EST5", ["--time", "local", "--from", "2026-11-28 06:06:08Z"])):
            text = output(zone, *flags)
            self.assertIn("part: from " + ("14.470013 s" if "--time" not in flags else "06:06:08" if zone == "UTC" else "01:06:08"), text)
        verdict = self.ask("summary", "--time", "utc", ROOT / "traces/h200-gpt2.jsonl.zst")[0].split("\nphases")[0]
        self.assertRegex(verdict, r"from\s+06:05:56\.659295\s+\(after\s+cuCtxSynchronize\)")
        self.assertIn("says no time zone", output("UTC", "--from", "06:06:08", status=2))
        self.assertIn("is not in the trace", output("UTC", "--from", "06:05:52Z", status=2))
        self.assertIn("it ends at", output("UTC", "--from", "06:15:13Z", status=2))
        self.assertIn("--json", output("UTC", "--time", "utc", "--json", status=2))
        self.assertIn("does not say when it began", self.ask("calls", "--time", "utc", "none.jsonl", status=2)[1])
        self.assertEqual(json.loads(output("EST5", "--json"))["trace"]["started"], "2026-11-28T06:05:53.529986408Z")

    def test_top_of_json(self):
        text = HEADER + "".join(call(i, f"cuFunction{i}", ',"error":"E"') for i in range(1, 6))
        (self.folder / "t.jsonl").write_text(text.replace('"ret":0', '"ret":1'), encoding="utf-8")
        for subcommand, name in (("calls", "calls"), ("errors", "failures")):
            self.assertEqual(len(json.loads(self.ask(subcommand, "--json", "t.jsonl")[0])[name]), 5)
            answer = json.loads(self.ask(subcommand, "--json", "--top", "2", "t.jsonl")[0])
            self.assertEqual((len(answer[name]), answer[f"{name}_left_out"]), (2, 3))
        (self.folder / "none.jsonl").write_text(HEADER, encoding="utf-8")
        answer = json.loads(self.ask("diff", "--json", "--top", "1", "t.jsonl", "none.jsonl")[0])
        self.assertEqual((len(answer["functions"]), answer["functions_left_out"]), (1, 4))
        grouped = json.loads(self.ask("calls", "--json", "--top", "2", "--by", "tid", "t.jsonl")[0])["calls"]
        self.assertEqual([len(group["functions"]) for group in grouped], [2])
        trace = ROOT / "traces/h200-simple-inference.jsonl.zst"
        for subcommand, path in (("kernels", ["kernels"]), ("ioctls", ["commands"]), ("gaps", ["longest_idle"]),
                                 ("memory", ["memory", "never_freed", "largest"])):
            answer = json.loads(self.ask(subcommand, "--json", "--top", "1", trace)[0])
            for name in path:
                answer = answer[name]
            self.assertEqual(len(answer), 1, subcommand)

    def test_several_files_a_side(self):
        def part(name, number, calls):
            header, end = HEADER.replace("}", f',"part":{number}}}'), f'{{"type":"end","last":{json.dumps(number == 2)}}}\n'
            (self.folder / name).write_text(header + calls + end, encoding="utf-8")
        part("a.1", 1, call(1) + call(2))
        part("a.2", 2, call(3))
        part("b.1", 1, call(1))
        part("b.2", 2, call(2) + call(3))
        answer = json.loads(self.ask("diff", "a.1", "a.2", "--to", "b.1", "b.2", "--json")[0])
        self.assertEqual([answer[side]["files"] for side in "ab"], [["a.1", "a.2"], ["b.1", "b.2"]])
        self.assertTrue(answer["same"])
        self.assertIn("two traces, not 3", self.ask("diff", "a.1", "a.2", "b.1", status=2)[1])
        self.assertIn("not two", self.ask("diff", "-", "-", status=2, input="")[1])

    def test_several_traces_a_side(self):
        def trace(name, calls, clock):
            header = HEADER.replace("}", f',"clocks":{{"realtime_ns":{clock}}}}}')
            text = "".join(call(i) for i in range(1, calls + 1))
            (self.folder / name).write_text(header + text + f'{{"type":"end","duration_ns":{calls * 1000}}}\n', encoding="utf-8")
        for number, calls in enumerate((100, 101, 104, 107, 110, 111)):
            trace(f"{number}.jsonl", calls, number)
        a, b = ["0.jsonl", "1.jsonl", "2.jsonl"], ["3.jsonl", "4.jsonl", "5.jsonl"]
        page, _ = self.ask("diff", *a, "--", *b, "--fail-if", "calls > +8 %", status=118)
        self.assertRegex(page, r"calls +101 ±3.0 % +110 ±2.7 % +\+8.9 %  beyond")
        self.assertRegex(page, r"calls > \+8 % +101 ±3.0 % +110 ±2.7 % +\+8.9 %  beyond  yes")
        self.assertIn("those of A2 and B2,", page)
        self.assertIn("\nB1: 3.jsonl\n", page)
        answer = json.loads(self.ask("diff", "--json", *a, "--to", *b, "--fail-if", "calls > +9 %", "--fail-if",
                                   "calls < -1 %")[0])
        self.assertEqual([one["outcome"] for one in answer["conditions"]], ["does not hold"] * 2)
        self.assertEqual(answer["conditions"][0]["b_spread"], {"of_each": [107, 110, 111], "min": 107, "max": 111})
        self.assertEqual([answer[side]["files"] for side in "ab"], [["1.jsonl"], ["4.jsonl"]])
        self.assertEqual(len(answer["traces"]["b"]), 3)
        mixed = ["0.jsonl", "4.jsonl", "2.jsonl", "--", "3.jsonl", "1.jsonl", "5.jsonl"]
        self.assertIn("within  no", self.ask("diff", *mixed, "--fail-if", "calls > +1 %")[0])
        self.assertIn("is of the same trace as 0.jsonl",
                      self.ask("diff", "0.jsonl", "1.jsonl", "0.jsonl", "--", *b, status=2)[1])
        self.assertIn("separated once", self.ask("diff", *a, "--", *b, "--", *b, status=2)[1])
        self.assertIn("not a file", self.ask("diff", "-", "0.jsonl", "--", *b, status=2, input="")[1])

    def test_conditions(self):
        end = '{"type":"end"}\n'
        (self.folder / "a.jsonl").write_text(HEADER + call(1) + end, encoding="utf-8")
        (self.folder / "b.jsonl").write_text(HEADER + call(1) + call(2) + end, encoding="utf-8")
        (self.folder / "cut.jsonl").write_text(HEADER + call(1), encoding="utf-8")

        def ask(b, *conditions, status):
            flags = [word for condition in conditions for word in ("--fail-if", condition)]
            return self.ask("diff", *flags, "a.jsonl", b, status=status)[0]
        page = ask("b.jsonl", "iterations > +0", "errors > 0", status=119)
        self.assertIn("iterations > +0: A has no iterations.\n  Exit status 119: not all could be judged.\n", page)
        self.assertRegex(page, r"errors > \+0 +0 +0 += +no\n")
        self.assertRegex(ask("b.jsonl", "iterations > +0", "calls > +5 %", status=118), r"calls > \+5 % +1 +2 +\+100.0 % +yes\n")
        ask("b.jsonl", "calls > +100 %", status=0)
        self.assertIn("B is cut off", ask("cut.jsonl", "calls > 1", status=119))
        for wrong in ("lanches > 5", "calls", "calls > 5 ms", "duration > 5"):
            _, said = self.ask("diff", "a.jsonl", "b.jsonl", "--fail-if", wrong, status=2)
            self.assertIn(f"--fail-if '{wrong}': ", said)
        self.assertIn("launches-per-iteration", self.ask("diff", "a.jsonl", "b.jsonl", "--fail-if", "x", status=2)[1])

    def test_left_out_columns_are_told(self):
        gpt2 = ROOT / "traces/h200-gpt2.jsonl.zst"
        def output(width):
            return subprocess.run([cudabpf, "calls", gpt2], env={"COLUMNS": str(width)}, check=True, text=True,
                                  stdout=subprocess.PIPE).stdout
        self.assertIn("hidden columns: p95, p99", output(80))
        self.assertNotIn("hidden columns", output(160))

    def test_export_flags(self):
        self.assertIn("--plain is of --format perfetto", self.ask("export", "t.jsonl", "--plain", status=2)[1])
        self.ask("export", "t.jsonl", "--plain", "--format", "perfetto", "-o", "t.pb")
        ours, theirs = pty.openpty()
        _, said = self.ask("export", "t.jsonl", "--format", "perfetto", "-o", "-", stdout=theirs, status=2)
        self.assertIn("binary", said)
        self.ask("export", "t.jsonl", "--format", "csv", "-o", "-", stdout=theirs)
        os.close(ours)
        os.close(theirs)

    def test_interrupted(self):
        """The progress line disappears with it."""
        ours, theirs = pty.openpty()
        with subprocess.Popen([cudabpf, "calls", "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=theirs) as reading:
            said, begin = b"", time.monotonic()
            reading.stdin.write(HEADER.encode())
            while b"reading: " not in said and time.monotonic() < begin + 30:
                reading.stdin.write("".join(call(number) for number in range(1, 2000)).encode())
                reading.stdin.flush()
                if select.select([ours], [], [], 0)[0]:
                    said += os.read(ours, 4096)
            reading.send_signal(signal.SIGINT)
            self.assertEqual(reading.wait(), -signal.SIGINT)
            while select.select([ours], [], [], 0)[0]:
                said += os.read(ours, 4096)
            with contextlib.suppress(BrokenPipeError):
                reading.stdin.close()
        os.close(ours)
        os.close(theirs)
        self.assertIn(b"reading: ", said)
        self.assertTrue(said.endswith(b"\r\x1b[K"), said[-80:])

    def test_full_disk(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            for subcommand in READERS:
                for flags in ([], ["--json"]):
                    _, said = self.ask(subcommand, "t.jsonl", *flags, stdout=full, status=124)
                    self.assertIn("standard output", said)
            self.ask("diff", "t.jsonl", "t.jsonl", "--json", stdout=full, status=124)

    def test_interrupted_export_leaves_nothing(self):
        read, write = os.pipe()
        with subprocess.Popen([cudabpf, "export", "-", "--format", "all", "-o", "out"], cwd=self.folder, stdin=read,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as program:
            os.close(read)
            os.write(write, HEADER.encode())
            while not (self.folder / "out/trace.alnair/timeline.log").exists():
                self.assertIsNone(program.poll())
                os.write(write, (call(1) * 500).encode())  # nothing is parsed before a block is full
            program.send_signal(signal.SIGINT)
            os.write(write, (call(2) * 200).encode())
            os.close(write)
            self.assertEqual(program.wait(), -signal.SIGINT)
        self.assertEqual(os.listdir(self.folder / "out"), [])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    cudabpf = os.path.abspath(sys.argv.pop())
    unittest.main()
