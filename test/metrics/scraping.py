"""cudabpf as an exporter, for tests: started and asked."""
import http.client
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "live"))

import harness  # noqa: E402  pylint: disable=wrong-import-position
from harness import BUILD, CUDABPF, LIBRARY, WORKLOADS, wait_for  # noqa: E402  pylint: disable=wrong-import-position
from page import Page  # noqa: E402  pylint: disable=wrong-import-position

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NAMES = ("plain", 'with "quotes"', "back\\slash", "of\ntwo lines", "grün 😀", "not utf-8 \udcff\udcfe", "x" * 200, "ends in \\", "{a=1} 7")
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def calls(launches):
    return f"setup; module m; function f m k; malloc a 64K; loop {launches} {{ launch f 1 1 1 1 1 1 0; dtoh host a 1K }}; fails 2 malloc b 1T; sync"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Scraping(harness.LiveTest):
    def tools(self, package="prometheus", *options):
        """The folder of a program, from Debian's package."""
        done = subprocess.run([ROOT / "scripts/unpack-package", *options, package], check=False, stdout=subprocess.PIPE, text=True)
        if done.returncode == 77:
            self.skipTest(done.stdout.strip().removeprefix("SKIPPED: "))
        self.assertEqual(done.returncode, 0, done.stdout)
        return f"{done.stdout.strip()}/usr/bin"

    def check_names(self, programs, names):
        """All are there. Of one that ended before its file's name could be read, the kernel has the beginning."""
        names = [name.encode(errors="surrogateescape") for name in names]
        shown = [{name.decode(errors="replace")[:128], name[:15].decode(errors="replace")} for name in names]
        for one in shown:
            self.assertTrue(one & programs, one)
        self.assertLessEqual(programs, set().union(*shown))

    def start_metrics(self, *arguments, library=LIBRARY):
        """Starts cudabpf, and returns once it answers."""
        return self.start_serving("metrics", "--library", library, "--listen", "127.0.0.1:0", *arguments)

    def start_serving(self, *arguments):
        metrics = self.start([CUDABPF, *arguments])
        wait_for(lambda: "metrics are at" in metrics.stderr() or metrics.process.poll() is not None, "its address")
        found = re.search(r"metrics are at http://127\.0\.0\.1:(\d+)/metrics", metrics.stderr())
        self.assertTrue(found, metrics.stderr())
        self.port = int(found[1])
        return metrics

    def ask(self, method="GET", path="/metrics", body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer, answer.read()

    def page(self):
        answer, text = self.ask()
        self.assertEqual((answer.status, answer.getheader("Content-Type")), (200, CONTENT_TYPE))
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
        """Programs in files of these names."""
        programs = []
        for name in names:
            path = f"{self.folder}/{name}"
            if not os.path.exists(path):
                shutil.copy(f"{WORKLOADS}/fake_calls", path)
            programs.append(self.start([path, "--library", LIBRARY, script], env=self.environment()))
        return programs
