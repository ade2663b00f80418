"""A capture that `cudabpf serve` shows while it runs on a GPU: what is served then, and what in the end."""
import json
import os
import subprocess
import sys
import time

import toolkit

sys.path.append(os.path.join(toolkit.HERE, "../serve"))
from server import Server, figures_in  # noqa: E402  pylint: disable=wrong-import-position

TOKENS = 900  # at some 10 ms; the model has 1,024 places
NAME = "t.jsonl.zst"


def summary_in(server):
    """The summary in the report that is served; None: there is none"""
    status, _, page = server.ask(f"/report/{NAME}", timeout=120)
    return figures_in(page)["summary"]["summary"] if status == 200 else None


def watch(server, capture):
    """-> state and calls in the list, as they changed, and calls in the reports that were served meanwhile"""
    seen, reports, next_report = [], [], 0
    while capture.poll() is None:
        one = server.trace(NAME)
        if one and "summary" in one:
            now = one["state"], one["summary"]["calls"]
            seen += [now] if now not in seen[-1:] else []
        if seen and time.monotonic() > next_report:
            summary = summary_in(server)
            reports += [summary["calls"]] if summary else []
            next_report = time.monotonic() + 3
        time.sleep(0.2)
    return seen, reports


def check_capture(machine, check, program):
    folder = f"{machine.folder}/served"
    os.mkdir(folder)
    path = f"{folder}/{NAME}"
    server = Server(machine.cudabpf, folder)
    try:
        with subprocess.Popen([machine.cudabpf, "run", "-q", "--gpu", "-o", path, "--", *program], stdout=subprocess.DEVNULL) as capture:
            seen, reports = watch(server, capture)
        check("serve: the capture ended well", capture.returncode == 0, capture.returncode)
        last = server.wait_for(NAME, lambda one: one["state"] == "ended", seconds=60)
        served = summary_in(server)
    finally:
        server.end()
    running = [calls for state, calls in seen if state == "running"]
    print(f"        while it ran: {running} calls in the list, {reports} in reports")
    check("serve: while it runs, the list has more and more calls", len(running) > 1 and running == sorted(set(running)), seen)
    check("serve: while it runs, reports have more and more calls", len(set(reports)) > 1 and reports == sorted(reports), reports)
    answered = json.loads(subprocess.run([machine.cudabpf, "summary", "--json", path], check=True, stdout=subprocess.PIPE).stdout)["summary"]
    check("serve: in the end the list is right", last["summary"]["calls"] == answered["calls"], last)
    check("serve: in the end the report is that of `summary`", served == answered,
          [key for key in answered if served.get(key) != answered[key]])
    check("serve: the report has what the GPU did", served["measured"]["gpus"], served.get("measured"))


def run(machine, check, skipped, workloads):
    if not toolkit.sees_gpu("torch, transformers"):
        return skipped("serve", "PyTorch or transformers are not installed")
    program = [sys.executable, f"{workloads}/transformer_inference.py", "--model", "gpt2-medium", "--random-weights", "--tokens", str(TOKENS)]
    return check_capture(machine, check, program)
