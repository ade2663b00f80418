"""Opens reports in a browser, as people do: without a network, at two widths, in light and dark.
usage: report_page.py CUDABPF [timeline_test.mjs …]   exit status 77: there is no browser, or nothing to drive it with
       report_page.py CUDABPF --record   only records what is simulated: apart, since a machine-wide trace of a test would see it"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WEB = ROOT / "web"
TRACES = {
    "gpt2": ROOT / "traces/h200-gpt2.jsonl.zst",
    "two-gpus": ROOT / "traces/h200-two-gpus.jsonl.zst",
    "measured": ROOT / "test/golden/gpu_execution.jsonl",
    "two-ranks": ROOT / "traces/example-ranks.jsonl.zst",
    "ranges": ROOT / "traces/example-ranges.jsonl.zst",
    "python": ROOT / "traces/h200-slow-token.jsonl.zst",
    "graphs": ROOT / "test/golden/graphs.jsonl",
    "memory": ROOT / "traces/h200-memory.jsonl.zst",
    "ran-out": ROOT / "test/golden/who_held.jsonl",
    "lossy": ROOT / "test/golden/trace.jsonl",
    "tracks": ROOT / "test/golden/gpu_tracks.jsonl.zst",
    "sampled": ROOT / "test/golden/sampled/inference.jsonl.zst",
    "vector-add": ROOT / "traces/h200-vector-add.jsonl.zst",
}
COMPARED = {"vs-transformer": ("traces/h200-gpt2.jsonl.zst", "traces/h200-transformer.jsonl.zst"),
            "vs-slower": ("test/golden/gpu_kernels.jsonl", "test/golden/gpu_kernels_slower.jsonl")}
SUBCOMMANDS = ("summary", "calls", "kernels", "ioctls", "gaps", "memory", "energy", "errors")
MARKUP = "</script><script>window.hacked=1</script><img src=x onerror='window.hacked=1'>\"'`&lt;"


def skip(reason):
    print(f"SKIPPED: {reason}")
    sys.exit(77)


def hostile_lines():
    """A trace in which every text is markup, too long, or no UTF-8, and the times are absurd."""
    yield {"type": "trace", "format": "cudabpf-trace", "format_version": "2.0", "host": MARKUP, "command": [MARKUP]}
    yield {"type": "process", "op": "start", "ts": 1, "pid": 7, "comm": MARKUP, "cmdline": MARKUP}
    names = (MARKUP, "k" * 10_000, "javascript:alert(1)", "bad\udcff\udc80bytes", "\u202egnp.exe", "a\x1eb\x1fc", "${hacked}", "__proto__")
    for number, name in enumerate(names, 1):
        yield {"type": "stack", "ts": 1, "stack": number, "frames": [{"function": name, "file": MARKUP, "line": number}] * 3}
        yield {"id": number, "type": "kernel", "op": "launch", "name": name[:900], "ts": number * 1000, "duration_us": 1.5, "pid": 7, "tid": 7,
               "ret": 0, "stream": "0x0", "kernel": name, "grid": [1, 1, 1], "block": [1, 1, 1], "args": {MARKUP: MARKUP}, "stack": number}
        yield {"id": 100 + number, "type": "memory", "op": "alloc", "name": "cuMemAlloc", "ts": number * 1000 + 500, "duration_us": 0.1,
               "pid": 7, "tid": 8, "ret": 2, "error": MARKUP, "size": 2**64 - 1}
    for number, (ts, duration) in enumerate(((2**53 + 5, 1), (2**63, 1e15), (2**64 - 1, 0), (9000, 9e18), (0, 0)), 200):
        yield {"id": number, "type": "sync", "op": "stream", "name": "cuStreamSynchronize", "ts": ts, "duration_us": duration, "pid": 7,
               "tid": 7, "ret": 0, "parent": number}
        yield {"type": "gpu", "op": "kernel", "ts": ts, "duration_us": duration, "pid": 7, "call": 1, "stream": "0x0", "queue": 4,
               "kernel": MARKUP, "device": 0}
    yield {"type": "lost", "ts": 3, "reason": MARKUP, "severity": "lost", "count": 5, "since": 0, "until": 3}


def write_hostile(path):
    with open(path, "wb") as file:
        for line in hostile_lines():
            text = json.dumps(line, ensure_ascii=False).encode("utf-8", "surrogateescape")
            file.write(text + b"\n")
        file.write(b'{"type":"nonsense"}\nno json at all\n')


def write_kept(path, since=7_810_000):
    """What is left of a trace whose older lines had to go."""
    with open(TRACES["measured"], encoding="utf-8") as whole, open(path, "w", encoding="utf-8") as kept:
        for line in map(json.loads, whole):
            if line["type"] == "trace":
                line["since"] = since
            if line["type"] in ("trace", "process") or line["ts"] >= since:
                kept.write(json.dumps(line) + "\n")


def write_machine(path):
    """Nine processes in 40 minutes, of which the last has four launches in each of its six iterations, and a pause between two."""
    with open(path, "w", encoding="utf-8") as file:
        def write(**line):
            file.write(json.dumps(line) + "\n")
        write(type="trace", format="cudabpf-trace", format_version="2.0", host="node-7", mode="machine")
        number = 0

        def call(pid, kind, op, name, ts, **rest):
            nonlocal number
            number += 1
            write(id=number, type=kind, op=op, name=name, ts=ts, duration_us=10.0, pid=pid, tid=pid, ret=0, **rest)
        for index in range(9):
            pid, start = 100 + index, index * 250_000_000_000
            comm = "trainer" if index == 8 else f"worker-{index}"
            write(type="process", op="start", ts=start, pid=pid, comm=comm, cmdline=f"{comm} --rank {index}")
            for iteration in range(6 if index == 8 else 1):
                begin = start + 1_000_000 * (iteration + 1) + (10_000_000_000 if iteration > 4 else 0)
                for launch in range(4):
                    call(pid, "kernel", "launch", "cuLaunchKernel", begin + launch * 20_000, stream="0x0", kernel=f"k{launch}", grid=[1, 1, 1], block=[1, 1, 1])
                call(pid, "sync", "context", "cuCtxSynchronize", begin + 100_000)
        write(type="end", ts=2_429_000_000_000, duration_ns=2_429_000_000_000)


def write_steps(path, step_us):
    """Forty iterations of four launches and a wait, as long as this each."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps({"type": "trace", "format": "cudabpf-trace", "format_version": "2.0"}) + "\n")
        number = 0
        for step in range(40):
            for call in range(5):
                number += 1
                line = {"id": number, "ts": 1_000_000 + step * step_us * 1000 + call * 20_000, "duration_us": 10.0, "pid": 7, "tid": 7, "ret": 0}
                line |= ({"type": "kernel", "op": "launch", "name": "cuLaunchKernel", "kernel": f"k{call}", "stream": "0x0"} if call < 4
                         else {"type": "sync", "op": "context", "name": "cuCtxSynchronize"})
                file.write(json.dumps(line) + "\n")
        file.write(json.dumps({"type": "end", "ts": 200_000_000, "duration_ns": 200_000_000}) + "\n")


def record_simulated(build):
    """What two threads ask of a simulated GPU, with when that worked and how busy and hot it was. -> the folder that has it"""
    folder = build / "test/report_simulated"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    driver, cupti, nvml, program = (build / "test" / of for of in (
        "fake_libcuda/libcuda.so.1", "fake_cupti/libcupti.so.13", "fake_nvml/libnvidia-ml.so.1", "workloads/fake_inference"))
    if not all(path.exists() for path in (driver, cupti, nvml, program)):
        return folder
    env = dict(os.environ, LD_LIBRARY_PATH=str(nvml.parent), CUDABPF_CUPTI=str(cupti), FAKE_NVML_GPUS="2",
               FAKE_NVML_RECORD=str(folder / "nvml.tsv"), FAKE_CUPTI_RECORD=str(folder / "cupti.jsonl"))
    subprocess.run([build / "cudabpf", "run", "--inside", "-q", "-o", folder / "simulated.jsonl", "--library", driver, "--gpu", "--sample=20",
                    "--", program, "--library", driver, "--threads", "2", "--layers", "3", "--tokens", "40", "--token-pause", "20000"],
                   env=env, stdout=subprocess.DEVNULL, check=True)
    with open(folder / "simulated.jsonl", encoding="utf-8") as file:
        gpu = [line for line in map(json.loads, file) if line["type"] == "gpu"]
    (folder / "simulated-gpu.json").write_text(json.dumps(gpu), encoding="utf-8")
    return folder


def browser():
    """Where it is, if everything is there to drive it."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        skip("there is no chromium (on Ubuntu it is a snap, which is not used)")
    modules = subprocess.run([ROOT / "scripts/node-modules", "--check", "web"], stdout=subprocess.PIPE, text=True, check=False)
    if modules.returncode == 77:
        skip(modules.stdout.strip().removeprefix("SKIPPED: "))
    modules.check_returncode()
    version = subprocess.run(["node", "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    if int(version[1:].split(".")[0]) < 20:
        skip(f"playwright-core wants node 20 or newer, and this is {version}")
    return chromium


def make_reports(cudabpf, folder):
    """What the tests in a browser look at, and what it is compared with."""
    write_hostile(folder / "hostile.jsonl")
    write_kept(folder / "kept.jsonl")
    write_machine(folder / "machine.jsonl")
    write_steps(folder / "fast.jsonl", 1000)
    write_steps(folder / "slow.jsonl", 3700)

    def ask(*arguments):
        return subprocess.run([cudabpf, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
    traces = {**TRACES, "hostile": folder / "hostile.jsonl", "kept": folder / "kept.jsonl", "machine": folder / "machine.jsonl",
              "hosts": folder / "hosts.jsonl.zst"}
    ask("merge", *(ROOT / f"traces/h200-{name}.jsonl.zst" for name in ("two-gpus", "gpt2")), "-o", traces["hosts"])
    recorded = cudabpf.parent / "test/report_simulated"
    shutil.copytree(recorded if recorded.exists() else record_simulated(cudabpf.parent), folder, dirs_exist_ok=True)
    if (folder / "simulated.jsonl").exists():  # else it was not built
        traces["simulated"] = folder / "simulated.jsonl"
    for title, trace in traces.items():
        ask("report", trace, "-o", folder / f"{title}.html")
        answers = {}
        for subcommand in SUBCOMMANDS:  # a report has more of the longest gaps than `gaps` shows by default
            top = ("--top", "200") if subcommand == "gaps" else ()
            answers[subcommand] = json.loads(ask(subcommand, *top, "--json", trace))
        (folder / f"{title}.json").write_text(json.dumps(answers), encoding="utf-8")
    for title, (a, b) in {**COMPARED, "vs-hostile": (TRACES["measured"], folder / "hostile.jsonl"),
                          "vs-times": (folder / "fast.jsonl", folder / "slow.jsonl")}.items():
        ask("report", ROOT / a, ROOT / b, "-o", folder / f"{title}.html")
        (folder / f"{title}.json").write_bytes(ask("diff", "--json", ROOT / a, ROOT / b))
    for subcommand in ("calls", "ioctls", "summary"):  # for the ranges that the tests select in the page
        for title, begin, end in (("gpt2", 14_250_000_000, 14_500_000_000), ("gpt2", 2_500_000_000, 3_200_000_000),
                                  ("measured", 7_810_000, 9_000_000)):
            answer = ask(subcommand, "--json", "--from", f"{begin}ns", "--to", f"{end}ns", TRACES[title])
            (folder / f"{title}-{subcommand}-{begin}-{end}.json").write_bytes(answer)
    for weight in ("host", "gpu", "bytes", "allocated"):
        (folder / f"python-{weight}.folded").write_bytes(ask("export", TRACES["python"], "--format", "folded", "--weight", weight, "-o", "-"))
    for side, trace in zip("ab", COMPARED["vs-transformer"]):
        (folder / f"vs-transformer-{side}-calls.json").write_bytes(ask("calls", "--json", "--from", "2500ms", "--to", "6500ms", ROOT / trace))


def run_tests(chromium, folder, tests):
    """Returns the exit status. `tests`: files of this folder."""
    return subprocess.run(["node", "--test", "--test-reporter=spec", *tests], check=False, cwd=HERE,
                          env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), "REPORTS": str(folder), "CHROMIUM": chromium,
                               "WEB": str(WEB)}).returncode


def main():
    cudabpf = pathlib.Path(sys.argv[1]).resolve()
    if sys.argv[2:] == ["--record"]:
        record_simulated(cudabpf.parent)
        return
    chromium = browser()
    with tempfile.TemporaryDirectory() as name:
        make_reports(cudabpf, pathlib.Path(name))
        sys.exit(run_tests(chromium, name, sys.argv[2:] or sorted(one.name for one in HERE.glob("*_test.mjs"))))


if __name__ == "__main__":
    main()
