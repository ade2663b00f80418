"""`cudabpf metrics`: what Prometheus gets equals what the driver counted, whatever programs are called and do."""
import collections
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess

import harness
from harness import CUDABPF, LIBRARY, WORKLOADS, wait_for

NAMES = ("plain", 'with "quotes"', "back\\slash", "of\ntwo lines", "grün 😀", "not utf-8 \udcff\udcfe", "x" * 200, "ends in \\", "{a=1} 7")
CALLS = "setup; module m; function f m k; malloc a 64K; loop 50 { launch f 1 1 1 1 1 1 0; dtoh host a 1K }; fails 2 malloc b 1T; sync"
SAMPLE = re.compile(r'^([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)+)\})? (\S+)$')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


class Page:
    """A scrape: samples by name, each with its labels. Fails where a line is not as the format has it."""

    def __init__(self, text):
        self.samples, self.types = collections.defaultdict(dict), {}
        for line in text.removesuffix("\n").split("\n"):
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                assert name not in self.types, line
                self.types[name] = kind
            elif not line.startswith("# HELP "):
                name, labels, value = SAMPLE.match(line).groups()
                key = tuple(sorted((label, self.unescaped(text)) for label, text in LABEL.findall(labels or "")))
                assert key not in self.samples[name], line
                self.samples[name][key] = float(value)

    @staticmethod
    def unescaped(text):
        return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], text)

    def of(self, name, **labels):
        """The sum of those that have these labels."""
        return sum(value for key, value in self.samples[name].items() if labels.items() <= dict(key).items())

    def counters(self):
        return {(name, key): value for name, samples in self.samples.items() for key, value in samples.items()
                if name.endswith(("_total", "_count", "_sum", "_bucket"))}


class Live(harness.LiveTest):
    def start_metrics(self, *arguments):
        """Starts cudabpf, and returns once it answers."""
        metrics = self.start([CUDABPF, "metrics", "--library", LIBRARY, "--listen", "127.0.0.1:0", *arguments])
        found = wait_for(lambda: re.search(r"http://127\.0\.0\.1:(\d+)/metrics", metrics.stderr()) or metrics.process.poll() is not None,
                         "its address")
        self.assertTrue(found is not True, metrics.stderr())
        self.port = int(found[1])
        return metrics

    def ask(self, method="GET", path="/metrics", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer, answer.read()

    def page(self):
        answer, text = self.ask()
        self.assertEqual((answer.status, answer.getheader("Content-Type")), (200, "text/plain; version=0.0.4; charset=utf-8"))
        return Page(text.decode())

    def page_with(self, condition, what):
        """The first page of which this holds."""
        def found():
            page = self.page()
            return page if condition(page) else None
        return wait_for(found, what)

    def ended(self, metrics):
        metrics.signal(signal.SIGTERM)
        self.assertEqual(metrics.wait(), 0, metrics.stderr())

    def start_programs(self, names, script):
        """Programs of these names. That of the file is what counts."""
        programs = []
        for name in names:
            path = f"{self.folder}/{name}"
            if not os.path.exists(path):
                shutil.copy(f"{WORKLOADS}/fake_calls", path)
            programs.append(self.start([path, "--library", LIBRARY, script], env=self.environment()))
        return programs

    def check_all_counted(self, page):
        self.assertEqual(page.of("cudabpf_calls_total"), self.total())
        self.assertEqual(page.of("cudabpf_node_calls_total"), self.total())
        self.assertEqual(page.of("cudabpf_call_seconds_count"), self.total())
        self.assertEqual(page.of("cudabpf_call_seconds_bucket", le="+Inf"), self.total())
        self.assertEqual(page.of("cudabpf_lost_events_total"), 0)

    def test_names(self):
        """No name spoils a page; sums are exact; names that are cut at the same place share a series."""
        metrics = self.start_metrics("--profile", "full")
        for program in self.start_programs(NAMES * 3, CALLS):
            self.assertEqual(program.wait(), 0)
        page = self.page_with(lambda page: page.of("cudabpf_call_seconds_count") == self.total() and not page.of("cudabpf_processes"),
                              "all that was called")
        self.check_all_counted(page)
        programs = {dict(key)["program"] for key in page.samples["cudabpf_processes"]}
        self.assertEqual(programs, {name.encode(errors="surrogateescape").decode(errors="replace")[:128] for name in NAMES})
        for name in ("plain", "of\ntwo lines", "ends in \\"):
            self.assertEqual(page.of("cudabpf_calls_total", program=name, function_class="launch"), 150)
            self.assertEqual(page.of("cudabpf_copy_requested_bytes_total", program=name, function_class="copy_to_host"), 150 * 1024)
            self.assertEqual(page.of("cudabpf_call_errors_total", program=name, result="CUDA_ERROR_OUT_OF_MEMORY"), 3)
            self.assertEqual(page.of("cudabpf_failed_calls_total", program=name), 3)
            self.assertEqual(page.of("cudabpf_allocated_bytes", program=name), 0)
            self.assertGreaterEqual(page.of("cudabpf_allocated_peak_bytes", program=name), 65536)
        self.ended(metrics)

    def test_nothing_falls(self):
        """While workloads come and go, and are too many."""
        metrics = self.start_metrics("--profile", "full", "--max-series", "40")
        before = {}
        for turn in range(4):
            programs = self.start_programs([f"p{turn + number}" for number in range(4)], CALLS)
            while any(program.process.poll() is None for program in programs):
                now = self.page().counters()
                for key, value in before.items():
                    self.assertGreaterEqual(now[key], value, key)
                before = now
        page = self.page_with(lambda page: page.of("cudabpf_calls_total") == self.total(), "all calls")
        programs = {dict(key)["program"] for key in page.samples["cudabpf_processes"]}
        self.assertEqual(len(programs), 4)
        self.assertIn("(other)", programs)
        self.assertGreater(page.of("cudabpf_calls_total", program="(other)"), 0)
        self.assertGreater(page.of("cudabpf_overflow_total", what="workloads"), 0)
        self.ended(metrics)

    def test_killed(self):
        """What is started again counts from 0, and counts nothing twice."""
        metrics = self.start_metrics()
        program = self.start([f"{WORKLOADS}/fake_calls", "--library", LIBRARY, "setup; sync; read; sync; sync; read"], stdin=subprocess.PIPE,
                             env=self.environment())
        wait_for(lambda: self.page().of("cudabpf_calls_total", function_class="wait") == 1, "its first call")
        metrics.signal(signal.SIGKILL)
        metrics.wait()
        metrics = self.start_metrics()
        self.assertEqual(self.page().of("cudabpf_calls_total"), 0)
        program.send_line()
        page = self.page_with(lambda page: page.of("cudabpf_call_seconds_count") == 2, "its other calls")
        self.assertEqual(page.of("cudabpf_calls_total"), 2)
        self.assertEqual(page.of("cudabpf_processes", program="fake_calls"), 1)
        program.send_line()
        self.assertEqual(program.wait(), 0)
        self.ended(metrics)

    def test_open_call(self):
        """A call that does not return is seen, and gets older."""
        metrics = self.start_metrics()
        program = self.start([f"{WORKLOADS}/fake_calls", "--library", LIBRARY, "setup; sync"],
                             env=self.environment(HANG="cuStreamSynchronize@1,cuCtxSynchronize@1"))
        first = wait_for(lambda: self.page().of("cudabpf_open_call_seconds"), "the open call")
        wait_for(lambda: self.page().of("cudabpf_open_call_seconds") > first, "older")
        page = self.page()
        self.assertEqual(page.of("cudabpf_calls_total", function_class="wait"), 1)
        self.assertEqual(page.of("cudabpf_call_seconds_count", function_class="wait"), 0)
        program.signal(signal.SIGKILL)
        program.wait()
        wait_for(lambda: self.page().of("cudabpf_open_call_seconds") == 0, "gone")
        self.ended(metrics)

    def test_requests(self):
        metrics = self.start_metrics()
        answer, body = self.ask("HEAD")
        self.assertEqual((answer.status, body), (200, b""))
        self.assertGreater(int(answer.getheader("Content-Length")), 1000)
        for status, method, path, headers in ((404, "GET", "/x", {}), (405, "POST", "/metrics", {}), (403, "GET", "/metrics", {"Host": "evil.example"}),
                                              (200, "GET", "/", {}), (200, "GET", "/metrics", {"Accept-Encoding": "gzip"})):
            self.assertEqual(self.ask(method, path, **headers)[0].status, status, (method, path))
        with socket.create_connection(("127.0.0.1", self.port)) as slow:  # reads nothing
            slow.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertEqual(self.ask()[0].status, 200)
        taken = self.start([CUDABPF, "metrics", "--library", LIBRARY, "--listen", f"127.0.0.1:{self.port}"])
        self.assertEqual(taken.wait(), 125)
        self.assertIn("ddress already in use", taken.stderr())
        self.ended(metrics)

    def test_recorder(self):
        """Beside the flight recorder calls are recorded, and counted all the same."""
        dump = f"{self.folder}/dump.jsonl.zst"
        metrics = self.start_metrics("--profile", "full", "--keep-last", "1h", "-o", dump)
        program, = self.start_programs(["app"], CALLS)
        self.assertEqual(program.wait(), 0)
        wait_for(lambda: self.page().of("cudabpf_calls_total") == self.total(), "all calls")
        self.check_all_counted(self.page())
        metrics.signal(signal.SIGUSR1)
        wait_for(lambda: "written" in metrics.stderr(), "a dump")
        lines = subprocess.run(["zstdcat", dump], check=True, stdout=subprocess.PIPE).stdout
        self.assertEqual(lines.count(b'\n{"id":'), self.total())
        self.ended(metrics)


if __name__ == "__main__":
    harness.main()
