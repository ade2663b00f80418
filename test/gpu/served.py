"""A capture that `cudabpf serve` shows while it runs on a GPU: what is served then, and what in the end."""
import base64
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
import zlib

import toolkit

TOKENS = 900  # at some 10 ms; the model has 1,024 places


class Served:
    def __init__(self, machine, check, program):
        self.cudabpf, self.check, self.program = machine.cudabpf, check, program
        self.folder = f"{machine.folder}/served"
        self.address = None

    def ask(self, target):
        """-> status and body"""
        client = http.client.HTTPConnection(*self.address, timeout=120)
        try:
            client.request("GET", target)
            answer = client.getresponse()
            return answer.status, answer.read()
        finally:
            client.close()

    def listed(self):
        traces = json.loads(self.ask("/traces.json")[1])["traces"]
        return next((one for one in traces if one["name"] == "t.jsonl.zst"), None)

    @staticmethod
    def figures_in(page):
        """What the subcommands answered when a report was made."""
        packed = re.search(rb'id="answers">([^<]*)', page).group(1)
        return json.loads(zlib.decompress(base64.b64decode(packed + b"==")))["answers"]

    def watch(self, capture):
        """-> state and calls in the list, as they changed, and the summaries of reports that were served meanwhile"""
        seen, reports, next_report = [], [], 0
        while capture.poll() is None:
            one = self.listed()
            if one and "summary" in one:
                now = one["state"], one["summary"]["calls"]
                seen += [now] if now not in seen[-1:] else []
            if seen and time.monotonic() > next_report:
                status, page = self.ask("/report/t.jsonl.zst")
                if status == 200:
                    reports.append(self.figures_in(page)["summary"]["summary"])
                next_report = time.monotonic() + 3
            time.sleep(0.2)
        return seen, reports

    def test(self):
        os.mkdir(self.folder)
        path = f"{self.folder}/t.jsonl.zst"
        with subprocess.Popen([self.cudabpf, "serve", self.folder, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True) as server:
            try:
                host, port = re.match(r"http://([^:]+):(\d+)/", server.stdout.readline()).groups()
                self.address = host, int(port)
                with subprocess.Popen([self.cudabpf, "run", "-q", "--gpu", "-o", path, "--", *self.program], stdout=subprocess.DEVNULL) as capture:
                    seen, reports = self.watch(capture)
                self.check("serve: the capture ended well", capture.returncode == 0, capture.returncode)
                last = self.last_listed()
                page = self.ask("/report/t.jsonl.zst")[1]
            finally:
                server.send_signal(signal.SIGINT)
        running = [calls for state, calls in seen if state == "running"]
        print(f"        while it ran: {running} calls in the list, {[one['calls'] for one in reports]} in reports")
        self.check("serve: while it runs, the list tells more and more calls", len(running) > 1 and running == sorted(set(running)), seen)
        in_reports = [one["calls"] for one in reports]
        self.check("serve: while it runs, reports have more and more calls", len(set(in_reports)) > 1 and in_reports == sorted(in_reports), in_reports)
        answered = json.loads(subprocess.run([self.cudabpf, "summary", "--json", path], check=True, stdout=subprocess.PIPE).stdout)["summary"]
        self.check("serve: in the end the list is right", last["state"] == "ended" and last["summary"]["calls"] == answered["calls"], last)
        served = self.figures_in(page)["summary"]["summary"]
        self.check("serve: in the end the report is that of `summary`", served == answered,
                   [key for key in answered if served.get(key) != answered[key]])
        self.check("serve: the report has what the GPU did", served["measured"]["gpus"], served.get("measured"))

    def last_listed(self, seconds=60):
        until = time.monotonic() + seconds
        while (one := self.listed())["state"] != "ended" and time.monotonic() < until:
            time.sleep(0.5)
        return one


def run(machine, check, skipped, workloads):
    if not toolkit.sees_gpu("torch, transformers"):
        return skipped("serve", "PyTorch or transformers are not installed")
    program = [sys.executable, f"{workloads}/transformer_inference.py", "--model", "gpt2-medium", "--random-weights", "--tokens", str(TOKENS)]
    return Served(machine, check, program).test()
