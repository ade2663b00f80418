"""Where a trace goes, what it says, and how it ends."""
import fcntl
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import termios
import time

import hostile
from hostile import LIBRARY, NOBODY, WORKLOADS, wait_for

FORKS = 5  # with such arguments
LONGEST_LINE = 16 << 20  # readers refuse longer ones
# What a terminal obeys, and what turns text around: C0 except newline, DEL, C1, bidirectional controls.
OBEYED = re.compile("[\0-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
ESCAPES = "\x1b]0;mine\x07\x1b[31m\u009b31m\u202etxt\u2066"
LOAD = """
import ctypes, sys
ctypes.CDLL(sys.argv[1]).cuInit(0)
"""
FORK_WITH_ARGUMENTS = """
import os, sys
library, load, forks = sys.argv[1], sys.argv[2], int(sys.argv[3])
for _ in range(forks):
    if not os.fork():
        try:
            os.execv(sys.executable, [sys.executable, "-S", "-c", load, library, *["\\x01" * 131_000] * 45])
        finally:
            os._exit(1)
    if os.wait()[1]:
        sys.exit("no program can be started with so many arguments")
"""


def unread(pipe):
    """How many bytes wait in a pipe."""
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]


class Live(hostile.Attack):
    def start_storm(self, *flags, **options):
        command = [f"{WORKLOADS}/fake_storm", "--library", LIBRARY, "--rate", "2000", "--count", "20000"]
        return self.start([hostile.harness.CUDABPF, "run", *flags, "--library", LIBRARY, "--", *command], **options)

    @staticmethod
    def text_of(path):
        with open(path, "rb") as file:
            return file.read()

    def test_unread_pipe(self):
        """A trace into a pipe that no process reads ends on either signal."""
        for number in (signal.SIGTERM, signal.SIGINT):
            reading, writing = os.pipe()
            tracer = self.start_storm("-q", "-o", "-", "--profile", "full", stdout=writing)
            os.close(writing)
            # The pipe is full: the next block waits for a reader.
            wait_for(lambda end=reading: unread(end) > fcntl.fcntl(end, fcntl.F_GETPIPE_SZ) - 4096, "a full pipe")
            tracer.signal(number)
            try:
                tracer.wait(hostile.END_SECONDS)
            finally:
                os.close(reading)

    def test_three_signals(self):
        """However quickly signals come, the trace has its end, and the status is a documented one."""
        for number in (signal.SIGINT, signal.SIGTERM):
            path = f"{self.folder}/trace-{number}.jsonl"
            tracer = self.start_storm("-q", "-o", path)
            wait_for(lambda path=path: os.path.exists(path) and os.path.getsize(path) > 100_000, "a trace")
            for _ in range(3):
                tracer.signal(number)
                time.sleep(0.03)
            self.assertGreaterEqual(tracer.wait(), 0, "it died of the signal")
            self.check_accounts(self.read(path))

    def test_symlinked_traces(self):
        """If a user's `traces` is a link into root's folder, no trace goes there, and nothing there changes owner."""
        secret = f"{self.folder}/secret"
        os.mkdir(secret, 0o700)
        os.symlink(secret, f"{self.lair}/traces")
        done = self.sudo("run", "-q", "--", "true", cwd=self.lair)
        self.assertIn(b"Permission denied", done.stderr)
        self.assertEqual(os.listdir(secret), [])
        self.assertEqual(os.stat(secret).st_uid, 0)

    def test_symlinked_output(self):
        """Nor is root's file replaced through a link in a user's folder."""
        secret = f"{self.folder}/secret"
        os.mkdir(secret, 0o755)
        with open(f"{secret}/file", "w", encoding="utf-8") as file:
            file.write("root's\n")
        os.symlink(secret, f"{self.lair}/link")
        os.lchown(f"{self.lair}/link", NOBODY.pw_uid, NOBODY.pw_gid)
        done = self.sudo("run", "-q", "-o", "link/file", "--", "true", cwd=self.lair)
        self.assertIn(b"Permission denied", done.stderr)
        with open(f"{secret}/file", encoding="utf-8") as file:
            self.assertEqual(file.read(), "root's\n")
        self.assertEqual(os.stat(f"{secret}/file").st_uid, 0)

    def test_escapes(self):
        """Paths and names that the attacker makes up do nothing to the terminal of the user who traces."""
        folder = f"{self.lair}/{ESCAPES}"
        os.mkdir(folder)
        with open(f"{folder}/libcuda.so.1", "wb") as file:
            file.write(b"\x7fELF" + bytes(8192))
        os.mkdir(f"{folder}/good")
        shutil.copy(LIBRARY, f"{folder}/good/libcuda.so.1")
        said = f"{self.folder}/said"
        with open(said, "wb") as file:
            tracer = self.start_cudabpf("-o", self.path, "--library", LIBRARY, "--live", stderr=file)
            mapping = "import mmap, os, sys; fd = os.open(sys.argv[1], os.O_RDONLY); " \
                      "mmap.mmap(fd, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC); " \
                      "open('/proc/self/comm', 'w').write('\\u202ex\\u009b1m'); import time; time.sleep(1)"
            self.python_as_nobody(mapping, f"{folder}/libcuda.so.1")
            self.python_as_nobody(LOAD, f"{folder}/good/libcuda.so.1")
            # Not in what was said: if many programs call CUDA, --live passes some lines over.
            wait_for(lambda: b'"late_library"' in self.text_of(self.path), "the other library")
            tracer.signal(signal.SIGTERM)
            tracer.process.wait(hostile.END_SECONDS)
        text = self.text_of(said).decode()  # and it is UTF-8
        self.assertIn("libcuda.so.1", text)
        self.assertEqual(OBEYED.findall(text), [], ascii(text))

    def test_six_megabytes_of_arguments(self):
        """Programs with 6 MB of arguments cause no line that readers refuse, and do not fill the memory."""
        shutil.copy(LIBRARY, f"{self.lair}/libcuda.so.1")
        tracer = self.trace_machine("--profile", "full", "--library", f"{self.lair}/libcuda.so.1")
        done = self.as_nobody(["prlimit", "--stack=unlimited", hostile.PYTHON, "-c", FORK_WITH_ARGUMENTS,
                               f"{self.lair}/libcuda.so.1", LOAD, FORKS], timeout=100)
        if done.returncode:
            self.skipTest(f"no program gets so many arguments here: {done.stdout.decode(errors='replace')[-300:]}")
        self.assertLess(hostile.memory_of(tracer.pid), hostile.MEMORY)
        trace = self.check_survived(tracer, self.honest())
        self.assertGreaterEqual(len([p for p in trace.processes if p["op"] == "start"]), FORKS)
        with open(self.path, "rb") as file:
            self.assertLess(max(map(len, file)), LONGEST_LINE)
        done = self.run_cudabpf("summary", "--json", self.path)
        self.assertEqual(json.loads(done.stdout)["trace"]["malformed"], 0)

    def test_error_values(self):
        """300,000 calls that each return a different value: the summary's table does not grow with them."""
        driver = self.build("values/libcuda.so.1", "int cuInit(unsigned value) { return 100000 + value; }\n"
                            "int cuCtxSynchronize(void) { return 0; }\nint cuDeviceGetCount(int* n) { return *n = 0; }\n",
                            "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1")
        program = self.build("values/program", "#include <stdio.h>\n#include <unistd.h>\nint cuInit(unsigned);\nint main(void) {\n"
                             "for (unsigned n = 0; n < 300000; n++) { if (n == 20000) getchar(); cuInit(n); "
                             "if (n % 1000 == 0) usleep(1000); }\ngetchar(); return 0; }\n", driver,
                             f"-Wl,-rpath,{os.path.dirname(driver)}")
        tracer = self.start_cudabpf("-q", "-o", self.path, "--library", driver)
        attacker = self.start([program], cwd=self.lair, stdin=subprocess.PIPE, **hostile.AS_NOBODY)
        wait_for(lambda: self.text_of(self.path).count(b"cuInit") >= 20000, "its first values in the trace")
        before = hostile.memory_of(tracer.pid)
        attacker.send_line()
        wait_for(lambda: self.text_of(self.path).count(b"cuInit") >= 300000, "all its values in the trace", 100)
        attacker.send_line()
        self.assertEqual(attacker.wait(), 0)
        grown = hostile.memory_of(tracer.pid) - before
        self.assertLess(grown, 10 << 20, "bytes that the tracer took for 280,000 values")
        self.check_survived(tracer)


if __name__ == "__main__":
    hostile.harness.main()
