"""`run --inside`: a library inside the traced process records its calls, and the process is not harmed by it.

These tests are run only this way (inside_tests.txt).
"""
import os
import re
import shutil
import signal
import struct
import subprocess

import harness
import insiders
from expected import check_calls
from harness import CUDABPF, LIBRARY, LOOKUP, OLD, PATIENCE, PYTHON, WITHOUT_RIGHTS, WORKLOADS, calls, wait_for
from insiders import EVERYTHING, STORM, odd

OTHER_INJECTION = f"{WORKLOADS}/libother_injection.so"
NEVER_PATCHED = ("cuCtxRecordEvent", "cuFlushGPUDirectRDMAWrites", "cuTexRefCreate")  # of the simulated driver, on purpose
RING = 1 << 20  # of each thread
# Children of every start method: each makes CUDA calls by itself, as workers of a data loader do.
WORKERS = """
import ctypes, multiprocessing, os, sys
def work(size):
    driver = ctypes.CDLL(sys.argv[1])
    pointer = ctypes.c_uint64()
    context = ctypes.c_void_p()
    assert driver.cuInit(0) == 0
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and driver.cuCtxSetCurrent(context) == 0
    for i in range(size):
        assert driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_uint64(size)) == 0
        assert driver.cuMemFree_v2(pointer) == 0
    return os.getpid()
if __name__ == "__main__":
    work(1)
    methods = multiprocessing.get_context(sys.argv[2])
    workers = [methods.Process(target=work, args=(size,)) for size in (2, 3, 5, 7)]
    for worker in workers: worker.start()
    for worker in workers: worker.join()
    print([worker.exitcode for worker in workers])
"""


def file_offset(image, symbol):
    """Where a function of the simulated driver is in its file."""
    listed = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], stdout=subprocess.PIPE, check=True).stdout.decode()
    address = int(re.search(rf"(?m)^([0-9a-f]+) T {symbol}\b", listed)[1], 16)
    at, = struct.unpack_from("<Q", image, 32)
    size, count = struct.unpack_from("<HH", image, 54)
    for i in range(count):
        kind, _, offset, virtual, _, length = struct.unpack_from("<IIQQQQ", image, at + i * size)
        if kind == 1 and virtual <= address < virtual + length:
            return offset + address - virtual
    raise AssertionError(f"{symbol} is in no part of the file")


class Live(insiders.InsideTest):
    # --- what is recorded

    def test_whole_script(self):
        trace = self.script(EVERYTHING)
        self.check_whole(trace)
        check_calls(self, trace)
        self.assertEqual(trace.header["source"], "inside")
        self.assertTrue(trace.header["unseen"])
        library, = [one for one in trace.header["libraries"] + trace.libraries if one["path"] == LIBRARY]
        record = self.record()
        self.assertEqual(record.unseen.keys(), {LOOKUP, "cuInit"})
        self.assertGreater(library["functions"], 600)
        self.assertIn(library.get("left_out", 0), range(1, 5), "of those that begin oddly, some can be recorded")

    def test_older_driver(self):
        """Each function begins with a compare, a branch and a jump, as nearly all of drivers 470 to 555 do."""
        trace = self.script(EVERYTHING, library=OLD)
        self.check_whole(trace)
        check_calls(self, trace)
        library, = [one for one in trace.header["libraries"] + trace.libraries if one["path"] == OLD]
        self.assertGreater(library["functions"], 600)
        self.assertNotIn("left_out", library)

    def test_cuinit_at_once(self):
        """Threads that all begin with cuInit: one loads the library, all others' calls are seen."""
        for _ in range(10):
            self.setUp()
            trace = self.same(odd("crowd"))
            self.check_law(trace)
            self.check_counts(trace)
            self.assertGreater(self.record().counts["cuStreamSynchronize"], 10000)

    def test_without_rights(self):
        """Where eBPF is not allowed, a command is traced this way without a request, and one line says so."""
        if os.geteuid() and "CapEff:\t0000000000000000" not in open("/proc/self/status", encoding="utf-8").read():
            self.skipTest("this user has capabilities")
        done = subprocess.run([CUDABPF, "run", "-o", self.path, "--profile", "full", "--", *calls(EVERYTHING)], check=False, cwd=self.folder,
                              env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, **WITHOUT_RIGHTS)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = [line for line in done.stderr.decode().splitlines() if "--inside" in line]
        self.assertEqual(len(said), 1, done.stderr)
        self.check_whole(self.read())

    def test_root_in_name_alone(self):
        """Root of a user namespace, as in a rootless container, has the rights that eBPF takes, and eBPF is refused."""
        contained = ["unshare", "--user", "--map-root-user"]
        if subprocess.run([*contained, "true"], check=False, stderr=subprocess.DEVNULL, **WITHOUT_RIGHTS).returncode:
            self.skipTest("no user namespace can be made here")
        done = subprocess.run([*contained, CUDABPF, "run", "-o", self.path, "--profile", "full", "--", *calls(EVERYTHING)], check=False,
                              cwd=self.folder, env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, **WITHOUT_RIGHTS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"(--inside): the kernel refuses", done.stderr)
        self.check_whole(self.read())

    # --- what a program may do

    def test_arguments(self):
        """Floats, structs by value, sixteen words: the driver gets what it gets without cudabpf."""
        def driver_got():
            found = harness.records(self.record_folder, inside=False)
            record, = found.values()
            made = record.calls
            shutil.rmtree(self.record_folder)
            os.mkdir(self.record_folder, 0o777)
            fields = ("symbol", "args", "ret", "strings", "structs", "by_value")
            return [{name: call.get(name) for name in fields} for call in made
                    if call["symbol"] not in (LOOKUP, "cuInit", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent")]
        plain = self.untraced(odd("arguments"), env=self.environment())
        wanted = driver_got()
        self.assertEqual(len(wanted), 13)
        done = self.run_cudabpf("run", "-q", "-o", self.path, "--profile", "full", "--", *odd("arguments"))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, plain.stdout, plain.stderr))
        self.assertEqual(driver_got(), wanted)

    def test_kept_state(self):
        self.check_whole(self.same(odd("kept-state")))

    def test_top_of_a_stack(self):
        """What lies above a call's return address is handed on as far as there is memory."""
        self.check_whole(self.same(odd("fibers")))

    def test_locked_memory(self):
        """A program that has all its memory locked does not get all that is shared with cudabpf as well."""
        if os.geteuid() != 0:
            self.skipTest("only root may lock so much memory")
        program = (f"import ctypes\n"
                   f"libc, driver = ctypes.CDLL(None), ctypes.CDLL({LIBRARY!r})\n"
                   f"assert libc.mlockall(2) == 0\n"
                   f"assert driver.cuInit(0) == 0\n"
                   f"[driver.cuProfilerStart() for i in range(3)]\n"
                   f"assert libc.mlockall(1) == 0\n"
                   f"[driver.cuProfilerStop() for i in range(3)]\n"
                   f"print([line.split()[1] for line in open('/proc/self/status') if line.startswith('VmRSS')][0])\n")
        done = self.run_cudabpf("run", "-q", "--inside", "-o", self.path, "--profile", "full", "--", PYTHON, "-c", program, env=self.unlogged(),
                                user=0, group=0)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(int(done.stdout), 300 << 10)
        self.assertEqual(len(self.read().calls), 6)

    def test_exceptions(self):
        """A callback throws through calls: the handler gets it, and what is between is destroyed."""
        self.check_left_calls(self.same(odd("exceptions")), 3000)

    def test_longjmp(self):
        self.check_left_calls(self.same(odd("jumps")), 1000)

    def test_threads_end_in_calls(self):
        self.check_left_calls(self.same(odd("thread-ends")), 100)

    def test_backtrace(self):
        self.check_whole(self.same(odd("backtraces")))

    def test_debugger(self):
        """gdb, come to a traced process, finds its way through a call to main, and lets it go."""
        if not shutil.which("gdb"):
            self.skipTest("gdb is not installed")
        tracer = self.start_inside(*odd("waits-in-call"), stdin=subprocess.PIPE, env=self.unlogged())
        pid = self.pid_of_program()
        wait_for(lambda: self.records()[pid].counts.get("cuLaunchHostFunc"), "in the call")
        done = subprocess.run(["gdb", "-p", str(pid), "-nx", "-batch", "-ex", "bt"], check=False, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE)
        tracer.send_line()
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        self.check_whole(self.read())
        if re.search("ptrace|not permitted", done.stdout) and "#0" not in done.stdout:
            self.skipTest(f"gdb may not: {done.stdout.splitlines()[-1:]}")
        for name in ("cuLaunchHostFunc", " main "):
            self.assertIn(name, done.stdout)

    def test_handlers(self):
        """A signal's handler makes calls at any moment, also while a record is being made: seen or counted."""
        trace = self.same(odd("handlers"))
        self.check_reconciles(trace, self.record().pid)
        self.assertGreater(len(trace.named("cuProfilerStart")), 100)

    def test_second_copy(self):
        """Another libcuda in the process, loaded and unloaded five times; what is left of the first goes on."""
        other = f"{self.folder}/libcuda-other.so.1"
        shutil.copy(LIBRARY, other)
        trace = self.same(odd("copies", "--other", other))
        self.check_law(trace)
        self.check_counts(trace)
        self.assertEqual(self.record().counts["cuProfilerStart"], 500)
        self.assertIn(other, {library["path"] for library in trace.header["libraries"] + trace.libraries})

    def test_unpatchable(self):
        """A function that cannot be patched is not missed in silence: a warning says so, and every answer."""
        with open(LIBRARY, "rb") as file:
            image = bytearray(file.read())
        at = file_offset(image, "cuLaunchKernel")
        image[at:at + 2] = b"\x0f\x0b"  # ud2, which nothing may follow; it is not called here
        other = f"{self.folder}/lib/libcuda.so.1"
        os.mkdir(os.path.dirname(other))
        with open(other, "wb") as file:
            file.write(image)
        done = self.run_cudabpf("run", "-o", self.path, "--", f"{WORKLOADS}/fake_calls", "--library", other, "setup; sync",
                                env=self.unlogged())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr.decode(), r"(?m)^cudabpf: warning: calls of these functions cannot be recorded inside the process: "
                                               r"cuLaunchKernel \(.*\)$")
        unpatched = {text.split()[0] for library in self.read().libraries for text in library["unpatched"]}
        self.assertEqual(unpatched, {"cuLaunchKernel", *NEVER_PATCHED})
        for answer in ("summary", "calls"):
            shown = self.run_cudabpf(answer, self.path).stdout.decode()
            self.assertRegex(shown, r"(?m)^functions that could not be recorded\n(  .*\n)*  cuLaunchKernel \(")
            self.assertRegex(shown, r"(?m)^not traced\n  Not all launches")

    def test_other_profiler(self):
        """The library that had the place is loaded after us, once, and the trace is whole."""
        env = dict(self.environment(), CUDA_INJECTION64_PATH=OTHER_INJECTION, OTHER_INJECTION_MARKS=f"{self.folder}/marks")
        done = self.run_cudabpf("run", "-q", "-o", self.path, "--profile", "full", "--", *calls(EVERYTHING), env=env)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        trace = self.read()
        self.check_whole(trace)
        check_calls(self, trace)
        with open(f"{self.folder}/marks", encoding="utf-8") as file:
            self.assertEqual(file.read().split(), [str(self.record().pid)])

    # --- threads

    def test_many_threads(self):
        """Threads that come and go by the thousand: no call is lost, and no ring.

        There are 1,024 rings, and a thread's is free again once it is read: no more threads end until then."""
        threads = "thread { loop 5 { sync; query } };" * 16
        tracer = self.start_inside(*calls(f"setup; loop 4 {{ loop 50 {{ {threads} wait }}; print over; read }}"), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, env=self.unlogged())

        def written():
            with open(self.path, "rb") as file:
                return file.read().count(b'"cuStreamSynchronize"')
        for expected in range(4000, 16001, 4000):
            self.assertEqual(tracer.process.stdout.readline(), b"over\n", tracer.stderr())
            wait_for(lambda expected=expected: written() == expected, "the calls of all threads so far")
            tracer.send_line()
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        trace = self.read()
        self.check_whole(trace)
        self.assertEqual(len(trace.named("cuStreamSynchronize")), 16000)
        self.assertEqual(len({call["tid"] for call in trace.calls}), 3201)

    def shared_memory(self, pid):
        """How much of what it shares with cudabpf is in memory, in bytes."""
        with open(f"/proc/{pid}/smaps", encoding="utf-8") as file:
            mappings = re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", file.read())
        return sum(int(re.search(r"(?m)^Rss: +(\d+) kB", mapping)[1]) * 1024 for mapping in mappings if "/memfd:" in mapping.split("\n")[0])

    def test_memory_given_back(self):
        """Rings that were full take no process's memory once their threads have ended and all is read."""
        threads = "thread { loop 30000 { sync }; print wrote; read };" * 8
        tracer = self.start_inside(*calls(f"setup; {threads} wait; print over; read; query"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   env=self.unlogged())
        output = tracer.process.stdout
        for _ in range(8):
            self.assertEqual(output.readline(), b"wrote\n", tracer.stderr())
        pid, = self.records()
        self.assertGreater(self.shared_memory(pid), 4 * RING)
        tracer.send_line("\n" * 8)
        self.assertEqual(output.readline(), b"over\n", tracer.stderr())
        wait_for(lambda: self.shared_memory(pid) < RING, "given back")
        tracer.send_line()
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        self.check_reconciles(self.read(), pid)

    # --- processes

    def workers(self, method):
        program = f"{self.folder}/workers.py"
        with open(program, "w", encoding="utf-8") as file:
            file.write(WORKERS)
        os.chmod(program, 0o755)
        # Workers go where their parent was, which must not be a home that is closed to them.
        done = self.run_cudabpf("run", "-q", "-o", self.path, "--profile", "full", "--", PYTHON, program, LIBRARY, method, cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"[0, 0, 0, 0]\n", b""))
        trace = self.read()
        self.check_law(trace)
        self.check_counts(trace)
        made = sorted(trace.counts(pid)["cuMemAlloc_v2"] for pid in {call["pid"] for call in trace.calls})
        self.assertEqual(made, [1, 2, 3, 5, 7])

    def test_multiprocessing_fork(self):
        self.workers("fork")

    def test_multiprocessing_forkserver(self):
        self.workers("forkserver")

    def test_multiprocessing_spawn(self):
        self.workers("spawn")

    def test_fork_in_many_threads(self):
        """Children of a process whose other threads are in the middle of calls."""
        trace = self.traced(calls("setup; thread { loop 20000 { sync } }; thread { loop 20000 { query } }; "
                                  "loop 50 { fork { raw cuProfilerStart; quit 0 } }; wait"), fake={"LOG": None})
        parent = trace.calls[0]["pid"]  # which may fill its rings
        self.check_reconciles(trace, parent)
        children = {pid: dict(trace.counts(pid)) for pid in self.records() if pid != parent}
        self.assertEqual(children, {pid: {"cuProfilerStart": 1} for pid in children})
        self.assertEqual(len(children), 50)

    def test_exec_again_and_again(self):
        trace = self.script("setup; malloc a 1; exec { setup; malloc a 2; exec { setup; malloc a 3; exec { setup; malloc a 4 } } }")
        self.check_whole(trace)
        check_calls(self, trace)
        self.assertEqual([call["size"] for call in trace.named("cuMemAlloc_v2")], [1, 2, 3, 4])
        self.assertEqual([p["op"] for p in trace.processes], ["start", "exec", "exec", "exec", "exit"])

    def test_vfork(self):
        trace = self.same(odd("vforks"))
        self.check_reconciles(trace, self.record().pid)
        self.assertEqual({call["pid"] for call in trace.calls}, {self.record().pid})

    def check_sudden_end(self, end, status):
        """Four threads in the middle of calls: the trace is complete up to the last ones."""
        threads = f"thread {{ loop 100000000 {{ raw {STORM} }} }};" * 4
        done = self.run_cudabpf("run", "-o", self.path, "--profile", "full", "--", *calls(f"setup; {threads} sleep 150; {end}"),
                                env=self.unlogged())
        self.assertEqual(done.returncode, status, done.stderr)
        trace = self.read()
        self.assertEqual((trace.end["reason"], trace.end["command_status"]), ("command ended", status))
        self.assertGreater(len(trace.named(STORM)), 1000)
        self.check_reconciles(trace, self.record().pid, under_way=4)

    def test_quits(self):
        self.check_sudden_end("quit 7", 7)

    def test_aborts(self):
        self.check_sudden_end(f"kill {int(signal.SIGABRT)}", 128 + signal.SIGABRT)

    def test_is_killed(self):
        self.check_sudden_end(f"kill {int(signal.SIGKILL)}", 128 + signal.SIGKILL)


if __name__ == "__main__":
    harness.main()
