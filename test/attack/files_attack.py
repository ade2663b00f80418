"""Files that are, or claim to be, a libcuda: cut while they are read, too large, swapped for others."""
import os
import shutil
import struct
import subprocess

import hostile
from hostile import LIBRARY, NOBODY, WORKLOADS, wait_for

# Maps each file as a loader does, and truncates it at once; works on $3 copies of $1 at a time.
CUT = """
import mmap, os, shutil, sys
library, batches, copies = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for batch in range(batches):
    paths = []
    for number in range(copies):
        path = f"copy-{batch}-{number}/libcuda.so.1"
        os.mkdir(os.path.dirname(path))
        shutil.copy(library, path)
        paths.append(path)
    for path in paths:
        fd = os.open(path, os.O_RDWR)
        mapped = mmap.mmap(fd, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
        os.ftruncate(fd, 4096)
        os.close(fd)
    for path in paths:
        shutil.rmtree(os.path.dirname(path))
"""
MAP = """
import mmap, os, sys, time
fd = os.open(sys.argv[1], os.O_RDONLY)
mapped = mmap.mmap(fd, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
time.sleep(float(sys.argv[2]))
"""
TERABYTE = 1 << 40


def sparse_elf(path):
    """A file that claims that nearly all of its 4 TB are symbols, but has 8 KiB on disk."""
    size = 4 * TERABYTE
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 64, 4096, 0, 64, 56, 1, 64, 3, 2)
    program = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, size, size, 4096)
    sections = b"".join(struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, at, length, link, 0, 8, entry)
                        for name, kind, at, length, link, entry in (
                            (0, 0, 0, 0, 0, 0), (1, 11, 8192, size - 16384, 2, 24), (9, 3, 4096 + 192, 64, 0, 0)))
    with open(path, "wb") as file:
        file.write(header + program)
        file.seek(4096)
        file.write(sections + b"\0.dynsym\0.shstrtab\0".ljust(64, b"\0"))
        file.truncate(size)


class Live(hostile.Attack):
    def test_cut_while_it_is_read(self):
        """300 copies at a time are cut while they are examined: reading what is no longer there ends nothing."""
        shutil.copy(LIBRARY, f"{self.lair}/original")
        tracer = self.trace_machine()
        self.python_as_nobody(CUT, f"{self.lair}/original", 8, 300, timeout=100)
        self.check_survived(tracer, self.honest())

    def test_four_terabytes(self):
        """A file of 8 KiB that claims 4 TB of symbols neither holds up the trace nor fills the memory."""
        path = f"{self.lair}/libcuda.so.1"
        try:
            sparse_elf(path)
        except OSError as error:
            self.skipTest(f"this file system takes no file of 4 TB: {error}")
        os.chown(path, NOBODY.pw_uid, NOBODY.pw_gid)
        tracer = self.trace_machine()
        attacker = self.start_as_nobody(MAP, path, 20)
        before = self.page_cache()
        honest = self.honest()
        wait_for(lambda: attacker.process.poll() is None, "mapped")
        self.check_survived(tracer, honest)
        self.assertLess(self.page_cache() - before, 1 << 30, "of page cache that reading it took")

    @staticmethod
    def page_cache():
        with open("/proc/meminfo", encoding="utf-8") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("Cached:"))

    def test_many_symbols(self):
        """A library with 66,000 functions holds up no other: a copy that root maps meanwhile is soon traced."""
        source = "\n".join(f".globl cuXy{n:06}\n.type cuXy{n:06},@function\ncuXy{n:06}: ret\n.size cuXy{n:06},.-cuXy{n:06}"
                           for n in range(66_000))
        source += "\n.globl cuInit\n.type cuInit,@function\ncuInit: ret\n.size cuInit,.-cuInit\n" \
                  '.section .note.GNU-stack,"",%progbits\n'
        path = self.build("many/libcuda.so.1", source, "-shared", "-nostdlib", "-Wl,-soname,libcuda.so.1",
                          language="assembler")
        os.mkdir(f"{self.folder}/late")
        late = shutil.copy(LIBRARY, f"{self.folder}/late/libcuda.so.1")
        tracer = self.trace_machine()
        for number in range(2):  # a different file each time
            copy = shutil.copy(path, f"{self.lair}/libcuda.so.{number}")
            os.chown(copy, NOBODY.pw_uid, NOBODY.pw_gid)
            self.start_as_nobody(MAP, copy, 60)
        honest = self.start([f"{WORKLOADS}/fake_storm", "--library", late, "--count", "20000", "--rate", "2000"])
        wait_for(lambda: self.read(whole=False).counts(honest.pid)["cuLaunchKernel"], "tracing the honest program", 5)
        self.assertEqual(honest.wait(), 0)
        trace = self.check_survived(tracer)
        self.assertIn("late_library", trace.end["losses"])

    def test_bind_mount_of_another_library(self):
        """A file mounted over libcuda.so.1 in the attacker's own namespace is not traced for every process."""
        functions = "".join(f"int cu{name}(void) {{ return {n}; }}\n" for n, name in enumerate(
            ("rl_easy_init", "rl_easy_perform", "be", "t_off", "RLcount", "stomer")))
        path = self.build("other/libother.so.4", functions, "-shared", "-fPIC", "-Wl,-soname,libother.so.4")
        with open(f"{self.lair}/libcuda.so.1", "w", encoding="utf-8"):
            pass
        script = 'mount --bind "$1" libcuda.so.1 && exec "$2" -c "$3" libcuda.so.1 20'
        tracer = self.trace_machine("--profile", "full")
        attacker = self.start(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", path,
                               hostile.PYTHON, MAP], cwd=self.lair, **hostile.AS_NOBODY)
        honest = self.honest()
        use = "import ctypes, sys; l = ctypes.CDLL(sys.argv[1]); [l.curl_easy_init() for _ in range(100)]"
        subprocess.run([hostile.PYTHON, "-c", use, path], check=True)
        if attacker.process.poll() is not None:
            self.skipTest(f"users may have no namespaces here: {attacker.stderr().strip()}")
        trace = self.check_survived(tracer, honest)
        self.assertEqual({call["name"] for call in trace.calls if call["name"].startswith("curl")}, set())

    def test_copied_up(self):
        """A library in an overlay is changed, and so copied, while it is traced: all calls are there, or the loss."""
        for name in ("lower", "upper", "work", "merged"):
            os.mkdir(f"{self.folder}/{name}")
        shutil.copy(LIBRARY, f"{self.folder}/lower/libcuda.so.1")
        options = ",".join(f"{key}={self.folder}/{name}" for key, name in (
            ("lowerdir", "lower"), ("upperdir", "upper"), ("workdir", "work")))
        merged = f"{self.folder}/merged"
        done = subprocess.run(["mount", "-t", "overlay", "-o", options, "none", merged], check=False,
                              stderr=subprocess.PIPE, text=True)
        if done.returncode:
            self.skipTest(f"no overlay can be mounted here: {done.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "--lazy", merged], check=True)
        path = f"{merged}/libcuda.so.1"
        storm = f"{WORKLOADS}/fake_storm --library {path} --rate 2000 --count"
        trace = self.traced(["sh", "-c", f"{storm} 100; chmod 700 {path}; {storm} 400; {storm} 500"], "--library", path)
        recorded = trace.counts()["cuLaunchKernel"]
        self.assertTrue(recorded == 1000 or trace.end["losses"], f"{recorded} of 1,000 calls, and nothing is said")

    def test_honest_alone(self):
        """Without an attack, all of this holds: what the other tests assert can be true."""
        tracer = self.trace_machine()
        self.check_survived(tracer, self.honest())


if __name__ == "__main__":
    hostile.harness.main()
