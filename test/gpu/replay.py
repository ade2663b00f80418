"""Programs' iterations, captured and run again: what the replay leaves must be what the program left, byte by byte."""
import collections
import json
import os
import subprocess
import sys

PROGRAMS = {  # what is captured, and the modules that it imports
    "gpt2": (["transformer_inference.py", "--random-weights"], "torch, transformers"),
    "bloom": (["bloom_inference.py", "--tokens", "40"], "torch"),
    "llama": (["vicuna_two_gpus.py", "--gpus", "1", "--layers", "8"], "torch"),
    "resnet": (["iterations.py", "resnet", "60"], "torch"),
    "triton": (["iterations.py", "triton"], "torch, triton"),
    "cupy": (["iterations.py", "cupy"], "cupy"),
    "jax": (["iterations.py", "jax", "2000"], "jax"),  # takes three quarters of the memory, unless it is told not to
    "graphs": (["iterations.py", "graphs"], "torch"),
    "rows": (["iterations.py", "rows"], "torch"),
}
REFUSED = {"jax": {"cuLaunchHostFunc"}}  # by which its runtime is told that work has ended
# Of the prediction, in percent, where the GPU was busy for longer than so many us: of short kernels, the clock's steps and the time
# from one to the next are percents.
ALLOWED_ERROR = ((1000, 5), (500, 8))
CHANGE_WEIGHTS = {"resnet"}  # so there are two of each


def importable(modules):
    return subprocess.run([sys.executable, "-c", f"import {modules}"], check=False, stderr=subprocess.DEVNULL).returncode == 0


def answer(cudabpf, *arguments):
    done = subprocess.run([cudabpf, "replay", *arguments, "--json"], check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.returncode, json.loads(done.stdout) if done.stdout.startswith("{") else {"error": done.stderr}


class Replays:
    def __init__(self, machine, check, skipped, workloads):
        self.machine, self.check, self.skipped, self.workloads = machine, check, skipped, workloads

    def run(self, names):
        for name in names:
            command, modules = PROGRAMS[name]
            if importable(modules):
                self.program(name, [sys.executable, f"{self.workloads}/{command[0]}", *command[1:]])
            else:
                self.skipped(f"replay, {name}", f"{modules} cannot be imported")

    def program(self, name, command):
        env = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        folder = f"{self.machine.folder}/capture-{name}"
        plain = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, env=env)
        done = subprocess.run([self.machine.cudabpf, "run", "-q", "--gpu", "--capture", folder, "-o", self.machine.path, "--", *command],
                              check=False, stdout=subprocess.PIPE, text=True, env=env)
        self.check_results(name, command, env, plain, done)
        if not os.path.exists(f"{folder}/manifest.json"):
            self.check(f"replay, {name}: an iteration was captured", False, os.listdir(folder))
            return
        self.check_size(name, folder)
        status, full = answer(self.machine.cudabpf, folder, "--full")
        compared = full.get("comparison", {})
        bytes_of = [compared.get(what, {}) for what in ("memory", "copies_to_host", "variables")]
        self.check(f"replay, {name}: {sum(one.get('equal', 0) for one in bytes_of)} bytes are equal, "
                   f"{sum(one.get('not_deterministic', 0) for one in bytes_of)} not deterministic",
                   status == 0 and bytes_of[0].get("equal") and not any(one.get("different", 1) for one in bytes_of), (status, full))
        self.check(f"replay, {name}: all of it ran", not full.get("not_run") and not full.get("failed"),
                   (full.get("not_run"), full.get("failed")))
        self.check_times(name, folder)

    def check_results(self, name, command, env, plain, done):
        same = done.returncode == plain.returncode == 0 and results(done.stdout) == results(plain.stdout)
        again = plain if same else subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, env=env)
        if results(plain.stdout) != results(again.stdout):
            self.skipped(f"replay, {name}: the program does the same", f"without cudabpf it does not, either: {results(again.stdout)}")
        else:
            self.check(f"replay, {name}: the program does the same", same, (results(plain.stdout), results(done.stdout)))

    def check_times(self, name, folder):
        """What the kernels predict; and the tape's own time on the GPU, for which its replay is traced."""
        status, times = answer(self.machine.cudabpf, folder, "--compare", self.machine.path)
        launches = times.get("launches", [])
        self.check(f"replay, {name}: {len(launches)} distinct launches by themselves", status == 0 and launches and
                   all(one["in_turn_us"] for one in launches), (status, times))
        actual, measured = (sum(one[what] for one in launches) for what in ("actual_total_us", "measured"))
        print(f"        {name}: the GPU was busy for {times['actual']['gpu_busy_us']} us; predicted from its kernels "
              f"{times['error_percent']:+.1f} %, warm {times['warm_error_percent']:+.1f} %, cold {times['cold_error_percent']:+.1f} %; "
              f"{times['share_within_percent']:.1f} % of {times['launches_judged']} launches from warm to cold")
        if most := next((percent for busy, percent in ALLOWED_ERROR if times["actual"]["gpu_busy_us"] > busy), None):
            self.check(f"replay, {name}: its time is predicted within {most} %", abs(times["error_percent"]) <= most, times["error_percent"])
        again = f"{self.machine.folder}/replayed.jsonl"
        subprocess.run([self.machine.cudabpf, "run", "-q", "--gpu", "-o", again, "--", self.machine.cudabpf, "replay", folder, "--runs", "5"],
                       check=False, stdout=subprocess.DEVNULL)
        kernels = kernel_times(again)
        passes = len(kernels) / measured if measured else 0
        error = (sum(kernels) / passes / actual - 1) * 100 if passes and actual else None
        print(f"        {name}: kernels of the tape take {actual} us in the program, replayed {error} % more, {passes} passes")
        if actual > 500:
            self.check(f"replay, {name}: the tape's kernels take as long as the program's, within 2 %",
                       passes == int(passes) and abs(error) <= 2, (passes, error))

        self.one_kernel(name, folder)

    def one_kernel(self, name, folder):
        """The kernel that is launched most often, of those that change memory: alone, without cudabpf, and its own code in its place."""
        with open(f"{folder}/manifest.json", encoding="utf-8") as file:
            kernels = json.load(file)["kernels"]
        with open(f"{folder}/tape.jsonl", encoding="utf-8") as tape:
            launches = collections.Counter(kernels[line["launch"]["kernel"]]["name"] for line in map(json.loads, tape) if line["op"] == "launch")
        if not launches:
            self.skipped(f"replay, {name}: one kernel", "all launches are in graphs")
            return
        for number, (kernel, _) in enumerate(launches.most_common()):
            alone = f"{folder}-kernel-{number}"
            status, exported = answer(self.machine.cudabpf, folder, "--export", kernel, "-o", alone)
            if not status or "it changes no memory when it runs here" not in exported["error"]:
                break
            print(f"        {name}: {kernel} changes no memory, so nothing could be compared")
        self.check(f"replay, {name}: {kernel} alone", status == 0, (status, exported))
        if status:
            return
        print(f"        {name}: {len(exported['occurrences'])} of {exported['launches']} launches, memory {exported['memory']}, "
              f"{exported['block_bytes'] >> 20} MiB, {[one['in_bytes'] for one in exported['occurrences']]} bytes given")
        compiled = subprocess.run(["g++", "-O2", "-o", f"{alone}/launch", f"{alone}/launch.cpp", "-l:libcuda.so.1"], check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.check(f"replay, {name}: launch.cpp is compiled", compiled.returncode == 0, compiled.stdout)
        done = subprocess.run([f"{alone}/launch"], check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.check(f"replay, {name}: launch.cpp finds all equal", done.returncode == 0, done.stdout)
        image = f"{alone}/images/{os.listdir(f'{alone}/images')[0]}"
        status, tried = answer(self.machine.cudabpf, alone, "--with", image)
        self.check(f"replay, {name}: its own code does the same", status == 0 and tried["verdict"] == "same", (status, tried))
        print(f"        {name}: {[one['speed_up'] for one in tried.get('launches', [])]}, {tried.get('notes')}")

    def check_size(self, name, folder):
        with open(f"{folder}/manifest.json", encoding="utf-8") as file:
            manifest = json.load(file)
        live = sum(block["size"] for block in manifest["blocks"])
        code = sum(image["size"] for image in manifest["images"])
        written = sum(os.stat(os.path.join(at, file)).st_blocks * 512 for at, _, files in os.walk(folder) for file in files)
        print(f"        {name}: iteration {manifest['iteration']['number']}, {manifest['operations']} operations of "
              f"{len(manifest['kernels'])} kernels, {live >> 20} MiB of memory, {code >> 20} MiB of code, {written >> 20} MiB in the folder")
        usual = REFUSED.get(name, set())
        self.check(f"replay, {name}: nothing is refused{''.join(f', but {what}' for what in usual)}",
                   {one["what"] for one in manifest["refused"]} <= usual and
                   not [kernel for kernel in manifest["kernels"] if "refused" in kernel], manifest["refused"])
        most = 2.2 if name in CHANGE_WEIGHTS else 1.2
        self.check(f"replay, {name}: the folder is no larger than {most} times live memory and code", written <= most * (live + code),
                   (written, live, code))


def kernel_times(trace):
    """In us, of the process that has most of them."""
    times = collections.defaultdict(list)
    with open(trace, encoding="utf-8") as lines:
        for line in lines:
            if '"type":"gpu"' in line and '"op":"kernel"' in line:
                operation = json.loads(line)
                times[operation["pid"]].append(operation["duration_us"])
    return max(times.values(), key=len, default=[])


def results(printed):
    """The lines that say what was computed: others have times."""
    return [line for line in printed.splitlines() if line.startswith(("tokens", "checksum", "resnet", "triton", "cupy", "jax", "graphs", "rows"))]
