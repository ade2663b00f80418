"""`cudabpf metrics`: what a scrape gets equals what the driver counted, whatever programs are called and do."""
import collections
import json
import os
import pathlib
import re
import signal
import socket
import subprocess

import scraping
from scraping import CUDABPF, LIBRARY, NAMES, WORKLOADS, calls, harness, wait_for

DOCUMENT = pathlib.Path(__file__).resolve().parent.parent.parent / "docs/metrics.md"


class Live(scraping.Scraping):
    def check_all_counted(self, page):
        self.assertEqual(page.of("cudabpf_calls_total"), self.total())
        self.assertEqual(page.of("cudabpf_node_calls_total"), self.total())
        self.assertEqual(page.of("cudabpf_call_seconds_count"), self.total())
        self.assertEqual(page.of("cudabpf_call_seconds_bucket", le="+Inf"), self.total())
        self.assertEqual(page.of("cudabpf_lost_events_total"), 0)

    def test_names(self):
        """No name spoils a page; sums are exact; names that are cut at the same place share a series."""
        metrics = self.start_metrics("--profile", "full")
        for program in self.start_programs(NAMES * 3, calls(50)):
            self.assertEqual(program.wait(), 0)
        page = self.page_with(lambda page: page.of("cudabpf_call_seconds_count") == self.total() and not page.of("cudabpf_processes"),
                              "all that was called")
        self.check_all_counted(page)
        self.check_names(page.programs(), NAMES)
        for name in ("plain", "of\ntwo lines", "ends in \\"):
            self.assertEqual(page.of("cudabpf_calls_total", program=name, function_class="launch"), 150)
            self.assertEqual(page.of("cudabpf_copy_requested_bytes_total", program=name, function_class="copy_to_host"), 150 * 1024)
            self.assertEqual(page.of("cudabpf_call_errors_total", program=name, result="CUDA_ERROR_OUT_OF_MEMORY"), 3)
            self.assertEqual(page.of("cudabpf_failed_calls_total", program=name), 3)
            self.assertEqual(page.of("cudabpf_allocated_bytes", program=name), 0)
            self.assertGreaterEqual(page.of("cudabpf_allocated_peak_bytes", program=name), 65536)
        self.ended(metrics)

    def test_with_a_trace(self):
        """Metrics of what goes into a trace: both have all that the driver counted."""
        path = f"{self.folder}/machine.jsonl"
        metrics = self.start_serving("--metrics", "127.0.0.1:0", "--profile", "full", "--library", LIBRARY, "-o", path)
        program, = self.start_programs(["plain"], calls(50))
        self.assertEqual(program.wait(), 0)
        page = self.page_with(lambda page: page.of("cudabpf_call_seconds_count") == self.total(), "all that was called")
        self.check_all_counted(page)
        self.assertEqual(page.of("cudabpf_calls_total", program="plain", function_class="launch"), 50)
        self.page_with(lambda page: page.types["cudabpf_open_call_seconds"] == "gauge" and not page.of("cudabpf_open_call_seconds"), "no open call")
        self.ended(metrics)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(sum('"id":' in line for line in file), self.total())

    def test_nothing_falls(self):
        """While workloads come and go, and are too many."""
        metrics = self.start_metrics("--profile", "full", "--max-series", "80")
        before, scrapes = {}, 0
        for turn in range(4):
            programs = self.start_programs([f"p{turn + number}" for number in range(4)], calls(5000))
            while any(program.process.poll() is None for program in programs):
                now = self.page().counters()
                for key, value in before.items():
                    self.assertGreaterEqual(now[key], value, key)
                before, scrapes = now, scrapes + 1
        self.assertGreater(scrapes, 10)
        page = self.page_with(lambda page: page.of("cudabpf_calls_total") == self.total(), "all calls")
        self.assertEqual(len(page.programs()), 4)
        self.assertIn("(other)", page.programs())
        self.assertGreater(page.of("cudabpf_calls_total", program="(other)"), 0)
        self.assertGreater(page.of("cudabpf_overflow_total", what="workloads"), 0)
        self.ended(metrics)

    def test_killed(self):
        """What is started again counts from 0, and counts nothing twice."""
        metrics = self.start_metrics()
        program = self.start([f"{WORKLOADS}/fake_calls", "--library", LIBRARY, "setup; sync; read; sync; sync; read"], stdin=subprocess.PIPE,
                             env=self.environment())
        self.page_with(lambda page: page.of("cudabpf_calls_total", function_class="wait") == 1, "its first call")
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
        page = self.page_with(lambda page: page.of("cudabpf_open_call_seconds") > first, "older")
        self.assertEqual(page.of("cudabpf_calls_total", function_class="wait"), 1)
        self.assertEqual(page.of("cudabpf_call_seconds_count", function_class="wait"), 0)
        program.signal(signal.SIGKILL)
        program.wait()
        self.page_with(lambda page: not page.of("cudabpf_open_call_seconds"), "gone")
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
        program, = self.start_programs(["app"], calls(50))
        self.assertEqual(program.wait(), 0)
        self.check_all_counted(self.page_with(lambda page: page.of("cudabpf_calls_total") == self.total(), "all calls"))
        metrics.signal(signal.SIGUSR1)
        wait_for(lambda: "written" in metrics.stderr(), "a dump")
        lines = subprocess.run(["zstdcat", dump], check=True, stdout=subprocess.PIPE).stdout
        self.assertEqual(lines.count(b'\n{"id":'), self.total())
        self.ended(metrics)

    def test_gpu_windows(self):
        """Programs of any user that have the library: kernels in windows are as many as CUPTI handed out, and took as long."""
        record, listener = f"{self.folder}/cupti.jsonl", f"{self.folder}/run/inside"
        build = harness.build_of_our_own()  # which the user without rights may enter
        library = f"{build}/test/fake_libcuda/libcuda.so.1"
        os.chmod(self.folder, 0o711)
        metrics = self.start_metrics("--gpu=60ms/240ms", "--listener", listener, library=library)
        env = dict(self.environment(), CUDA_INJECTION64_PATH=f"{build}/libcudabpf-inside.so", CUDABPF_LISTENER=listener,
                   CUDABPF_CUPTI=f"{build}/test/fake_cupti/libcupti.so.13", FAKE_CUPTI_RECORD=record)
        pathlib.Path(record).touch()
        os.chmod(record, 0o666)
        turns = 2000
        script = f"""setup; module m; function f m _Z4gemmPfi; function g m _Z4reluPf; malloc a 64K
            loop {turns} {{ read; launch f 3 1 1 1 1 1 0; launch g 2 1 1 1 1 1 0; launch f 3 1 1 1 1 1 0; htod a host 1K }}"""
        programs = [self.start([f"{build}/test/workloads/fake_calls", "--library", library, script],
                               env=env, stdin=subprocess.PIPE, **user) for user in ({}, harness.WITHOUT_RIGHTS)]
        sent = 0
        while self.page().of("cudabpf_gpu_load_error_ratio") == 0:  # until there were three windows in which something was submitted
            self.assertLess(sent, turns)
            for program in programs:
                program.send_line()
            sent += 1
        for program in programs:
            for _ in range(turns - sent):
                program.send_line()
            self.assertEqual(program.wait(), 0)
        with open(record, encoding="utf-8") as file:
            work = [json.loads(line) for line in file]
        kernels = collections.Counter("matrix_multiply" if "gemm" in one["kernel"] else "elementwise" for one in work)
        page = self.page_with(lambda page: page.of("cudabpf_gpu_kernels_total") == len(work), "all that CUPTI handed out")
        self.assertEqual({kind: page.of("cudabpf_gpu_kernels_total", kernel_class=kind) for kind in kernels}, kernels)
        self.assertEqual(len(kernels), 2)
        seconds = sum(one["end_ns"] - one["begin_ns"] for one in work) / 1e9
        self.assertAlmostEqual(page.of("cudabpf_gpu_kernel_seconds_total"), seconds, 9)
        self.assertGreaterEqual(page.of("cudabpf_gpu_window_seconds_total"), 0.1)
        self.assertEqual(page.of("cudabpf_lost_events_total"), 0)
        self.ended(metrics)

    def test_documented(self):
        """docs/metrics.md has each metric, and each with its type."""
        metrics = self.start_metrics()
        program, = self.start_programs(["app"], calls(1))
        self.assertEqual(program.wait(), 0)
        page = self.page_with(lambda page: page.of("cudabpf_calls_total"), "its calls")
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in DOCUMENT.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
        types = {name: row[1] for row in rows for name in re.findall(r"`([a-z_]+)`", row[0])}
        for name, kind in page.types.items():
            self.assertIn(name, types)
            self.assertIn(types[name], (kind, ""))
        self.ended(metrics)


if __name__ == "__main__":
    harness.main()
