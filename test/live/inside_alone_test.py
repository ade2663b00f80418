"""Programs that were not started by `cudabpf run`: CUDA_INJECTION64_PATH or LD_PRELOAD bring the library into them,
which starts the cudabpf that records them.

These tests are run only this way (inside_tests.txt).
"""
import contextlib
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import time

import insiders
from expected import check_calls
from harness import CUDABPF, INSIDE_LIBRARY, LIBRARY, PATIENCE, PYTHON, WORKLOADS, calls, ended, wait_for
from insiders import EVERYTHING, STORM

OTHER_INJECTION = f"{WORKLOADS}/libother_injection.so"
INJECTED, PRELOADED = {"CUDA_INJECTION64_PATH": INSIDE_LIBRARY}, {"LD_PRELOAD": INSIDE_LIBRARY}
# All that a program can notice of having got a child, of signals, and of files. Prints what has changed.
WATCHFUL = """
import ctypes, json, os, signal, sys, threading
came = []
for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGCONT): signal.signal(number, lambda *_: came.append(number))
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGINT})
secret = open(sys.argv[2]); os.set_inheritable(secret.fileno(), True)
end_to_read, end_to_write = os.pipe(); os.set_inheritable(end_to_write, True)
def seen():
    status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
    try:
        children = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        children = "none"
    return {"files": sorted(os.listdir("/proc/self/fd")), "children": children, "environment": dict(os.environ),
            "signals": [status[name] for name in ("SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt")], "came": came,
            "threads": threading.active_count(), "cwd": os.getcwd(), "session": os.getsid(0)}
before = seen()
driver = ctypes.CDLL(sys.argv[1])
assert driver.cuInit(0) == 0
assert [driver.cuProfilerStart() for i in range(3)] == [0, 0, 0]
after = seen()
print(json.dumps([(before[key], after[key]) for key in before if before[key] != after[key]]), flush=True)
sys.stdin.readline()
os.close(end_to_write)
assert os.read(end_to_read, 1) == b""
now = seen()
print([key for key in now if now[key] != after[key] and key != "files"], flush=True)
"""


class Live(insiders.InsideTest):
    def setUp(self):
        super().setUp()
        self.traces = f"{self.folder}/traces"

    # --- starting

    def alone(self, way, output=None, **variables):
        """The environment of a program that records itself, by this way."""
        fake = {name: variables.pop(name) for name in ("LOG", "COUNTS") if name in variables}
        env = dict(self.environment(**fake), CUDABPF_OUTPUT=output or f"{self.traces}/", CUDABPF_OPTIONS="--profile full")
        return {**env, **way, **variables}

    def finished(self, count=1, pattern="*.jsonl"):
        """The traces, once that many of them have ended."""
        def ends():
            paths = sorted(glob.glob(f"{self.traces}/{pattern}"))
            for path in paths:
                with open(path, encoding="utf-8") as file:
                    if '\n{"type":"end",' not in file.read():
                        return None
            return len(paths) >= count and paths
        paths = wait_for(ends, f"{count} traces that have ended")
        self.assertEqual(len(paths), count, paths)
        # The process that has written the end still has to remove the file for messages.
        wait_for(lambda: not glob.glob(f"{self.traces}/*.log"), "traces without messages")
        return [self.read(path) for path in paths]

    def runs(self, command, env, status=0):
        done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=PATIENCE, env=env, **insiders.AS_USER)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def reader_of(self, pid):
        """The cudabpf that reads the records of this program."""
        def found():
            for path in glob.glob("/proc/[0-9]*/cmdline"):
                try:
                    with open(path, "rb") as file:
                        words = file.read().split(b"\0")
                except OSError:
                    continue
                if words[1:3] == [b"inside-reader", str(pid).encode()]:
                    yield int(path.split("/")[2])
        return wait_for(lambda: sorted(found()), f"the reader of {pid}")[0]

    # --- what is recorded

    def test_injected(self):
        done = self.runs(calls(EVERYTHING), self.alone(INJECTED))
        self.assertEqual(done.stderr, b"")
        trace, = self.finished()
        self.check_whole(trace)
        check_calls(self, trace)
        self.assertEqual(trace.header["command"], list(map(str, calls(EVERYTHING))))
        self.assertEqual((trace.header["mode"], trace.header["source"]), ("run", "inside"))
        pid = self.record().pid
        self.assertEqual([process["op"] for process in trace.processes if process["pid"] == pid][-1], "exit")

    def test_preloaded(self):
        """Through a shell, whose own functions have the names of libc's. Another library has its place."""
        marks = f"{self.folder}/marks"
        env = self.alone(PRELOADED, CUDA_INJECTION64_PATH=OTHER_INJECTION, OTHER_INJECTION_MARKS=marks)
        done = self.runs(["bash", "-c", '"$@"; echo "$?:$CUDA_INJECTION64_PATH"', "bash", *calls(EVERYTHING)], env)
        self.assertEqual((done.stdout, done.stderr), (f"0:{INSIDE_LIBRARY}\n".encode(), b""))
        trace, = self.finished()
        self.check_whole(trace)
        check_calls(self, trace)
        with open(marks, encoding="utf-8") as file:
            self.assertEqual(file.read().split(), [str(self.record().pid)])

    def test_both_ways_at_once(self):
        """Both variables, and a program that `run --inside` has started: one trace, each call once."""
        self.runs(calls(EVERYTHING), self.alone({**INJECTED, **PRELOADED}))
        trace, = self.finished()
        self.check_whole(trace)
        shutil.rmtree(self.record_folder)
        os.mkdir(self.record_folder)
        os.chmod(self.record_folder, 0o777)
        done = self.run_cudabpf("run", "-q", "-o", self.path, "--profile", "full", "--", *calls(EVERYTHING), env=self.alone(PRELOADED))
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.check_whole(self.read())
        self.finished()

    def test_options(self):
        """What `run` takes: --kernel, patterns, rotation."""
        env = self.alone(INJECTED, CUDABPF_OPTIONS=" --only cuMem*  --kernel --no-returns --rotate-size 20K ", LOG=None)
        self.runs(calls("setup; loop 300 { malloc a 4K; free a }; sync"), env)
        traces = self.finished(len(self.finished_parts()))
        self.assertGreater(len(traces), 2)
        made = self.record().counts
        self.assertEqual(sum(len(trace.named("cuMemAlloc_v2")) for trace in traces), made["cuMemAlloc_v2"])
        self.assertEqual(sum(len(trace.named("cuStreamSynchronize")) for trace in traces), 0)
        header = traces[0].header
        self.assertEqual((header["only"], header["returns"], header["driver_traced"]), (["cuMem*"], False, True))

    def finished_parts(self):
        def last_has_ended():
            paths = sorted(glob.glob(f"{self.traces}/*.jsonl"))
            if paths:
                with open(paths[-1], encoding="utf-8") as file:
                    if '"reason":"targets ended"' in file.read():
                        return paths
            return None
        return wait_for(last_has_ended, "the last part")

    def test_children(self):
        """Those of fork are in the trace of their parent, which ends with the last of them; one that execs begins another."""
        child = ["sh", "-c", "exec \"$@\"", "sh", *calls("setup; malloc a 4K; free a")]
        program = f"import os, subprocess, ctypes, sys, time\n" \
                  f"driver = ctypes.CDLL({LIBRARY!r}); assert driver.cuInit(0) == 0\n" \
                  f"end_to_read, end_to_write = os.pipe()\n" \
                  f"if os.fork() == 0:\n    driver.cuProfilerStop(); os.write(end_to_write, b'x'); time.sleep(0.5)\n" \
                  f"    [driver.cuProfilerStop() for i in range(6)]; os._exit(0)\n" \
                  f"driver.cuProfilerStart(); os.read(end_to_read, 1)\n" \
                  f"subprocess.run({child!r}, check=True)\n"
        self.runs([PYTHON, "-c", program], self.alone(INJECTED))
        first, second = self.finished(2)
        if not first.named("cuProfilerStart"):
            first, second = second, first
        self.assertEqual((len(first.named("cuProfilerStart")), len(first.named("cuProfilerStop"))), (1, 7))
        self.assertEqual(len(second.named("cuMemAlloc_v2")), 1)
        records = self.records()
        self.assertEqual(len(records), 3)
        self.assertEqual(sum(len(trace.calls) for trace in (first, second)), sum(sum(r.counts.values()) for r in records.values()))
        for trace in (first, second):
            self.check_accounts(trace)

    def test_names(self):
        """Pid, host and rank; programs that want the same path do not write over each other's trace."""
        env = self.alone(INJECTED, output=f"{self.traces}/%%-%h-%r-%p.jsonl", OMPI_COMM_WORLD_RANK="3")
        self.runs(calls("setup"), env)
        pid = self.record().pid
        self.finished(1, f"%-{socket.gethostname()}-3-{pid}.jsonl")
        env = self.alone(INJECTED, output=f"{self.traces}/same.jsonl.zst")
        programs = [self.start(calls("setup; malloc a 4K; free a"), env=env) for _ in range(6)]
        self.assertEqual([program.wait() for program in programs], [0] * 6)
        paths = wait_for(lambda: (found := glob.glob(f"{self.traces}/same*.zst")) and len(found) == 6 and found, "six traces")
        for path in paths:
            def whole():
                done = self.run_cudabpf("summary", "--json", path)
                return done.returncode == 0 and json.loads(done.stdout)
            wait_for(whole, f"{path} to be whole")
        self.assertEqual(set(os.path.basename(path) for path in paths), {"same.jsonl.zst"} | {f"same-{i}.jsonl.zst" for i in range(2, 7)})

    def test_where_no_trace_can_be(self):
        """The program's output is its own, and what is no file is no trace. Folders are made."""
        for output in ("-", "/dev/stdout", "/dev/null"):
            program = self.start(calls("setup; print done"), env=self.alone(INJECTED, output=output), stdout=subprocess.PIPE)
            self.assertEqual((program.process.stdout.read(), program.wait()), (b"done\n", 0))
            self.assertIn("this is not a regular file", program.stderr())
            self.assertIn("hint: set CUDABPF_OUTPUT to a folder", program.stderr())
        program = self.start(calls("setup; print done"), env=self.alone(INJECTED, output="/proc/none/t.jsonl"), stdout=subprocess.PIPE)
        self.assertEqual((program.process.stdout.read(), program.wait()), (b"done\n", 0))
        self.assertRegex(program.stderr(), r"^cudabpf: error: CUDABPF_OUTPUT=/proc/none/t.jsonl: cannot write to /proc/none: .*\n"
                                           r"cudabpf: hint: set CUDABPF_OUTPUT to a folder that can be written to")
        self.runs(calls("setup"), self.alone(INJECTED, output=f"{self.traces}/one/two/%p.jsonl"))
        self.finished(1, "one/two/*.jsonl")

    # --- what the program notices

    def test_parent_of_orphans(self):
        """A program that takes init's place for orphans, as the first of a container does, does not become cudabpf's parent."""
        program = (f"import ctypes, os, signal, time\n"
                   f"signal.alarm(20)\n"
                   f"assert ctypes.CDLL(None).prctl(36, 1) == 0\n"
                   f"end_to_read, end_to_write = os.pipe()\n"
                   f"driver = ctypes.CDLL({LIBRARY!r}); assert driver.cuInit(0) == 0\n"
                   f"driver.cuProfilerStart()\n"
                   f"try: print(os.wait())\n"
                   f"except ChildProcessError: print('no child', flush=True)\n"
                   f"if os.fork() == 0: os._exit(7)\n"
                   f"print(os.wait()[1] >> 8)\n"
                   f"os.close(end_to_write); print(os.read(end_to_read, 1))\n"
                   f"driver.cuProfilerStop()\n")
        done = self.runs([PYTHON, "-c", program], self.alone(INJECTED, LOG=None))
        self.assertEqual(done.stdout, b"no child\n7\nb''\n")
        trace, = self.finished()
        self.assertEqual(len(trace.calls), 2)

    def test_unnoticed(self):
        """No child, no signal, no file, no variable; and cudabpf has none of the program's files and settings."""
        secret = f"{self.folder}/secret"
        with open(secret, "w", encoding="utf-8"):
            pass
        os.chmod(secret, 0o644)
        program = self.start([PYTHON, "-c", WATCHFUL, LIBRARY, secret], env=self.alone(INJECTED, LOG=None, COUNTS=None),
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(program.process.stdout.readline(), b"[]\n")
        reader = self.reader_of(program.pid)
        with open(f"/proc/{reader}/status", encoding="utf-8") as file:
            status = dict(line.split(":\t", 1) for line in file.read().splitlines() if ":\t" in line)
        self.assertNotEqual(int(status["PPid"]), program.pid)
        self.assertEqual(os.getsid(reader), reader)
        if os.geteuid() == 0:
            files = [os.readlink(path) for path in glob.glob(f"/proc/{reader}/fd/*")]
            self.assertFalse([file for file in files if "secret" in file or file.startswith("pipe:")], files)
            self.assertIn(f"{self.traces}/", " ".join(files))
        # It waits for signals, but has none blocked or ignored that the program has, other than its own choice.
        self.assertFalse(int(status["SigIgn"], 16) & 1 << signal.SIGTERM - 1)
        self.assertFalse(int(status["SigBlk"], 16) & 1 << signal.SIGUSR1 - 1)
        program.send_line()
        self.assertEqual(program.process.stdout.readline(), b"[]\n")
        self.assertEqual(program.wait(), 0)
        trace, = self.finished()
        self.assertEqual(len(trace.named("cuProfilerStart")), 3)

    def test_descriptors_closed(self):
        """A program without standard descriptors gets no file of cudabpf's in their place, and is traced."""
        command = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *calls("setup; malloc a 4K; free a")]
        self.runs(command, self.alone(INJECTED))
        trace, = self.finished()
        self.check_whole(trace)

    def test_not_reaped(self):
        """The trace ends when the program does, even if its parent has not waited for its status."""
        program = self.start(calls("setup; sync"), env=self.alone(INJECTED))
        trace, = self.finished()
        self.check_whole(trace)
        self.assertEqual(trace.end["reason"], "targets ended")
        self.assertEqual(program.wait(), 0)

    # --- where the reader cannot outlive the program

    def ended_with(self, command, **variables):
        """The trace is whole when the command has ended, not a moment later."""
        self.runs(command, self.alone(INJECTED, **variables))
        path, = glob.glob(f"{self.traces}/*.jsonl")
        trace = self.read(path)
        self.check_whole(trace)
        self.assertEqual(trace.end["reason"], "targets ended")
        end = [process for process in trace.processes if process["op"] == "exit"][-1]
        self.assertNotIn("status", end)  # it has ended its calls, but not yet itself
        return trace

    def in_container(self, *command):
        container = ["unshare", "-Urpf", "--kill-child", "--mount-proc"]
        done = subprocess.run([*container, "true"], check=False, stderr=subprocess.PIPE, text=True, **insiders.AS_USER)
        if done.returncode:
            self.skipTest(f"{' '.join(container)} does not work here: {done.stderr.strip()}")
        return [*container, *command]

    def test_first_of_a_container(self):
        """The kernel ends all processes of a container with its first."""
        trace = self.ended_with(self.in_container(*calls(EVERYTHING)))
        check_calls(self, trace)

    def test_behind_the_first_of_a_container(self):
        trace = self.ended_with(self.in_container("sh", "-c", '"$@"; exit', "sh", *calls(EVERYTHING)))
        check_calls(self, trace)

    def test_job_step(self):
        """SLURM ends what a step leaves behind."""
        began = time.monotonic()
        check_calls(self, self.ended_with(calls(EVERYTHING), SLURM_STEP_ID="0"))
        self.assertLess(time.monotonic() - began, PATIENCE / 2)

    def test_leaving_among_threads(self):
        """The program exits while others of its threads are in calls; a child that it leaves behind does not keep it long."""
        program = f"import ctypes, os, threading, time\n" \
                  f"driver = ctypes.CDLL({LIBRARY!r}); assert driver.cuInit(0) == 0\n" \
                  f"def storm():\n    while True: driver.cuProfilerStart()\n" \
                  f"for i in range(4): threading.Thread(target=storm, daemon=True).start()\n" \
                  f"time.sleep(0.3)\n"
        trace = self.ended_among([PYTHON, "-c", program])
        self.assertGreater(len(trace.named("cuProfilerStart")), 100)

    def ended_among(self, command):
        self.runs(command, self.alone(INJECTED, SLURM_STEP_ID="0", LOG=None))
        path, = glob.glob(f"{self.traces}/*.jsonl")
        trace = self.read(path)
        self.check_accounts(trace)
        return trace

    def test_child_left_behind(self):
        """It is in the trace, which ends with it; the program waits for it, but not for ever."""
        held = f"{self.folder}/held"
        os.mkfifo(held)
        os.chmod(held, 0o666)
        program = f"import ctypes, os, time\n" \
                  f"driver = ctypes.CDLL({LIBRARY!r}); assert driver.cuInit(0) == 0\n" \
                  f"end_to_read, end_to_write = os.pipe()\n" \
                  f"if os.fork() == 0:\n" \
                  f"    driver.cuProfilerStop(); os.closerange(0, 3); os.write(end_to_write, b'x'); open({held!r}).read(); os._exit(0)\n" \
                  f"driver.cuProfilerStart(); os.read(end_to_read, 1)\n"
        self.runs([PYTHON, "-c", program], self.alone(INJECTED, SLURM_STEP_ID="0", LOG=None))
        with open(held, "w", encoding="utf-8"):  # once the child reads: it has waited for us
            pass
        trace, = self.finished()
        self.assertEqual((len(trace.named("cuProfilerStart")), len(trace.named("cuProfilerStop"))), (1, 1))
        self.check_accounts(trace)

    # --- trouble

    def test_killed(self):
        """A killed program's records are all there."""
        program = self.start(calls(f"setup; loop 100000 {{ raw {STORM} }}; read"), env=self.alone(INJECTED, LOG=None),
                             stdin=subprocess.PIPE)
        made = wait_for(lambda: self.total() > 50000 and self.total(), "calls")
        program.signal(signal.SIGKILL)
        program.wait()
        trace, = self.finished()
        self.check_accounts(trace)
        lost = trace.end["losses"].get("ring_full_entry", 0)
        self.assertGreaterEqual(len(trace.calls) + lost, made)

    def test_reader_killed(self):
        """The program goes on, and the trace so far can be read."""
        program = self.start(calls(f"setup; loop 5000 {{ raw {STORM} }}; read; loop 5000 {{ raw {STORM} }}; print done"),
                             env=self.alone(INJECTED, LOG=None), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        wait_for(lambda: self.total() >= 5000, "calls")
        path, = glob.glob(f"{self.traces}/*.jsonl")

        def written():
            with open(path, encoding="utf-8") as file:
                return file.read().count(f'"name":"{STORM}"')
        wait_for(lambda: written() == 5000, "all of them written")
        reader = self.reader_of(program.pid)
        os.kill(reader, signal.SIGKILL)
        wait_for(lambda: ended(reader), "its end")
        program.send_line()
        self.assertEqual((program.process.stdout.read(), program.wait()), (b"done\n", 0))
        trace = self.read(path, whole=False)
        self.assertIsNone(trace.end)
        self.assertEqual(len(trace.named(STORM)), 5000)

    def test_told_why_not(self):
        """What keeps a program from being recorded is reported in a line, and it runs as ever."""
        elsewhere = f"{self.folder}/elsewhere"
        os.mkdir(elsewhere)
        os.chmod(elsewhere, 0o755)
        shutil.copy(INSIDE_LIBRARY, elsewhere)
        lonely = f"{elsewhere}/{os.path.basename(INSIDE_LIBRARY)}"
        for way, variables, said in (
                ({"CUDA_INJECTION64_PATH": lonely}, {}, f"cannot start {elsewhere}/cudabpf"),
                (INJECTED, {"CUDABPF_OPTIONS": "--frobnicate"}, "CUDABPF_OPTIONS"),
                (INJECTED, {"CUDABPF_OPTIONS": "-o elsewhere"}, "CUDABPF_OUTPUT"),
                (INJECTED, {"CUDABPF_OPTIONS": "--ring-size 1K"}, "--ring-size"),
                (INJECTED, {"CUDABPF_OPTIONS": "--live"}, "--live"),
                (INJECTED, {"CUDABPF_OUTPUT": "%x"}, "%x"),
                (INJECTED, {"CUDABPF_OUTPUT": "/proc/nothing/can/be/made"}, "/proc/nothing"),
                (INJECTED, {"TMPDIR": f"{self.folder}/" + "long/" * 30, "CUDABPF_OUTPUT": "/dev/full/x"}, "/dev/full")):
            done = self.runs(calls("print hello; setup; malloc a 4K; exit 4"), self.alone(way, **variables), status=4)
            self.assertEqual(done.stdout, b"hello\n")
            self.assertIn(said, done.stderr.decode())
            self.assertLessEqual(done.stderr.count(b"\n"), 3, done.stderr)
        self.assertEqual(glob.glob(f"{self.traces}/*"), [])

    def test_messages_beside_the_trace(self):
        """The program's standard error is its own: what is found out later is in a file beside the trace."""
        debugged = calls("print hello; setup; malloc a 4K; free a")
        if not shutil.which("strace"):
            self.skipTest("strace is not installed")
        done = self.runs(["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=none", *debugged], self.alone(INJECTED))
        self.assertEqual((done.stdout, done.stderr), (b"hello\n", b""))
        log = wait_for(lambda: glob.glob(f"{self.traces}/*.jsonl.log"), "messages")[0]

        def text():
            with open(log, encoding="utf-8") as file:
                return file.read()
        wait_for(lambda: "are not recorded" in text(), "the reason")

    def test_messages_where_something_else_is(self):
        """A FIFO, or another user's file, where messages would go: neither is waited at nor written to."""
        if not shutil.which("strace"):
            self.skipTest("strace is not installed")
        os.mkdir(self.traces)
        os.chmod(self.traces, 0o777)
        path = f"{self.traces}/t.jsonl"
        os.mkfifo(f"{path}.log")
        os.chmod(f"{path}.log", 0o666)
        others = 2
        if os.geteuid() == 0 and insiders.AS_USER:
            others = 3
            with open(f"{path}.log.2", "w", encoding="utf-8") as file:
                os.chmod(file.fileno(), 0o666)
        env = self.alone(INJECTED, output=path)
        self.runs(["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=none", *calls("setup; malloc a 4K; free a")], env)

        def text():
            with contextlib.suppress(OSError), open(f"{path}.log.{others}", encoding="utf-8") as file:
                return file.read()
            return ""
        wait_for(lambda: "are not recorded" in text(), "the reason")
        wait_for(lambda: '"type":"end"' in open(path, encoding="utf-8").read(), "a whole trace")  # pylint: disable=consider-using-with
        if others == 3:
            self.assertEqual(os.path.getsize(f"{path}.log.2"), 0)

    def test_only_for_the_library(self):
        done = self.run_cudabpf("inside-reader", str(os.getpid()))
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"run --inside", done.stderr)
        self.assertNotIn("inside-reader", subprocess.run([CUDABPF, "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout)


if __name__ == "__main__":
    import harness
    harness.main()
