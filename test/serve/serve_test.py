"""cudabpf serve over real sockets: what it answers, what it refuses, and that no client can stop it.
usage: CUDABPF=build/cudabpf serve_test.py [Serve.test_x]"""
import contextlib
import json
import os
import pathlib
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "test/scripts"))
from became_root import sudo_by, who_became_root  # noqa: E402  pylint: disable=wrong-import-position
from server import PATIENCE, Server, figures_in, read_all, until  # noqa: E402  pylint: disable=wrong-import-position

CUDABPF = pathlib.Path(os.environ.get("CUDABPF", ROOT / "build/cudabpf")).resolve()
GPT2 = ROOT / "traces/h200-gpt2.jsonl.zst"
LOSSY = ROOT / "test/golden/trace.jsonl"
MOST = 128  # connections at once
END_SECONDS = 20  # in which it ends on a signal: at once, but a machine with other work may let it wait
HEADER = json.dumps({"type": "trace", "format": "cudabpf-trace", "format_version": "2.0", "command": ["./app"]}) + "\n"
END = '{"type":"end","ts":9000000,"duration_ns":9000000}\n'


def launches(first, last):
    return "".join(f'{{"id":{i},"type":"kernel","op":"launch","name":"cuLaunchKernel","ts":{i * 1000},"duration_us":1.000,"pid":7,"tid":7,'
                   f'"ret":0,"kernel":"k"}}\n' for i in range(first, last + 1))


def status_in(answer):
    found = re.match(rb"HTTP/1\.[01] (\d+)", answer)
    return int(found[1]) if found else None


class Serve(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    @staticmethod
    def begin_report(server, client, name):
        """Requests it, and returns once the server makes it, which shows in the CPU time that it takes."""
        before = server.spent()
        client.sendall(f"GET /report/{name} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        until(lambda: server.spent() > before, lambda: f"it does not begin with the report of {name}")

    def serve(self, *arguments, **options):
        server = Server(CUDABPF, self.folder, *arguments, **options)
        self.addCleanup(self.stop, server)
        return server

    @staticmethod
    def stop(server):
        if server.process.poll() is None:
            server.process.kill()
        server.process.communicate()

    def answered(self, *arguments):
        return subprocess.run([CUDABPF, *arguments], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              check=True).stdout

    def test_figures_are_those_of_summary(self):
        self.write("run/gpt2.jsonl.zst", GPT2.read_bytes())
        self.write("lossy.jsonl", LOSSY.read_bytes())
        server = self.serve()
        kept = HEADER.replace('"command"', '"since":3600000000000,"command"', 1)  # of a recorder that ran for an hour
        self.write("kept.jsonl", kept + '{"id":1,"type":"sync","op":"context","name":"cuCtxSynchronize","ts":3600001000000,"duration_us":9.000,'
                   '"pid":7,"tid":7,"ret":0}\n{"type":"end","ts":3602000000000,"duration_ns":2000000000,"calls":1}\n')
        for name in ("run/gpt2.jsonl.zst", "lossy.jsonl", "kept.jsonl"):
            listed = server.wait_for(name, lambda one: "summary" in one)
            answer = json.loads(self.answered("summary", "--json", name))
            for key, value in listed["trace"].items():
                self.assertEqual(value, answer["trace"][key], key)
            for key, value in listed["summary"].items():
                self.assertEqual(value, answer["summary"][key][:2] if key == "verdict" else answer["summary"][key], key)
            self.assertGreater(listed["summary"]["calls"], 0)
        self.assertTrue(server.trace("lossy.jsonl")["trace"]["losses"])
        self.assertEqual(server.trace("run/gpt2.jsonl.zst")["program"].split()[0], "python3")
        kept = server.trace("kept.jsonl")["trace"]
        self.assertEqual((kept["since_us"], kept["duration_us"]), (3_600_000_000, 3_602_000_000))
        self.assertEqual(figures_in(server.ask("/report/kept.jsonl")[2])["summary"]["summary"]["duration_us"], 2_000_000)

    def test_report_is_that_of_report(self):
        self.write("t.jsonl", HEADER + launches(1, 50) + END)
        server = self.serve()
        status, headers, page = server.ask("/report/t.jsonl")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        alone = self.answered("report", "-o", "-", "t.jsonl")
        # They differ in what the served one says of itself, which is packed with the answers.
        without_answers = re.compile(rb'(id="answers">)[^<]*')
        self.assertEqual(without_answers.sub(rb"\1", page), without_answers.sub(rb"\1", alone))
        self.assertIn("frame-ancestors 'none'", headers["Content-Security-Policy"])
        self.assertNotIn("unsafe", headers["Content-Security-Policy"])

    def test_unchanged_report_is_not_sent_again(self):
        path = self.write("t.jsonl", HEADER + launches(1, 5) + END)
        server = self.serve()
        tag = server.ask("/report/t.jsonl")[1]["ETag"]
        status, headers, body = server.ask("/report/t.jsonl", If_None_Match=tag)
        self.assertEqual((status, headers["ETag"], body), (304, tag, b""))
        path.write_text(HEADER + launches(1, 6) + END, encoding="utf-8")
        server.wait_for("t.jsonl", lambda one: one.get("summary", {}).get("launched") == 6)
        status, headers, body = server.ask("/report/t.jsonl", If_None_Match=tag)
        self.assertEqual(status, 200)
        self.assertNotEqual(headers["ETag"], tag)

    def test_nothing_else_is_read(self):
        outside = tempfile.TemporaryDirectory()
        self.addCleanup(outside.cleanup)
        secret = pathlib.Path(outside.name) / "secret.jsonl"
        secret.write_text(HEADER + launches(1, 1) + END, encoding="utf-8")
        self.write("t.jsonl", HEADER + launches(1, 2) + END)
        os.symlink(secret, self.folder / "link.jsonl")
        os.symlink(outside.name, self.folder / "away")
        os.mkfifo(self.folder / "fifo.jsonl")
        server = self.serve()
        self.assertEqual([one["name"] for one in server.list()["traces"]], ["t.jsonl"])
        up = f"../{pathlib.Path(outside.name).name}/secret.jsonl"
        for name in ("link.jsonl", "fifo.jsonl", "away/secret.jsonl", "away", "t.jsonl/", "/t.jsonl", "t.jsonl%00", "t.jsonl%00.jsonl",
                     up, up.replace("/", "%2f"), up.replace("..", "%2e%2e"), up.replace(".", "%2E").replace("/", "%2F"),
                     f"run/../{up}", str(secret), f"/{secret}", "..%252f..%252fetc%252fpasswd", "..", "%2e%2e", "..%5c..", ".", "",
                     "%c0%ae%c0%ae/etc/passwd", "proc/self/environ", "%"):
            answer = server.raw(f"GET /report/{name} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            self.assertEqual(status_in(answer), 404, name)
            self.assertNotIn(b"<title>", answer)
        for target in ("/../../etc/passwd", "/etc/passwd", "//etc/passwd", "/report", "/favicon.ico", "/%2e%2e/"):
            self.assertEqual(status_in(server.raw(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())), 404, target)
        self.assertEqual(server.ask("/report/t.jsonl")[0], 200)

    def test_a_running_trace_is_followed(self):
        path = self.write("t.jsonl", HEADER + launches(1, 10))
        server = self.serve()
        first = server.wait_for("t.jsonl", lambda one: "summary" in one)
        self.assertEqual((first["state"], first["summary"]["launched"]), ("running", 10))
        _, headers, _ = server.ask("/report/t.jsonl")
        with open(path, "a", encoding="utf-8") as file:
            file.write(launches(11, 25) + '{"id":26,"type":"ker')  # in the middle of a line
        second = server.wait_for("t.jsonl", lambda one: one["summary"]["launched"] != 10)
        self.assertEqual((second["state"], second["summary"]["launched"]), ("running", 25))
        self.assertNotEqual(server.ask("/report/t.jsonl")[1]["ETag"], headers["ETag"])
        path.write_text(HEADER + launches(1, 30) + END, encoding="utf-8")
        last = server.wait_for("t.jsonl", lambda one: one["state"] == "ended")
        self.assertEqual((last["summary"]["launched"], last["trace"]["complete"]), (30, True))
        os.utime(self.write("old.jsonl", HEADER + launches(1, 3)), (time.time() - 3600,) * 2)
        server.wait_for("old.jsonl", lambda one: one["state"] == "cut_off")

    def test_traces_come_and_go(self):
        server = self.serve()
        self.assertEqual(server.list()["traces"], [])
        path = self.write("t.jsonl", HEADER + launches(1, 3) + END)
        server.wait_for("t.jsonl", lambda one: "summary" in one)
        (self.folder / "other").write_text(HEADER + launches(1, 7) + END, encoding="utf-8")
        os.rename(self.folder / "other", path)  # another file of the name
        server.wait_for("t.jsonl", lambda one: one["summary"]["calls"] == 7)
        path.write_bytes(b"\0" * 5000)
        server.wait_for("t.jsonl", lambda one: one["state"] == "unreadable")
        status, _, body = server.ask("/report/t.jsonl")
        self.assertEqual((status, body), (422, b"t.jsonl is not a cudabpf trace: it looks like binary data\n"))
        path.unlink()
        until(lambda: not server.list()["traces"], lambda: f"there is {server.list()['traces']}")
        self.assertEqual(server.ask("/report/t.jsonl")[0], 404)

    def test_changes_while_reports_are_made(self):
        """Whatever happens to the file, each answer is whole and clean."""
        big = HEADER + launches(1, 60_000)
        path = self.write("t.jsonl", big)
        server = self.serve()
        going, seen = threading.Event(), set()

        def change():
            for step in range(10**6):
                if going.is_set():
                    return
                if step % 3 == 0:
                    with contextlib.suppress(FileNotFoundError):
                        path.unlink()
                elif step % 3 == 1:
                    path.write_text(big, encoding="utf-8")
                else:
                    with open(path, "r+b") as file:
                        file.truncate(1 << 20)
                time.sleep(0.05)
        changing = threading.Thread(target=change)
        changing.start()
        try:
            for _ in range(15):
                status, _, body = server.ask("/report/t.jsonl")
                seen.add(status)
                if status == 200:
                    self.assertTrue(body.rstrip().endswith(b"</html>"))
                server.list()
        finally:
            going.set()
            changing.join()
        self.assertLessEqual(seen, {200, 404, 422, 503})
        self.assertIsNone(server.process.poll())

    def test_hostile_names(self):
        names = [b"<img src=x onerror=alert(1)>.jsonl", b"bad\xff\xfeutf.jsonl", b"a\nb\x1b[31m.jsonl", b"%2e%2e.jsonl", b"q?a#b&c.jsonl",
                 "\u202egnp.jsonl".encode()]
        for name in names:
            with open(os.path.join(os.fsencode(self.folder), name), "wb") as file:
                file.write((HEADER + launches(1, 1) + END).encode())
        server = self.serve()
        traces = server.list()["traces"]
        self.assertEqual(len(traces), len(names))
        for one in traces:
            self.assertTrue(one["name"].isprintable(), one)
            self.assertRegex(one["report"], r"^report/[\w.~%-]+$")
            status, _, body = server.ask("/" + one["report"])
            self.assertEqual(status, 200, one)
            self.assertNotIn(b"<img src=x", body)

    def test_methods_and_heads(self):
        self.write("t.jsonl", HEADER + launches(1, 3) + END)
        server = self.serve()
        server.wait_for("t.jsonl", lambda one: "summary" in one)
        for target in ("/", "/traces.json", "/report/t.jsonl"):
            status, headers, body = server.ask(target, "HEAD")
            self.assertEqual((status, body), (200, b""))
            self.assertEqual(int(headers["Content-Length"]), len(server.ask(target)[2]))
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
        self.assertEqual(server.ask("/traces.json")[1]["Cache-Control"], "no-store")
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "BREW"):
            status, headers, _ = server.ask("/", method)
            self.assertEqual((status, headers["Allow"]), (405, "GET, HEAD"))
        body = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n" + b"x" * 100_000
        self.assertIn(status_in(server.raw(body)), (413, None))  # or it was cut off while it was sent
        self.assertEqual(server.ask("/")[0], 200)

    def test_other_sites_names(self):
        server = self.serve()
        for host in ("localhost", f"127.0.0.1:{server.port}", "localhost:9000", "[::1]:8077"):
            self.assertEqual(server.ask("/", Host=host)[0], 200, host)
        for host in ("example.org", f"evil.example:{server.port}", "127.0.0.1.example.org", "10.0.0.1", ""):
            self.assertIn(server.ask("/", Host=host)[0], (400, 403), host)
        self.assertEqual(status_in(server.raw(b"GET / HTTP/1.0\r\n\r\n")), 400)
        self.assertEqual(status_in(server.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: example.org\r\n\r\n")), 400)

    def test_token(self):
        self.write("t.jsonl", HEADER + launches(1, 3) + END)
        server = self.serve(listen="0.0.0.0:0")
        self.assertRegex(server.query, r"^token=[0-9a-f]{32}$")
        for target in ("/", "/traces.json", "/report/t.jsonl", "/?token=", f"/?token={'0' * 32}"):
            self.assertEqual(server.ask(target)[0], 401, target)
        status, headers, _ = server.ask(f"/traces.json?{server.query}")
        self.assertEqual((status, headers["Location"]), (303, "/traces.json"))
        cookie = headers["Set-Cookie"]
        self.assertRegex(cookie, rf"^cudabpf_token_{server.port}=[0-9a-f]{{32}}; Path=/; HttpOnly; SameSite=Lax$")
        self.assertEqual(server.ask("/traces.json", Cookie=cookie.split(";")[0])[0], 200)
        self.assertEqual(server.ask("/traces.json", Cookie=f"cudabpf_token_{server.port}=" + "0" * 32)[0], 401)
        self.assertEqual(server.ask("/", Cookie=cookie.split(";")[0], Host="example.org")[0], 403)
        self.assertNotEqual(self.serve(listen="0.0.0.0:0").query, server.query)

    def test_token_on_this_machine(self):
        """A user of the machine who does not have the link sees no trace."""
        self.write("t.jsonl", HEADER + launches(1, 3) + END).chmod(0o600)
        server = self.serve(token=True)
        self.assertRegex(server.url, r"^http://127\.0\.0\.1:\d+/\?token=[0-9a-f]{32}$")
        for target in ("/", "/traces.json", "/report/t.jsonl"):
            self.assertEqual(server.ask(target)[0], 401, target)
        cookie = server.ask(f"/?{server.query}")[1]["Set-Cookie"].split(";")[0]
        self.assertEqual(server.ask("/report/t.jsonl", Cookie=cookie)[0], 200)
        self.assertEqual(self.serve().query, "")  # --no-token
        done = subprocess.run([CUDABPF, "serve", self.folder, "--no-token", "--listen", "0.0.0.0:0"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("--no-token needs an address that only this machine can reach", done.stderr)

    def test_host_names(self):
        """In DNS, or of a proxy: with them the server is meant, and with no other."""
        self.write("t.jsonl", HEADER + launches(1, 3) + END)
        server = self.serve("--host-name", "GPU-17.example.com", "--host-name", "traces.internal")
        for host in ("gpu-17.example.com", f"gpu-17.example.com:{server.port}", "traces.internal:443", "127.0.0.1"):
            self.assertEqual(server.ask("/traces.json", Host=host)[0], 200, host)
        for host in ("example.com", "gpu-17.example.com.evil.example", "internal"):
            self.assertEqual(server.ask("/", Host=host)[0], 403, host)
        for_all = self.serve("--host-name", "localhost", listen="0.0.0.0:0")
        self.assertRegex(for_all.url, r"^http://localhost:\d+/\?token=")
        self.assertEqual(for_all.ask(f"/?{for_all.query}")[0], 303)

    def test_link_for_all_addresses(self):
        """It can be opened as it is."""
        self.write("t.jsonl", HEADER + launches(1, 3) + END)
        server = self.serve(listen="0.0.0.0:0")
        self.assertNotIn("0.0.0.0", server.url)
        self.assertEqual(server.ask(f"/?{server.query}")[0], 303)
        self.assertIn("--host-name", server.end()[2])

    def test_ipv6(self):
        try:
            with socket.socket(socket.AF_INET6) as trial:
                trial.bind(("::1", 0))
        except OSError as why:
            self.skipTest(f"SKIPPED: no IPv6 here: {why}")
        server = self.serve(listen="[::1]:0")
        self.assertRegex(server.url, r"^http://\[::1\]:\d+/$")
        self.assertEqual(server.ask("/")[0], 200)

    def test_huge_requests(self):
        server = self.serve()
        for request in (b"GET /" + b"a" * 10_000_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
                        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 10_000_000 + b"\r\n\r\n",
                        b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 1_000_000 + b"\r\n",
                        b"\0" * 1_000_000, b"a" * 1_000_000):
            self.assertIn(status_in(server.raw(request)), (400, 413, 414, 431, None))
        for request in (b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n", b"GET / HTTP/1.1\r\nHost localhost\r\n\r\n",
                        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"):
            with socket.create_connection((server.host, server.port), 30) as client:
                client.sendall(request)
                client.shutdown(socket.SHUT_WR)
                self.assertNotEqual(status_in(read_all(client)), 200)
        with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
            kib = int(re.search(r"VmHWM:\s*(\d+)", file.read())[1])
        self.assertLess(kib, 300_000)
        self.assertEqual(server.ask("/")[0], 200)

    def test_hundred_at_once(self):
        self.write("t.jsonl", HEADER + launches(1, 2000) + END)
        server = self.serve()
        statuses = []

        def ask(target):
            statuses.append((target, server.ask(target)[0]))
        targets = ["/", "/traces.json", "/report/t.jsonl", "/none"] * 25
        threads = [threading.Thread(target=ask, args=(target,)) for target in targets]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        wanted = {"/none": 404}
        self.assertEqual(len(statuses), 100)
        self.assertEqual({one for one in statuses if one[1] != wanted.get(one[0], 200)}, set())

    def test_slow_clients_do_not_keep_others_out(self):
        """All places are taken by clients that say nothing, or a byte now and then: none keeps its place for more than ten seconds."""
        self.write("t.jsonl", HEADER + launches(1, 2) + END)
        server = self.serve()
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(socket.create_connection((server.host, server.port), 60)) for _ in range(MOST + 72)]
            for client in clients[::2]:
                client.sendall(b"GET / HTTP/1.1\r\nHost: loc")
            going = threading.Event()

            def trickle():
                while not going.wait(2):
                    for client in clients[::2]:
                        with contextlib.suppress(OSError):
                            client.sendall(b"a")
            trickling = threading.Thread(target=trickle)
            trickling.start()
            began = time.monotonic()
            try:
                self.assertEqual(server.ask("/traces.json")[0], 200)  # waits in line until the first are cut off
                took = time.monotonic() - began
            finally:
                going.set()
                trickling.join()
            self.assertLess(took, 26)
        began = time.monotonic()
        self.assertEqual(server.ask("/")[0], 200)
        self.assertLess(time.monotonic() - began, 5)

    def test_responses_must_be_taken(self):
        """A client that requests much and takes nothing is cut off."""
        lines = launches(1, 40_000).splitlines()  # of which each has details that nothing makes smaller
        self.write("t.jsonl", HEADER + "".join(f'{line[:-1]},"args":{{"x":"{os.urandom(60).hex()}"}}}}\n' for line in lines) + END)
        server = self.serve()
        size = len(server.ask("/report/t.jsonl")[2])
        clients = []
        for _ in range(MOST):
            client = socket.socket()
            self.addCleanup(client.close)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.settimeout(60)
            client.connect((server.host, server.port))
            client.sendall(b"GET /report/t.jsonl HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            clients.append(client)
        self.assertEqual(server.ask("/")[0], 200)  # waits in line until one is cut off, whichever the server answered first
        self.assertTrue(any(len(read_all(client)) < size for client in clients))

    def test_who_goes_away_is_not_waited_for(self):
        """What 20 of them cost together is less than if it had been made for each, by the same machine."""
        requests = 20
        for name in ("t.jsonl", "whole.jsonl"):
            self.write(name, HEADER + launches(1, 300_000) + END)
        self.write("u.jsonl", HEADER + launches(1, 3) + END)
        server = self.serve()
        for name in ("t.jsonl", "whole.jsonl"):
            server.wait_for(name, lambda one: "summary" in one, 120)
        before = server.spent()
        self.assertEqual(server.ask("/report/whole.jsonl")[0], 200)
        whole = server.spent() - before
        before = server.spent()
        for _ in range(requests):
            with socket.create_connection((server.host, server.port)) as client:
                client.sendall(b"GET /report/t.jsonl HTTP/1.1\r\nHost: localhost\r\n\r\n")
                time.sleep(0.02)  # so that it may have begun

        def rests():
            spent = server.spent()
            time.sleep(1)
            return server.spent() - spent < 0.25
        until(rests, lambda: "it still makes what no client waits for")
        self.assertLess(server.spent() - before, requests / 2 * whole)
        self.assertEqual(server.ask("/report/u.jsonl")[0], 200)

    def test_ends_at_once(self):
        self.write("t.jsonl", HEADER + launches(1, 300_000) + END)
        for how in (signal.SIGINT, signal.SIGTERM):
            server = self.serve()
            with socket.create_connection((server.host, server.port)) as idle, socket.create_connection((server.host, server.port)) as busy:
                self.begin_report(server, busy, "t.jsonl")
                took, status, said = server.end(how)
                read_all(idle), read_all(busy)
            self.assertEqual(status, 0, said)
            self.assertLess(took, END_SECONDS)
            self.assertNotIn("error", said)

    def test_endless_trace(self):
        """Compressed, and for terabytes without any text: the client that requested it may go, and the server ends at once."""
        path = self.write("t.jsonl.zst", subprocess.run(["zstd", "-q"], input=HEADER.encode(), stdout=subprocess.PIPE, check=True).stdout)
        with open(path, "ab") as file:
            for _ in range(250):  # 4 GiB each, which are holes
                file.write(struct.pack("<II", 0x184D2A50, 0xFFFFFFF0))
                file.seek(0xFFFFFFF0, os.SEEK_CUR)
            file.truncate()
        self.write("u.jsonl", HEADER + launches(1, 3) + END)
        server = self.serve()
        for _ in range(3):  # more than are made at once
            with socket.create_connection((server.host, server.port)) as client:
                self.begin_report(server, client, "t.jsonl.zst")
        self.assertEqual(server.ask("/report/u.jsonl")[0], 200)
        took, status, said = server.end()
        self.assertEqual(status, 0, said)
        self.assertLess(took, END_SECONDS)

    def test_mistakes(self):
        def said(status, *arguments):
            done = subprocess.run([CUDABPF, "serve", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                                  timeout=PATIENCE)
            self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
            return done.stderr
        self.assertIn("none: No such file or directory", said(125, self.folder / "none"))
        self.assertIn("Not a directory", said(125, self.write("t.jsonl", "")))
        for wrong in ("8077", "example.org:80", "127.0.0.1:99999", ""):
            self.assertIn("--listen", said(2, self.folder, "--listen", wrong))
        self.assertIn("is not the name of a host", said(2, self.folder, "--host-name", "http://gpu-17"))
        self.assertIn("Cannot assign requested address", said(125, self.folder, "--listen", "192.0.2.1:0"))
        server = self.serve()
        self.assertIn("another program does", said(125, self.folder, "--listen", f"127.0.0.1:{server.port}"))
        said(2)
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([CUDABPF, "serve", self.folder, "--listen", "127.0.0.1:0"], stdout=full, stderr=subprocess.PIPE,
                                  timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 124)

    def test_through_sudo_it_reads_as_its_caller(self):
        if os.geteuid() != 0:
            self.skipTest("SKIPPED: it takes root to play sudo")
        self.folder.chmod(0o755)
        mine = self.write("mine.jsonl", HEADER + launches(1, 3) + END)
        mine.chmod(0o600)
        theirs = self.write("theirs.jsonl", HEADER + launches(1, 3) + END)
        theirs.chmod(0o644)
        user, group = who_became_root()
        sudo = sudo_by(user, group)
        os.environ.update(sudo)
        try:
            server = self.serve()
        finally:
            for name in sudo:
                del os.environ[name]
        server.wait_for("theirs.jsonl", lambda one: one["state"] == "ended")
        self.assertIn("Permission denied", server.wait_for("mine.jsonl", lambda one: "error" in one)["error"])
        with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
            status = file.read()
        self.assertIn("\t".join(["Uid:", *[str(user)] * 4]), status)
        self.assertRegex(status, r"CapPrm:\s0+\n")


if __name__ == "__main__":
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096) if hard > 0 else 4096, hard))
    if not CUDABPF.exists():
        sys.exit(f"{CUDABPF} is not there")
    unittest.main()
