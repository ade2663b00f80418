"""What makes the flight recorder of `cudabpf metrics` write: calls that never return, slow calls, and clients that have the token."""
import contextlib
import glob
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess

import scraping
from scraping import CUDABPF, LIBRARY, WORKLOADS, harness, wait_for

TOKEN = "0123456789abcdef0123"
HEADER = {"Authorization": f"Bearer {TOKEN}"}
MOST_WITH_REQUEST = 64 << 10


class Live(scraping.Scraping):
    def setUp(self):
        super().setUp()
        if not shutil.which("zstd"):
            self.skipTest("zstd is not installed")
        self.dump = f"{self.folder}/kept.jsonl.zst"

    def start_program(self, script, **fake):
        return self.start([f"{WORKLOADS}/fake_calls", "--library", LIBRARY, script], env=self.environment(**fake))

    def token_file(self, mode=0o600):
        path = f"{self.folder}/token"
        with open(path, "w", encoding="utf-8") as file:
            file.write(TOKEN + "\n")
        os.chmod(path, mode)
        return path

    def written(self, metrics, because, count=1):
        """The last of so many dumps, once they are reported."""
        wait_for(lambda: metrics.stderr().count("written: ") >= count, "a dump")
        path = re.findall(r"written: (\S+),", metrics.stderr())[-1]
        trace = harness.Trace(subprocess.run(["zstd", "-dcq", path], check=True, stdout=subprocess.PIPE).stdout.decode())
        self.assertEqual(trace.end["reason"], because)
        self.assertEqual(trace.end["calls"], len(trace.calls))
        self.assertEqual(trace.end["lines"], len(trace.lines))
        return trace

    def post(self, body="{}", **headers):
        answer, text = self.ask("POST", "/dump", body=body, **{**HEADER, **headers})
        return answer.status, answer, text.decode()

    def test_hang(self):
        """A wait that never returns is written while it is open, and once; its age is among the metrics."""
        metrics = self.start_metrics("--dump-on", "wait=500ms", "--dump-every", "100ms", "-o", self.dump)
        program = self.start_program("setup; loop 20 { query }; sync", HANG="cuStreamSynchronize@1,cuCtxSynchronize@1")
        trace = self.written(metrics, "wait")
        hung, = [call for call in trace.calls if call.get("unfinished")]
        self.assertEqual((hung["pid"], hung["type"], trace.end["unfinished_calls"]), (program.pid, "sync", 1))
        self.assertNotIn("duration_us", hung)
        self.assertEqual(len(trace.named("cuStreamQuery")), 20)
        first = self.page_with(lambda page: page.of("cudabpf_open_call_seconds") > 0.5, "its age").of("cudabpf_open_call_seconds")
        self.page_with(lambda page: page.of("cudabpf_open_call_seconds", program="fake_calls") > first + 1, "older")
        program.signal(signal.SIGKILL)
        program.wait()
        page = self.page_with(lambda page: not page.of("cudabpf_open_call_seconds"), "gone")
        self.assertEqual(page.of("cudabpf_calls_total", function_class="wait"), 1)
        self.ended(metrics)
        self.assertEqual(glob.glob(f"{self.folder}/kept*"), [self.dump])
        summary = subprocess.run([CUDABPF, "summary", self.dump], check=True, stdout=subprocess.PIPE, text=True).stdout
        self.assertNotIn("INCOMPLETE", summary)

    def test_slow_share(self):
        """More than 1 % of the waits are slow; meanwhile a client that sends nothing more is cut off."""
        metrics = self.start_metrics("--dump-on", "wait.p99=20ms,launch.p50=1h", "-o", self.dump, "--dump-token", self.token_file())
        with socket.create_connection(("127.0.0.1", self.port)) as slow:
            slow.sendall(f"POST /dump HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 9\r\n\r\n".encode())
            program = self.start_program("setup; loop 150 { sync }", LATENCY="cuStreamSynchronize=25000000,cuCtxSynchronize=25000000")
            self.assertEqual(program.wait(), 0)
            trace = self.written(metrics, "wait.p99")
            self.assertGreaterEqual(len([call for call in trace.calls if call["type"] == "sync"]), 100)
            slow.settimeout(harness.PATIENCE)
            self.assertEqual(slow.recv(100), b"")
        self.assertEqual(self.post()[0], 429)  # the dump was the trigger's
        self.ended(metrics)
        self.assertEqual(len(glob.glob(f"{self.folder}/kept*")), 1)

    def test_post(self):
        metrics = self.start_metrics("--dump-token", self.token_file(), "--max-dumps", "2", "-o", self.dump)
        self.assertEqual(self.start_program("setup; sync").wait(), 0)
        self.page_with(lambda page: page.of("cudabpf_calls_total", function_class="wait"), "its calls")
        for status, headers in ((401, {"Authorization": ""}), (401, {"Authorization": f"Bearer {TOKEN}0"}), (401, {"Authorization": TOKEN}),
                                (403, {"Host": "evil.example"})):
            self.assertEqual(self.post(**headers)[0], status, headers)
        self.assertEqual(self.ask("GET", "/dump", **HEADER)[0].status, 405)
        self.assertEqual(self.ask("POST", "/metrics", **HEADER)[0].status, 405)
        self.assertEqual(self.post("x" * (MOST_WITH_REQUEST + 1))[0], 413)
        with self.assertRaises((OSError, http.client.HTTPException)):  # without saying how much it is
            self.post(iter([b"x" * MOST_WITH_REQUEST, b"x"]))
        self.assertFalse(os.path.exists(self.dump))
        self.assertEqual(self.post("x" * MOST_WITH_REQUEST)[0], 202)
        trace = self.written(metrics, "post")
        self.assertEqual(len([call for call in trace.calls if call["type"] == "sync"]), 1)
        status, answer, text = self.post()
        self.assertEqual((status, "--dump-every" in text), (429, True))
        self.assertLess(500, int(answer.getheader("Retry-After")))
        self.assertEqual(self.page().of("cudabpf_lost_events_total"), 0)
        self.ended(metrics)
        self.assertEqual(glob.glob(f"{self.folder}/kept*"), [self.dump])

    def test_limits_of_posts(self):
        """There is an end to dumps, and none is written where a disk is nearly full."""
        metrics = self.start_metrics("--dump-token", self.token_file(), "--dump-every", "100ms", "--max-dumps", "2", "-o", self.dump)
        for count in (1, 2):
            wait_for(lambda: self.post(iter([b"chunk", b"ed"]))[0] == 202, "a dump that is allowed")
            self.written(metrics, "post", count)
        status, answer, text = self.post()
        self.assertEqual((status, "--max-dumps" in text, answer.getheader("Retry-After")), (429, True, None))
        self.ended(metrics)
        disk = self.small_disk()
        metrics = self.start_metrics("--dump-token", self.token_file(), "-o", f"{disk}/kept.jsonl.zst")
        with open(f"{disk}/full", "wb") as file, contextlib.suppress(OSError):
            file.write(bytes(1 << 20))
        status, answer, text = self.post()
        self.assertEqual((status, "disk" in text), (503, True))
        self.ended(metrics)

    def test_tokens(self):
        """A token that others can read is refused, and without one nobody may ask."""
        for mode, what in ((0o604, "every user may use that file"), (0o602, "every user may use that file")):
            refused = self.start([CUDABPF, "metrics", "--dump-token", self.token_file(mode)])
            self.assertEqual(refused.wait(), 2)
            self.assertIn(what, refused.stderr())
            self.assertNotIn(TOKEN, refused.stderr())
        metrics = self.start_metrics("--dump-on", "error", "-o", self.dump)
        self.assertEqual(self.post()[0], 405)
        self.ended(metrics)

    def test_words(self):
        """What is no trigger is refused, with what there is."""
        for word in ("wait.p0=1s", "wait.p100=1s", "wait.p99", "wait.99=1s", "idle.p99=1s", "waits.p99=1s", "wait.p9.=1s", "wait.p=1s"):
            refused = self.start([CUDABPF, "metrics", "--dump-on", word])
            self.assertEqual(refused.wait(), 2, word)
            self.assertIn("no such trigger", refused.stderr())


if __name__ == "__main__":
    harness.main()
