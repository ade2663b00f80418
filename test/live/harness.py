"""Runs the real cudabpf on the simulated driver, and compares its trace with the driver's own record.

CUDABPF_BUILD names the build folder. A test module ends with harness.main(), and is called with the names of some of its
tests, or without for all.

With CUDABPF_WAY=inside, `run` becomes `run --inside`, by a user without rights, and the trace is compared with what
the library inside the process can have seen. With CUDABPF_WAY=merged it becomes `run --inside --kernel`, as root: the
kernel reports of processes and of the driver. inside_tests.txt lists the tests for which that makes sense.
"""
import atexit
import contextlib
import ctypes
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import machine
import theme
from graph_truth import check_graphs
from records import Record, Trace, merge, records as records_in, symbol_of  # noqa: F401  pylint: disable=unused-import

MERGED = os.environ.get("CUDABPF_WAY") == "merged"
INSIDE = MERGED or os.environ.get("CUDABPF_WAY") == "inside"
BY_BPF = MERGED or not INSIDE
BUILD = os.path.abspath(os.environ.get("CUDABPF_BUILD", "build"))
NOBODY = pwd.getpwnam("nobody")
# How a user without rights starts a program: options for subprocess.
WITHOUT_RIGHTS = {"user": NOBODY.pw_uid, "group": NOBODY.pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}
AS_USER = {} if BY_BPF else WITHOUT_RIGHTS


def may_run(path):
    """Whether the user as whom programs are started can start this one."""
    return subprocess.run(["test", "-x", path], check=False, cwd="/", **AS_USER).returncode == 0


PYTHON = sys.executable if may_run(sys.executable) else shutil.which("python3", path="/usr/bin:/bin")


def build_of_our_own():
    """A copy of what tests need of the build folder. The user without rights may not enter that one; and return probes of
    an earlier test, whose links the kernel may still be closing, are on its libraries: they keep exceptions from passing,
    and kill a program whose handler makes calls on a higher stack."""
    folder = tempfile.mkdtemp(prefix="cudabpf-inside-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name in ("cudabpf", "libcudabpf-inside.so"):
        shutil.copy(f"{BUILD}/{name}", folder)
    for name in ("test/fake_libcuda", "test/fake_cupti", "test/fake_nccl", "test/fake_cublas", "test/fake_nvml", "test/memory", "test/workloads",
                 "test/live"):
        shutil.copytree(f"{BUILD}/{name}", f"{folder}/{name}", ignore=shutil.ignore_patterns("CMake*", "*.cpp", "*.a"))
    subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
    return folder


BUILD = build_of_our_own() if INSIDE else BUILD
CUDABPF = os.environ.get("CUDABPF_PROGRAM", f"{BUILD}/cudabpf")
INSIDE_LIBRARY = f"{BUILD}/libcudabpf-inside.so"
LIBRARY = f"{BUILD}/test/fake_libcuda/libcuda.so.1"
NEWER = f"{BUILD}/test/fake_libcuda/newer/libcuda.so.1"
OLD = f"{BUILD}/test/fake_libcuda/old/libcuda.so.1"
WORKLOADS = f"{BUILD}/test/workloads"
NCCL = f"{BUILD}/test/fake_nccl/libnccl.so.2"
CUBLAS, CUBLASLT = (f"{BUILD}/test/fake_cublas/lib{name}.so.13" for name in ("cublas", "cublasLt"))
NCCL_UNOPTIMIZED = f"{BUILD}/test/fake_nccl/unoptimized/libnccl.so.2"
INSIDE_TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inside_tests.txt")
LOOKUP = "cuGetProcAddress_v2"  # each workload begins by looking up its functions
CLONE_NEWNS = 0x20000
PATIENCE = 30  # seconds for anything that must happen
PROFILES = ("light", "default", "full")


def profile_symbols(profile):
    """What a profile traces of the driver, according to the program itself."""
    command = [CUDABPF, "functions", "--profile", profile, "--json"]
    lines = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines()
    functions = map(json.loads, lines)
    return {function["symbol"] for function in functions if function["library"] == "cuda"}


def wait_for(condition, what, seconds=PATIENCE):
    """Waits until the condition is true, and returns its value."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"after {seconds} s: not {what}")


def calls(script, library=LIBRARY):
    """A command that makes these calls."""
    return [f"{WORKLOADS}/fake_calls", "--library", library, script]


def launches(count, rate):
    return [f"{WORKLOADS}/fake_storm", "--library", LIBRARY, "--count", str(count), "--rate", str(rate)]


def ended(pid):
    """The process is gone, or a zombie."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] in "ZX"
    return True


def become_user():
    """For a forked child: it is then as AS_USER says."""
    if AS_USER:
        os.setgroups([])
        os.setgid(AS_USER["group"])
        os.setuid(AS_USER["user"])


def records(folder, inside=None):
    return records_in(folder, INSIDE if inside is None else inside)


class Program:
    """A program that runs beside the test, and ends with it."""

    def __init__(self, command, env=None, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        self.errors = tempfile.TemporaryFile()  # pylint: disable=consider-using-with
        options.setdefault("stderr", self.errors)
        self.process = subprocess.Popen(list(map(str, command)), env=env, **options)  # pylint: disable=consider-using-with
        self.pid = self.process.pid

    def stderr(self):
        # Where it is read from is also where the program writes next: moved, its next line would overwrite its first.
        text = os.pread(self.errors.fileno(), os.fstat(self.errors.fileno()).st_size, 0)
        return text.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, seconds=PATIENCE):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.process.args} still runs after {seconds} s:\n{self.stderr()}") from None

    def send_line(self, text="\n"):
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def kill(self):
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()
        self.errors.close()


class LiveTest(unittest.TestCase):
    maxDiff = None
    program = CUDABPF

    def run(self, result=None):
        self.programs_before = machine.our_programs() if BY_BPF else set()  # single links of an earlier test may still be closing
        return super().run(result)

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="cudabpf-live-")
        os.chmod(self.folder, 0o777)
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.path = f"{self.folder}/trace.jsonl"
        self.record_folder = f"{self.folder}/record"
        os.mkdir(self.record_folder)
        os.chmod(self.record_folder, 0o777)

    # --- starting

    def environment(self, **fake):
        """The test's own environment, with FAKE_CUDA_… variables: LATENCY="…", LOG=None for none."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("FAKE_CUDA_", "SUDO_"))}
        env.pop("LD_LIBRARY_PATH", None)
        settings = {"COUNTS": self.record_folder, "LOG": self.record_folder, **fake}
        env.update({f"FAKE_CUDA_{k}": str(v) for k, v in settings.items() if v is not None})
        return env

    def simulated_nvml(self):
        """A folder with it that every user may read: root without capabilities is like any other user in a user's home."""
        folder = f"{self.folder}/nvml"
        os.makedirs(folder, exist_ok=True)
        shutil.copy(f"{BUILD}/test/fake_nvml/libnvidia-ml.so.1", folder)
        return folder

    def small_disk(self):
        """A file system of one megabyte, which ends with this process; no other process sees it."""
        folder = f"{self.folder}/disk"
        os.mkdir(folder)
        if ctypes.CDLL(None).unshare(CLONE_NEWNS):
            self.skipTest("this machine allows no mount namespace")
        for command in (["--make-rprivate", "/"], ["-t", "tmpfs", "-o", "size=1M", "cudabpf-test", folder]):
            done = subprocess.run(["mount", *command], check=False, stderr=subprocess.PIPE, text=True)
            if done.returncode:
                self.skipTest(f"this machine mounts no tmpfs: {done.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "--lazy", folder], check=False)
        return folder

    @staticmethod
    def fill(folder):
        with open(f"{folder}/ballast", "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(512))

    def by_way(self, command):
        """The command of cudabpf for the way of tracing that is tested."""
        command = list(map(str, command))
        if INSIDE and command[:2] in ([self.program, "run"], [CUDABPF, "run"]) and "--inside" not in command:
            command[2:2] = ["--inside", *(["--kernel"] if MERGED and "--kernel" not in command else [])]
        return command

    def start(self, command, **options):
        options = {"env": self.environment(), **AS_USER, **options}
        command = self.by_way(command)
        program = Program(command, **options)
        self.addCleanup(program.kill)
        return program

    def start_cudabpf(self, *arguments, output=None, **options):
        """Starts cudabpf, and returns once it traces, which the header shows."""
        output = output or self.path
        program = self.start([self.program, *arguments], **options)

        def traces():
            assert program.process.poll() is None, program.stderr()
            return os.path.exists(output) and os.path.getsize(output)
        wait_for(traces, f"a header in {output}")
        return program

    def run_cudabpf(self, *arguments, timeout=60, **options):
        """Runs cudabpf to its end."""
        options = {"env": self.environment(), "stdin": subprocess.DEVNULL, **AS_USER, **options}
        return subprocess.run(self.by_way([self.program, *arguments]), timeout=timeout, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    def script(self, script, *flags, fake=None, status=0, workload=(), library=LIBRARY, output=None):
        """Traces fake_calls with this script, all functions unless flags say otherwise."""
        command = [f"{WORKLOADS}/fake_calls", "--library", library, *workload, script]
        return self.traced(command, "--library", library, *flags, fake=fake, status=status, output=output)

    def traced(self, command, *flags, fake=None, status=0, output=None):
        flags = list(flags)
        if not {"--profile", "--only"} & set(flags):
            flags += ["--profile", "full"]
        output = output or self.path
        done = self.run_cudabpf("run", "-o", output, *flags, "--", *command,
                                env=self.environment(**(fake or {})))
        self.stderr = done.stderr.decode()
        self.assertEqual(done.returncode, status, self.stderr)
        return self.read(output)

    # --- comparing

    def read(self, path=None, whole=True):
        with open(path or self.path, encoding="utf-8") as file:
            return Trace(file.read(), whole)

    def records(self):
        return records(self.record_folder)

    def record(self):
        """The record of the only process that made calls."""
        found = self.records()
        self.assertEqual(len(found), 1, "processes that made calls")
        return next(iter(found.values()))

    def total(self):
        """How many calls the driver got so far."""
        return sum(sum(record.counts.values()) for record in self.records().values())

    def check_accounts(self, trace):
        accounts = trace.end["accounts"]
        self.assertEqual(accounts["entered"], accounts["emitted"] + accounts["dropped"])
        self.assertEqual(accounts["received"], accounts["emitted"])
        self.assertEqual(trace.end["calls"], len(trace.calls))
        self.assertEqual(trace.end["lines"], len(trace.lines))
        ids = [call["id"] for call in trace.calls]
        self.assertEqual(len(ids), len(set(ids)))
        check_graphs(self, trace)

    def check_law(self, trace, under_way=()):
        """The accounts balance, and nothing is missing, but maybe the returns of calls that were under way at the end."""
        self.check_accounts(trace)
        self.assertEqual(trace.end["accounts"]["dropped"], 0)
        self.assertEqual(trace.end["losses"], {}, trace.lost)
        self.assertEqual(trace.lost, [])
        flags = {"unfinished", "return_lost", "entry_lost", "read_fault"}
        self.assertEqual([call for call in trace.calls if flags & set(call) - ({"unfinished"} if call in under_way else set())], [])

    def check_counts(self, trace, symbols=None):
        """Each call of each process to these functions has one line, and there are no others."""
        found = self.records()
        for pid, record in found.items():
            counts = {k: v for k, v in record.counts.items() if symbols is None or k in symbols}
            reported = trace.counts(pid)
            if record.inside:
                self.check_seen(record)
                for symbol, most in record.doubtful.items():  # it is not known whether these were seen
                    reported[symbol] -= min(most, max(0, reported[symbol] - counts.get(symbol, 0)))
            self.assertEqual(dict(+reported), counts, f"pid {pid}")
        self.assertEqual({call["pid"] for call in trace.calls} - set(found), set())

    def check_seen(self, record):
        """A library came into the process: otherwise, nothing could be seen, and nothing would be compared."""
        if set(record.all_counts) - {LOOKUP, "cuInit", *record.doubtful}:
            self.assertTrue(record.counts, f"no library was loaded into {record.pid}")

    def nothing_left(self):
        """No program of this test is in the kernel, and so no link, either."""
        return not BY_BPF or not machine.our_programs() - self.programs_before

    def check_gone(self, seconds=PATIENCE):
        wait_for(self.nothing_left, "rid of every program and link", seconds)

    def check_whole(self, trace, symbols=None):
        self.check_law(trace)
        self.check_counts(trace, symbols)


def why_skipped():
    """Why no test of this way can run here; nothing if they can. Inside the process it takes only the right machine."""
    if INSIDE:
        os.umask(0)  # a test's programs have to write to what the test makes as root
    return (machine.why_not_inside() if INSIDE else "") or (machine.why_no_bpf(CUDABPF) if BY_BPF else "")


def listed_tests(theme):
    """The names of the theme's tests that inside_tests.txt lists for this way; None: all."""
    starts = (f"merged {theme}:",) if MERGED else (f"{theme}:", f"ebpf {theme}:")
    with open(INSIDE_TESTS, encoding="utf-8") as file:
        names = [line.partition(":")[2].split() for line in file if line.startswith(starts)]
    return None if names == [["*"]] else [name for line in names for name in line]


def cases_of(module, wanted):
    """The tests of a module's class Live: those that are wanted, else those that this way has."""
    have = [name.removeprefix("test_") for name in vars(module.Live) if name.startswith("test_")]
    if not wanted and INSIDE:
        wanted = listed_tests(os.path.basename(module.__file__).removesuffix("_test.py"))
    unknown = set(wanted or ()) - set(have)
    if unknown:
        sys.exit(f"{module.__file__} has no test {', '.join(sorted(unknown))}")
    return [module.Live(f"test_{name}") for name in wanted or have]


def main():
    cases = cases_of(sys.modules["__main__"], [name.removeprefix("Live.").removeprefix("test_") for name in sys.argv[1:]])
    reason = why_skipped()
    if reason:
        sys.exit(theme.skip_all(cases, reason))
    with machine.grace_periods(quick=True) if BY_BPF else contextlib.nullcontext():
        sys.exit(theme.run(cases))
