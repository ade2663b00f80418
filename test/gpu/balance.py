"""What the driver took of a GPU's memory (`memory`, with --kernel), against what NVML tells the program itself."""
import json
import subprocess
import sys

import toolkit

PROGRAMS = {"torch": "torch", "nccl": "torch", "jax": "jax"}  # and the modules that they import
EXPLAINED = 0.97  # of what NVML says, at least


def run(machine, check, skipped, workloads):
    for program, modules in PROGRAMS.items():
        if subprocess.run([sys.executable, "-c", f"import pynvml, {modules}"], check=False, stderr=subprocess.DEVNULL).returncode:
            skipped(f"balance, {program}", f"it takes pynvml and {modules}")
            continue
        for flags in (("--kernel",), ("--kernel", "--inside")):
            name = f"balance, {program}, {' '.join(flags)}"
            balance(machine, check, name, [sys.executable, f"{workloads}/memory_stages.py", program], flags)


def balance(machine, check, name, command, flags):
    done = subprocess.run([machine.cudabpf, "run", "-q", "-o", machine.path, *flags, "--", *command], check=False, stdout=subprocess.PIPE)
    check(f"{name}: status", done.returncode == 0, done.returncode)
    known = json.loads(done.stdout.splitlines()[-1])
    answer = json.loads(subprocess.run([machine.cudabpf, "memory", "--json", machine.path], check=True, stdout=subprocess.PIPE).stdout)
    losses = {reason for reason in answer["trace"]["losses"] if reason != "late_library"}
    check(f"{name}: nothing else is lost", not losses, losses)
    last = answer["memory"]["driver"]["processes"][0]["last"]
    check(f"{name}: NVML's figure is what the program got", last and last["nvml"] == known["nvml"], (last, known))
    if not last:
        return
    explained = (last["asked_for"] + last["driver"]) / last["nvml"]
    check(f"{name}: {100 * explained:.1f} % is explained", EXPLAINED <= explained <= 1, last)
    held = {share["holder"]: share["bytes"] for share in last["shares"] if share.get("holder") in known["held"]}
    check(f"{name}: held, as the library says", held == known["held"], (held, known["held"]))
    print(f"        unexplained: {last['unexplained']:,} B of {last['nvml']:,}")
