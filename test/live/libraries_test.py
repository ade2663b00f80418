"""Which files count as libcuda, and that each of them is probed once, whatever its names."""
import os
import re
import shutil
import signal
import subprocess
import sys

import harness
from expected import FUNCTIONS
from harness import LIBRARY, NEWER, wait_for

# Loads paths, calls functions (NAME=TIMES, without arguments), reads a line, deletes (-PATH), in the order given.
CALLER = """
import ctypes, os, sys
for step in sys.argv[1:]:
    if step == "read":
        sys.stdin.readline()
    elif step == "ready":
        print("ready", flush=True)
    elif step.startswith("-"):
        os.unlink(step[1:])
    elif "=" in step:
        name, times = step.split("=")
        for _ in range(int(times)):
            library[name](0, 0, 0, 0)
    else:
        library = ctypes.CDLL(step)
"""
# Maps files as the linker maps code, between two lines that it reads.
MAPPER = """
import mmap, sys
sys.stdin.readline()
maps = []
for path in sys.argv[1:] * 2:
    with open(path, "rb") as file:
        maps.append(mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC))
sys.stdin.readline()
"""


def caller(*steps):
    return [sys.executable, "-c", CALLER, *map(str, steps)]


class Live(harness.LiveTest):
    # The driver's own record is off, since two copies in one process would write one file: the steps are the truth.
    QUIET = {"COUNTS": None, "LOG": None}

    def copy(self, path, of=LIBRARY):
        """A copy of the simulated driver in the test's folder: its path."""
        path = f"{self.folder}/{path}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return shutil.copy(of, path)

    def mount(self, *arguments):
        done = subprocess.run(["mount", *arguments], check=False, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            self.skipTest(f"nothing can be mounted here: {done.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", arguments[-1]], check=True)

    def start_caller(self, *steps):
        """Starts a program, and returns at its first `ready`."""
        program = self.start(caller(*steps), env=self.environment(**self.QUIET), stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
        self.is_ready(program)
        return program

    def is_ready(self, program):
        self.assertEqual(program.process.stdout.readline(), b"ready\n", program.stderr())

    def attach(self, *programs):
        pids = ",".join(str(program.pid) for program in programs)
        return self.start_cudabpf("attach", "-o", self.path, "--profile", "full", "--pid", pids)

    def end(self, tracer, *programs):
        """Lets these go on, waits for their end, and returns the trace."""
        for program in programs:
            program.send_line()
        for program in programs:
            self.assertEqual(program.wait(), 0, program.stderr())
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        return self.read()

    def run_caller(self, steps, *flags):
        return self.traced(caller(*steps), *flags, fake=self.QUIET)

    def libraries(self, trace):
        """The header's libraries that are in the test's folder."""
        return [library for library in trace.header["libraries"] if library["path"].startswith(self.folder)]

    def known(self, *paths):
        return [flag for path in paths for flag in ("--library", path)]

    def check_library(self, library, path, unknown=0):
        status = os.stat(path)
        self.assertEqual((library["path"], library["fs_device"], library["inode"]), (path, status.st_dev, status.st_ino))
        self.assertEqual((library["functions"], library["skipped"], library["unknown"]),
                         (len(FUNCTIONS) + unknown, 0, unknown))
        self.assertNotIn("error", library)

    def check_late(self, trace, path, pid):
        """One copy came late, and the trace says from when to when nothing was seen of it."""
        self.check_accounts(trace)
        self.assertEqual([library["path"] for library in trace.libraries], [path])
        library = trace.libraries[0]
        self.assertEqual([(lost["reason"], lost["severity"], lost["count"]) for lost in trace.lost],
                         [("late_library", "lost", None)])
        lost = trace.lost[0]
        self.assertEqual((lost["ts"], lost["until"]), (library["ts"], library["ts"]))
        self.assertTrue(0 < lost["since"] < lost["until"] <= trace.end["ts"])
        self.assertTrue(lost["detail"].startswith(path) and str(pid) in lost["detail"], lost)
        self.assertEqual(trace.end["losses"], {"late_library": 1})
        return library

    # --- one file, several files

    def test_two_copies_in_one_process(self):
        paths = [self.copy("a/libcuda.so.1"), self.copy("b/libcuda.so.1")]
        trace = self.run_caller([paths[0], "cuInit=20", paths[1], "cuCtxSynchronize=30", paths[0], "cuProfilerStop=10"],
                                *self.known(*paths))
        self.check_law(trace)
        self.assertEqual(trace.counts(), {"cuInit": 20, "cuCtxSynchronize": 30, "cuProfilerStop": 10})
        self.assertEqual(len(self.libraries(trace)), 2)
        for library, path in zip(self.libraries(trace), paths):
            self.check_library(library, path)
        self.assertEqual(len({library["build_id"] for library in self.libraries(trace)}), 1)

    def test_two_copies_by_two_processes(self):
        """Both are already mapped, and on no path: they are found in the processes."""
        paths = [self.copy("a/libcuda.so.1"), self.copy("b/libcuda.so.1")]
        programs = [self.start_caller(path, "cuInit=1", "ready", "read", f"cuCtxSynchronize={20 + i}")
                    for i, path in enumerate(paths)]
        tracer = self.attach(*programs)
        trace = self.end(tracer, *programs)
        self.check_law(trace)
        for i, program in enumerate(programs):
            self.assertEqual(trace.counts(program.pid), {"cuCtxSynchronize": 20 + i})
        self.assertEqual(sorted(library["path"] for library in self.libraries(trace)), paths)

    def test_links(self):
        """Several names of one file: it is probed once, and traced under whichever name it is loaded."""
        path = self.copy("a/libcuda.so.1")
        os.link(path, f"{self.folder}/a/libcuda.so.2")
        os.symlink("libcuda.so.1", f"{self.folder}/a/libcuda.so")
        os.symlink(f"{self.folder}/a", f"{self.folder}/b")
        names = [f"{self.folder}/{name}"
                 for name in ("a/libcuda.so.2", "a/libcuda.so", "b/libcuda.so.1", "b/libcuda.so")]
        for name in names:
            with self.subTest(name):
                trace = self.run_caller([name, "cuInit=20"], *self.known(path, *names, path))
                self.check_law(trace)
                self.assertEqual(trace.counts(), {"cuInit": 20})
                self.assertEqual(len(self.libraries(trace)), 1)
                self.check_library(self.libraries(trace)[0], path)

    def test_bind_mount(self):
        path = self.copy("a/libcuda.so.1")
        other = f"{self.folder}/libcuda.so.1"
        with open(other, "wb"):
            pass
        self.mount("--bind", path, other)
        trace = self.run_caller([other, "cuInit=20", path, "cuCtxSynchronize=20"], *self.known(path))
        self.check_law(trace)
        self.assertEqual(trace.counts(), {"cuInit": 20, "cuCtxSynchronize": 20})
        self.assertEqual(trace.libraries, [])

    def overlays(self, *names):
        """Overlay mounts of one lower folder: the paths of the one library in them, the lower folder's first."""
        paths = [self.copy("lower/libcuda.so.1")]
        for name in names:
            for folder in ("upper", "work", "merged"):
                os.makedirs(f"{self.folder}/{name}/{folder}")
            lower, upper, work = (f"{self.folder}/{folder}" for folder in ("lower", f"{name}/upper", f"{name}/work"))
            self.mount("-t", "overlay", "-o", f"lowerdir={lower},upperdir={upper},workdir={work}", "none",
                       f"{self.folder}/{name}/merged")
            paths.append(f"{self.folder}/{name}/merged/libcuda.so.1")
        return paths

    def test_overlay(self):
        """An overlay's file, as containers have it, beside a changed one, which is a separate file."""
        _, path, changed = self.overlays("a", "b")
        with open(changed, "ab") as file:
            file.write(b"\0")
        trace = self.run_caller([path, "cuInit=20", changed, "cuCtxSynchronize=20"], *self.known(path, changed))
        self.check_law(trace)
        self.assertEqual(trace.counts(), {"cuInit": 20, "cuCtxSynchronize": 20})
        self.assertEqual([library["path"] for library in self.libraries(trace)], [path, changed])

    # --- when it comes

    def test_overlay_same_file(self):
        """One file under two mounts and without: each call has one line."""
        paths = self.overlays("a", "b")
        for known in (paths[:1], paths[1:2], paths[:2], paths):
            with self.subTest(known):
                steps = [step for path in paths for step in (path, "cuInit=20")]
                trace = self.run_caller(steps, *self.known(*known))
                self.check_law(trace)
                self.assertEqual(trace.counts(), {"cuInit": 60})
                self.assertEqual(len(self.libraries(trace)), 1)

    def test_library_path(self):
        """A copy that is only on LD_LIBRARY_PATH is known from the start."""
        path = self.copy("lib/libcuda.so.1")
        folders = f"/nowhere::{self.folder}/lib"
        plain = self.environment(**self.QUIET)
        # For cudabpf, too, or for the command alone.
        for env, before in (({**plain, "LD_LIBRARY_PATH": folders}, []), (plain, ["env", f"LD_LIBRARY_PATH={folders}"])):
            done = self.run_cudabpf("run", "-o", self.path, "--profile", "full", "--", *before,
                                    *caller("libcuda.so.1", "cuInit=20"), env=env)
            self.assertEqual(done.returncode, 0, done.stderr)
            trace = self.read()
            self.check_law(trace)
            self.assertEqual((trace.counts(), trace.end["losses"]), ({"cuInit": 20}, {}))
            self.check_library(self.libraries(trace)[0], path)

    def test_wrapper_script(self):
        """A script sets LD_LIBRARY_PATH: the copy that it leads to is probed before the program maps it."""
        path = self.copy("lib/libcuda.so.1")
        folders = f"relative:/nowhere::{self.folder}/lib"
        command = caller("read", "libcuda.so.1", "cuInit=20")
        tracer = self.start_cudabpf("run", "-o", self.path, "--profile", "full", "--", "sh", "-c",
                                    f"export LD_LIBRARY_PATH={folders}; exec \"$@\"", "sh", *command,
                                    env=self.environment(**self.QUIET), stdin=subprocess.PIPE)
        wait_for(lambda: self.read(whole=False).libraries, "a library line")
        trace = self.end(tracer, tracer)
        self.check_law(trace)
        self.assertEqual((trace.counts(), trace.end["losses"], trace.lost), ({"cuInit": 20}, {}, []))
        self.assertEqual(self.libraries(trace), [])
        self.assertEqual(len(trace.libraries), 1)
        self.check_library(trace.libraries[0], path)

    def test_late(self):
        """A copy that was not there when tracing began: calls are seen from its `library` line on."""
        path = f"{self.folder}/lib/libcuda.so.1"
        program = self.start_caller("ready", "read", path, "cuInit=5", "ready", "read", "cuCtxSynchronize=50")
        tracer = self.attach(program)
        self.copy("lib/libcuda.so.1")
        program.send_line()
        self.is_ready(program)
        wait_for(lambda: self.read(whole=False).libraries, "a library line")
        trace = self.end(tracer, program)
        self.check_library(self.check_late(trace, path, program.pid), path)
        self.assertEqual(self.libraries(trace), [])
        self.assertEqual(trace.counts()["cuCtxSynchronize"], 50)
        self.assertLessEqual(trace.counts()["cuInit"], 5)
        for call in trace.named("cuCtxSynchronize"):
            self.assertGreater(call["ts"], trace.lost[0]["until"])
            self.assertFalse({"entry_lost", "return_lost", "unfinished"} & set(call))

    def test_late_and_deleted(self):
        """It is opened through the mapping, whatever became of its name."""
        path = self.copy("lib/libcuda.so.1")
        moved = f"{self.folder}/libcuda.so.new"
        program = self.start_caller("ready", "read", moved, f"-{moved}", "ready", "read", "cuCtxSynchronize=50")
        tracer = self.attach(program)
        os.rename(path, moved)
        program.send_line()
        self.is_ready(program)
        self.assertFalse(os.path.exists(moved))
        wait_for(lambda: self.read(whole=False).libraries, "a library line")
        trace = self.end(tracer, program)
        self.assertEqual(self.check_late(trace, moved, program.pid)["functions"], len(FUNCTIONS))
        self.assertEqual(trace.counts(), {"cuCtxSynchronize": 50})

    def test_late_elsewhere(self):
        """What an untraced process maps does not concern the trace until a traced one maps it, too."""
        path = f"{self.folder}/lib/libcuda.so.1"
        program = self.start_caller("ready", "read", path, "ready", "read", "cuCtxSynchronize=20")
        tracer = self.attach(program)
        self.copy("lib/libcuda.so.1")
        bystander = self.start(caller(path, "cuInit=20"), env=self.environment(**self.QUIET))
        self.assertEqual(bystander.wait(), 0, bystander.stderr())
        program.send_line()
        self.is_ready(program)
        wait_for(lambda: self.read(whole=False).libraries, "a library line")
        trace = self.end(tracer, program)
        self.check_late(trace, path, program.pid)
        self.assertEqual(trace.counts(), {"cuCtxSynchronize": 20})

    def test_late_newer(self):
        """A newer driver beside the known one, in the same process: functions that no table has, old ones by name."""
        path = f"{self.folder}/lib/libcuda.so.1"
        program = self.start_caller(LIBRARY, "ready", "read", path, "ready", "read", "cuFutureQuery=3", "cuInit=20",
                                    LIBRARY, "cuCtxSynchronize=20")
        tracer = self.attach(program)
        self.copy("lib/libcuda.so.1", NEWER)
        program.send_line()
        self.is_ready(program)
        wait_for(lambda: self.read(whole=False).libraries, "a library line")
        trace = self.end(tracer, program)
        self.check_library(self.check_late(trace, path, program.pid), path, unknown=3)
        self.assertEqual(trace.counts(), {"cuFutureQuery": 3, "cuInit": 20, "cuCtxSynchronize": 20})
        self.assertEqual({call["type"] for call in trace.named("cuFutureQuery")}, {"other"})

    def test_deleted(self):
        """Mapped, and deleted before cudabpf starts."""
        path = self.copy("lib/libcuda.so.1")
        program = self.start_caller(path, "cuInit=1", "ready", "read", "cuCtxSynchronize=20")
        inode = os.stat(path).st_ino
        os.unlink(path)
        trace = self.end(self.attach(program), program)
        self.check_law(trace)
        self.assertEqual(trace.counts(), {"cuCtxSynchronize": 20})
        self.assertEqual([(library["path"], library["inode"]) for library in self.libraries(trace)], [(path, inode)])

    def test_replaced(self):
        """A driver that was updated under a running program: both files have the path, and both are traced."""
        path = self.copy("lib/libcuda.so.1")
        steps = (path, "cuInit=1", "ready", "read")
        old = self.start_caller(*steps, "cuCtxSynchronize=20")
        os.replace(self.copy("new", NEWER), path)
        new = self.start_caller(*steps, "cuFutureQuery=10", "cuCtxSynchronize=30")
        trace = self.end(self.attach(old, new), old, new)
        self.check_law(trace)
        self.assertEqual(trace.counts(old.pid), {"cuCtxSynchronize": 20})
        self.assertEqual(trace.counts(new.pid), {"cuFutureQuery": 10, "cuCtxSynchronize": 30})
        self.assertEqual(sorted((library["path"], library["unknown"]) for library in self.libraries(trace)),
                         [(path, 0), (path, 3)])

    # --- what is not libcuda

    def strange_files(self):
        """{path: what is said about it}, all called libcuda; none of them can be traced."""
        with open(LIBRARY, "rb") as file:
            sound = file.read()
        bits32 = sound[:4] + b"\1" + sound[5:]
        contents = {"text": (b"GROUP ( libcuda.so.1 )\n", "a linker script"), "empty": (b"", "an empty file"),
                    "cut": (sound[:65536], "truncated"), "header": (sound[:40], "truncated"),
                    "bits32": (bits32, "32-bit"), "noise": (bytes(range(256)) * 64, "not an ELF file")}
        folder = f"{self.folder}/strange"
        os.mkdir(folder)
        for name, (content, _) in contents.items():
            with open(f"{folder}/libcuda.so.{name}", "wb") as file:
                file.write(content)
        said = {f"{folder}/libcuda.so.{name}": words for name, (_, words) in contents.items()}
        with open("/proc/self/maps", encoding="utf-8") as file:
            linker = re.search(r"/\S*/ld-\S+", file.read())[0]
        shutil.copy(linker, f"{folder}/libcuda.so.stub")
        said[f"{folder}/libcuda.so.stub"] = "exports no function whose name begins with cu"
        return said

    def test_strange_files(self):
        """On the linker's paths: each has a warning and an error in the header; the sound one is traced."""
        said = self.strange_files()
        path = self.copy("strange/libcuda.so.1")
        os.mkdir(f"{self.folder}/strange/libcuda.so.folder")
        os.mkfifo(f"{self.folder}/strange/libcuda.so.pipe")
        os.symlink("/nowhere", f"{self.folder}/strange/libcuda.so.dangling")
        env = {**self.environment(**self.QUIET), "LD_LIBRARY_PATH": f"{self.folder}/strange"}
        done = self.run_cudabpf("run", "-q", "-o", self.path, "--profile", "full", "--",
                                *caller("libcuda.so.1", "cuInit=20"), env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        trace = self.read()
        self.check_law(trace)
        self.assertEqual(trace.counts(), {"cuInit": 20})
        libraries = {library["path"]: library for library in self.libraries(trace)}
        self.assertEqual(set(libraries), {path, *said})
        warnings = done.stderr.decode().splitlines()
        for strange, words in said.items():
            self.assertIn(words, libraries[strange]["error"])
            self.assertEqual(libraries[strange]["functions"], 0)
            said_so = [w for w in warnings if f"{strange} is not traced: " in w and words in w]
            self.assertEqual(len(said_so), 1, warnings)
        self.check_library(libraries[path], path)
        self.assertEqual(len(warnings), len(said))

    def test_strange_files_named(self):
        """With --library: a file has the same warning, and what is not a file is an error before anything starts."""
        said = self.strange_files()
        trace = self.run_caller([LIBRARY, "cuInit=20"], "-q", *self.known(*said, LIBRARY))
        self.check_law(trace)
        self.assertEqual(trace.counts(), {"cuInit": 20})
        for path, words in said.items():
            self.assertEqual(len(re.findall(f"{re.escape(path)}.*{words}", self.stderr)), 1, self.stderr)
        os.unlink(self.path)
        os.mkdir(f"{self.folder}/libcuda.so.folder")
        os.mkfifo(f"{self.folder}/libcuda.so.pipe")
        for name in ("folder", "pipe", "absent"):
            path = f"{self.folder}/libcuda.so.{name}"
            done = self.run_cudabpf("run", "-o", self.path, *self.known(LIBRARY, path), "--", "touch",
                                    f"{self.folder}/ran")
            self.assertEqual(done.returncode, 123, done.stderr)
            self.assertIn(f"--library {path}: ", done.stderr.decode())
        self.assertFalse(os.path.exists(self.path) or os.path.exists(f"{self.folder}/ran"))

    def test_strange_files_mapped(self):
        """While tracing: a line with an error, once, and nothing is said to be lost."""
        said = self.strange_files()
        said.pop(f"{self.folder}/strange/libcuda.so.empty")  # cannot be mapped
        program = self.start([sys.executable, "-c", MAPPER, *said], stdin=subprocess.PIPE)
        tracer = self.attach(program)
        program.send_line()
        wait_for(lambda: len(self.read(whole=False).libraries) == len(said), "a line for each")
        trace = self.end(tracer, program)
        self.check_law(trace)
        self.assertEqual({library["path"] for library in trace.libraries}, set(said))
        self.assertEqual(len(trace.libraries), len(said))
        for library in trace.libraries:
            self.assertIn(said[library["path"]], library["error"])

    def test_other_names(self):
        """libcuda is a file called libcuda.so or libcuda.so.…; others are traced if they are named."""
        path = self.copy("lib/libcuda-mine.so.1")
        for name in ("libcuda.so.1.so", "libcudart.so.1", "libcuda.sox", "mylibcuda.so.1", "libcuda.so-1"):
            shutil.copy(path, f"{self.folder}/lib/{name}")
        names = sorted(os.listdir(f"{self.folder}/lib"))
        steps = [step for name in names for step in (f"{self.folder}/lib/{name}", "cuInit=1")]
        program = self.start_caller("ready", "read", *steps, "ready", "read", "cuInit=20")
        tracer = self.attach(program)
        program.send_line()
        self.is_ready(program)
        wait_for(lambda: self.read(whole=False).libraries, "a library line")
        trace = self.end(tracer, program)
        self.check_late(trace, f"{self.folder}/lib/libcuda.so.1.so", program.pid)
        self.assertLessEqual(trace.counts()["cuInit"], 1)
        trace = self.run_caller([path, "cuInit=20"], *self.known(path))
        self.check_law(trace)
        self.assertEqual(trace.counts(), {"cuInit": 20})
        self.check_library(self.libraries(trace)[0], path)

    def test_none(self):
        """A machine without libcuda: a warning, and a trace of processes that bring one."""
        tracer = self.start_cudabpf("-o", self.path)
        tracer.signal(signal.SIGINT)
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        trace = self.read()
        if [library for library in trace.header["libraries"] if "error" not in library]:
            self.skipTest("this machine has a libcuda")
        self.assertIn("no libcuda found yet", tracer.stderr())
        self.assertEqual(trace.calls, [])


if __name__ == "__main__":
    harness.main()
