"""Library files that are made or changed to do harm or hide calls, or that merely change at a bad moment."""
import ctypes
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import harness
from harness import LIBRARY, wait_for
from libraries_test import MAPPER, caller

# Maps file $1 as code $2 times on each CPU, then calls the library $3.
STORM = """
import ctypes, mmap, os, sys
with open(sys.argv[1], "rb") as file:
    for cpu in sorted(os.sched_getaffinity(0)):
        os.sched_setaffinity(0, {cpu})
        for _ in range(int(sys.argv[2])):
            mmap.mmap(file.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC).close()
library = ctypes.CDLL(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
for _ in range(20):
    library.cuCtxSynchronize()
"""
# A process whose main thread ends, while another calls.
HEADLESS = """
import ctypes, os, sys, threading, time
library, libc = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(None)
def main_has_ended():
    with open(f"/proc/self/task/{os.getpid()}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "Z"
def work():
    while not main_has_ended():
        time.sleep(0.01)
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(20):
        library.cuCtxSynchronize()
    libc._exit(0)
threading.Thread(target=work).start()
libc.syscall(60 if sys.maxsize and "x86_64" in __import__("os").uname().machine else 93, 0)
"""


class Live(harness.LiveTest):
    QUIET = {"COUNTS": None, "LOG": None}

    def copy(self, path, of=LIBRARY):
        path = f"{self.folder}/{path}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return shutil.copy(of, path)

    def start_caller(self, *steps):
        return self.start_ready(caller(*steps))

    def start_ready(self, command):
        program = self.start(command, env=self.environment(**self.QUIET), stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
        self.is_ready(program)
        return program

    def is_ready(self, program):
        self.assertEqual(program.process.stdout.readline(), b"ready\n", program.stderr())

    def attach(self, program, *flags):
        return self.start_cudabpf("attach", "-o", self.path, "--profile", "full", "--pid", str(program.pid), *flags)

    def end(self, tracer, program):
        program.send_line()
        self.assertEqual(program.wait(), 0, program.stderr())
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        trace = self.read()
        self.check_accounts(trace)
        return trace

    def build(self, path, source, *flags):
        path = f"{self.folder}/{path}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        done = subprocess.run(["cc", "-shared", "-nostdlib", "-Wl,-z,noexecstack", "-o", path, "-x", "assembler", "-", *flags],
                              input=source, check=False, text=True, stderr=subprocess.PIPE)
        if done.returncode:
            self.skipTest(f"no C compiler: {done.stderr}")
        return path

    def functions(self, *names):
        """Assembly code of functions that do nothing."""
        lines = [".text"]
        for name in names:
            lines += [f".globl {name}", f".type {name}, @function", f"{name}:", "ret", "nop", "nop", "nop"]
        return "\n".join(lines) + "\n"

    # --- the process that reads

    def test_reader(self):
        """The process that reads libraries has no rights and nothing open, and ends with cudabpf, however cudabpf ends."""
        tracer = self.start_cudabpf("-o", self.path)
        children = subprocess.run(["ps", "--ppid", str(tracer.pid), "-o", "pid=,comm="], check=True, text=True,
                                  stdout=subprocess.PIPE).stdout.split()
        self.assertEqual(children[1::2], ["cudabpf-reading"])
        pid = children[0]
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in file)
        self.assertEqual((status["CapEff"], status["CapPrm"], status["NoNewPrivs"]), ("0" * 16, "0" * 16, "1"))
        self.assertEqual(len(os.listdir(f"/proc/{pid}/fd")), 1)
        with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
            self.assertNotIn("bpf-map", file.read())
        tracer.signal(signal.SIGKILL)
        tracer.process.wait()
        wait_for(lambda: harness.ended(int(pid)), "the reader's end")

    # --- files that are made to do harm

    def test_sparse(self):
        """A file of terabytes that holds nothing takes no time and no memory, and the trace can be ended."""
        path = self.copy("lib/libcuda.so.1")
        with open(path, "r+b") as file:
            data = file.read()
            sections, count = int.from_bytes(data[40:48], "little"), int.from_bytes(data[60:62], "little")
            for i in range(count):
                at = sections + 64 * i
                if int.from_bytes(data[at + 4:at + 8], "little") == 11:  # SHT_DYNSYM
                    file.seek(at + 32)
                    file.write((24 << 36).to_bytes(8, "little"))
            file.truncate(4 << 40 if os.statvfs(self.folder).f_bsize >= 4096 else 1 << 40)
        program = self.start([sys.executable, "-c", MAPPER.replace("file.fileno(), 0", "file.fileno(), 4096"), path],
                             stdin=subprocess.PIPE)
        tracer = self.start_cudabpf("-o", self.path)
        program.send_line()
        wait_for(lambda: self.read(whole=False).libraries, "a library line", 10)
        library = self.read(whole=False).libraries[0]
        self.assertEqual(library["path"], path)
        tracer.signal(signal.SIGTERM)
        self.assertEqual(tracer.wait(), 0, tracer.stderr())

    def test_many_functions(self):
        """66,000 unknown functions: some are left out, which is counted, and no call has another's name."""
        names = [f"cuXy{i:06}" for i in range(66000)]
        path = self.build("lib/libcuda.so.1", self.functions("cuInit", "cuCtxSynchronize", *names),
                          "-Wl,-soname,libcuda.so.1")
        called = ["cuInit=20", "cuXy000003=20", "cuXy064854=20", "cuXy065999=20", "cuCtxSynchronize=20"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        trace = self.traced(caller(path, *called), "--library", path, fake=self.QUIET)
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, 10)  # of a processor's time
        self.check_accounts(trace)
        self.assertEqual(trace.counts(), {"cuInit": 20, "cuXy000003": 20, "cuCtxSynchronize": 20})
        library = next(library for library in trace.header["libraries"] if library["path"] == path)
        self.assertEqual((library["functions"], library["unknown"], library["left_out"]), (1026, 1024, 66000 - 1024))
        self.assertEqual([lost["reason"] for lost in trace.lost], ["functions_left_out"])

    def test_other_library(self):
        """Another library under libcuda's name is not probed: it is every user's file."""
        curl = self.build("lib/libcuda.so.1", self.functions("curl_easy_init", "curl_free"), "-Wl,-soname,libcurl.so.4")
        other = self.build("lib/libcuda.so.2", self.functions("cuInit", "cuVersion"), "-Wl,-soname,libother.so.4")
        program = self.start_caller(curl, "curl_free=1", other, "ready", "read", "cuInit=20")
        tracer = self.attach(program)
        trace = self.end(tracer, program)
        self.assertEqual(trace.calls, [])
        said = {library["path"]: library for library in trace.header["libraries"]}
        self.assertIn("does not export cuInit", said[curl]["error"])
        self.assertIn("SONAME", said[other]["error"])
        self.assertEqual((said[curl]["functions"], said[other]["functions"]), (0, 0))
        # A user who names it wants it, but curl is not a driver.
        trace = self.traced(caller(other, "cuInit=20"), "--library", other, fake=self.QUIET)
        self.check_law(trace)
        self.assertEqual(trace.counts(), {"cuInit": 20})
        trace = self.traced(caller(curl, "curl_free=20"), "--library", curl, fake=self.QUIET)
        self.assertEqual(trace.calls, [])
        self.assertIn("exports no known function of libcuda", self.stderr)

    # --- files that change

    def copied_up(self, *flags):
        """overlayfs copies a file when it is first changed, under the same device and inode."""
        for name in ("lower", "upper", "work", "merged"):
            os.mkdir(f"{self.folder}/{name}")
        self.copy("lower/libcuda.so.1")
        lower, upper, work, merged = (f"{self.folder}/{name}" for name in ("lower", "upper", "work", "merged"))
        done = subprocess.run(["mount", "-t", "overlay", "-o", f"lowerdir={lower},upperdir={upper},workdir={work}",
                               "none", merged], check=False, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            self.skipTest(f"nothing can be mounted here: {done.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", merged], check=True)
        path = f"{merged}/libcuda.so.1"
        program = self.start_caller(path, "ready", "read", "cuInit=100", "ready", "read", "cuInit=30")
        tracer = self.start_cudabpf("-o", self.path, "--profile", "full", "--library", path, *flags)
        program.send_line()
        self.is_ready(program)
        inode = os.stat(path).st_ino
        os.chmod(path, 0o700)
        self.assertEqual(os.stat(path).st_ino, inode)
        self.assertTrue(os.path.exists(f"{upper}/libcuda.so.1"))
        copy = self.start_caller(path, "ready", "read", "cuCtxSynchronize=50")
        wait_for(lambda: self.read(whole=False).libraries, "a library line")
        # Now there is one more change, to the copy's own numbers.
        os.chmod(path, 0o755)
        again = self.start_caller(path, "ready", "read", "cuProfilerStop=40")
        time.sleep(0.5)
        for each in (copy, again, program):
            each.send_line()
            self.assertEqual(each.wait(), 0, each.stderr())
        tracer.signal(signal.SIGINT)
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        trace = self.read()
        self.check_accounts(trace)
        return trace, path

    def test_copied_up(self):
        """Distinguishing the copy from the file takes CAP_SYS_ADMIN, which is kept only with --kernel."""
        trace, path = self.copied_up("--kernel")
        self.assertEqual(trace.counts(), {"cuInit": 130, "cuCtxSynchronize": 50, "cuProfilerStop": 40})
        self.assertEqual([library["path"] for library in trace.libraries], [path])
        self.assertEqual([lost["reason"] for lost in trace.lost], ["late_library"])

    def test_copied_up_untold(self):
        """Without it, the file loses its probes, like one that was written to, and the trace says so."""
        trace, _ = self.copied_up()
        counts = trace.counts()
        self.assertEqual((counts["cuCtxSynchronize"], counts["cuProfilerStop"]), (50, 40))
        self.assertGreaterEqual(counts["cuInit"], 100)
        self.assertIn("library_changed", {lost["reason"] for lost in trace.lost})

    def test_refused_then_sound(self):
        """A file that was refused is examined again once it has changed, though its inode is the same."""
        path = f"{self.folder}/libcuda.so.1"
        with open(path, "wb") as file:
            file.write(b"nothing of use" * 1000)
        inode = os.stat(path).st_ino
        first = self.start([sys.executable, "-c", MAPPER, path], stdin=subprocess.PIPE)
        tracer = self.start_cudabpf("-o", self.path, "--profile", "full")
        first.send_line()
        wait_for(lambda: self.read(whole=False).libraries, "a library line")
        first.send_line()
        self.assertEqual(first.wait(), 0, first.stderr())
        with open(LIBRARY, "rb") as sound, open(path, "wb") as file:
            file.write(sound.read())
        self.assertEqual(os.stat(path).st_ino, inode)
        program = self.start_caller(path, "ready", "read", "cuInit=20")
        wait_for(lambda: len(self.read(whole=False).libraries) == 2, "another library line")
        program.send_line()
        self.assertEqual(program.wait(), 0, program.stderr())
        tracer.signal(signal.SIGINT)
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        trace = self.read()
        self.check_accounts(trace)
        self.assertEqual(trace.counts(), {"cuInit": 20})
        self.assertEqual(["error" in library for library in trace.libraries], [True, False])

    def test_written_to(self):
        """Probes are withdrawn from a file that is overwritten, before they break programs that load it."""
        path = self.copy("lib/libcuda.so.1")
        program = self.start_caller(path, "cuInit=20", "ready", "read")
        tracer = self.start_cudabpf("-o", self.path, "--profile", "full")
        program.send_line()
        self.assertEqual(program.wait(), 0, program.stderr())
        # The same functions elsewhere: their old places are now in the middle of others.
        other = self.build("other/libcuda.so.1",
                           ".text\n.globl cuInit\n.type cuInit, @function\ncuInit:\nxor %eax, %eax\n"
                           + ".byte 0x48,0x8d,0x80,1,0,0,0\n" * 30000 + "ret\n", "-Wl,-soname,libcuda.so.1")
        with open(other, "rb") as new, open(path, "wb") as file:
            file.write(new.read())
        wait_for(lambda: self.read(whole=False).lost, "a loss")
        sums = [sys.executable, "-c", "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).cuInit())", path]
        done = subprocess.run(sums, check=False, stdout=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "30000\n"))
        wait_for(lambda: self.read(whole=False).libraries, "a library line")
        done = subprocess.run(sums, check=False, stdout=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, "30000\n"))
        tracer.signal(signal.SIGINT)
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        trace = self.read()
        self.check_accounts(trace)
        self.assertIn("library_changed", trace.end["losses"])
        self.assertIn(f"{path} was written to while it was traced", tracer.stderr())
        self.assertGreaterEqual(trace.counts()["cuInit"], 1)

    # --- mappings that were missed

    def test_overrun(self):
        """More mappings than the kernel could queue: all processes are examined again."""
        path = self.copy("lib/libcuda.so.1")
        tracer = self.start_cudabpf("-o", self.path, "--profile", "full")
        tracer.signal(signal.SIGSTOP)
        program = self.start_ready([sys.executable, "-c", STORM, sys.executable, "6000", path])
        tracer.signal(signal.SIGCONT)
        wait_for(lambda: [line for line in self.read(whole=False).libraries if line["path"] == path], "a library line")
        program.send_line()
        self.assertEqual(program.wait(), 0, program.stderr())
        tracer.signal(signal.SIGINT)
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        trace = self.read()
        self.check_accounts(trace)
        self.assertEqual(trace.counts(program.pid)["cuCtxSynchronize"], 20)
        self.assertEqual(set(trace.end["losses"]), {"watch_overrun", "late_library"})

    # --- odd processes

    def test_thread(self):
        """A thread's id is not a process's: nothing would be traced."""
        program = self.start_ready([sys.executable, "-c", "import sys, threading\n"
                                    "threading.Thread(target=sys.stdin.readline).start()\nprint('ready', flush=True)"])
        tid = max(map(int, os.listdir(f"/proc/{program.pid}/task")))
        self.assertNotEqual(tid, program.pid)
        done = self.run_cudabpf("attach", "-o", self.path, "--pid", tid)
        self.assertEqual(done.returncode, 123, done.stderr)
        self.assertIn(f"--pid {tid}: it is a thread of process {program.pid}", done.stderr.decode())
        self.assertIn(f"--pid {program.pid}", done.stderr.decode().splitlines()[-1])
        program.send_line()
        self.assertEqual(program.wait(), 0)

    def test_main_thread_ended(self):
        """A process whose main thread has ended still has its library."""
        path = self.copy("lib/libcuda.so.1")
        program = self.start_ready([sys.executable, "-c", HEADLESS, path])
        with open(f"/proc/{program.pid}/maps", encoding="utf-8") as file:
            self.assertEqual(file.read(), "")
        trace = self.end(self.attach(program), program)
        self.assertEqual(trace.counts(), {"cuCtxSynchronize": 20})
        self.assertEqual(trace.end["losses"], {})

    def test_debugged(self):
        """A user who attaches to a process that is being debugged gets a message that says so."""
        path = self.copy("lib/libcuda.so.1")
        program = self.start_caller(path, "ready", "read", "cuInit=20")
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.ptrace(0x4206, program.pid, None, None) != 0:  # PTRACE_SEIZE: it runs on
            self.skipTest("processes cannot be debugged here")
        tracer = self.attach(program)
        doctor = self.run_cudabpf("doctor").stdout.decode()
        trace = self.end(tracer, program)
        self.assertEqual(trace.counts(), {"cuInit": 20})
        self.assertIn(f"process {program.pid} is debugged by process {os.getpid()}", tracer.stderr())
        self.assertTrue(re.search(f"process {program.pid} .*debugged by process {os.getpid()}", doctor), doctor)


if __name__ == "__main__":
    harness.main()
