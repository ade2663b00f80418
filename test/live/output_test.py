"""Trace files: what they are called, what can prevent them, and how they are rotated."""
import collections
import contextlib
import glob
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import time

import harness
from harness import LIBRARY, Trace, calls, ended, launches, wait_for

SCRIPT = "setup; malloc a 4K; htod a host 4K; free a"


class Live(harness.LiveTest):
    def start_tracing(self, path, command, *flags, **options):
        """Traces with the full profile, so that the driver's count is the trace's."""
        return self.start_cudabpf("run", "-o", path, "--profile", "full", "--library", LIBRARY, *flags, "--", *command,
                                  output=path, **options)

    def start_attached(self, path, pid, *flags, **options):
        return self.start_cudabpf("attach", "--pid", str(pid), "-o", path, "--profile", "full", "--library", LIBRARY,
                                  *flags, output=path, **options)

    def zstd(self, path, cut=False):
        """The file's contents; if it was cut off, those of its whole frames."""
        if not shutil.which("zstd"):
            self.skipTest("zstd is not installed")
        done = subprocess.run(["zstd", "-dcq", path], check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if not cut:
            self.assertEqual((done.returncode, done.stderr), (0, b""))
        return done.stdout.decode()

    def text(self, path):
        """What is in the file so far."""
        if path.endswith(".zst"):
            return self.zstd(path, cut=True)
        with open(path, encoding="utf-8") as file:
            return file.read()

    def end(self, pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        wait_for(lambda: ended(pid), f"end of {pid}")

    # --- to a file

    def test_file(self):
        """A relative name, and an existing file: it is replaced, and readable for the users that the umask allows."""
        with open(self.path, "w", encoding="utf-8") as file:
            file.write("what was there\n" * 10000)
        done = self.run_cudabpf("run", "-o", "trace.jsonl", "--profile", "full", "--", *calls(SCRIPT), cwd=self.folder,
                                env=dict(self.environment(), LD_LIBRARY_PATH=os.path.dirname(os.path.abspath(LIBRARY))),
                                preexec_fn=lambda: os.umask(0o027))
        self.assertEqual((done.returncode, done.stdout), (0, b""), done.stderr)
        self.check_whole(self.read())
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o640)
        self.assertEqual(sorted(os.listdir(self.folder)), ["record", "trace.jsonl"])

    def test_redacted(self):
        """The trace does not reveal which user ran what where; all of the program's calls are there."""
        program = f"{self.folder}/secret-program"
        shutil.copy(calls(SCRIPT)[0], program)
        done = self.run_cudabpf("run", "--redact", "-o", self.path, "--profile", "full", "--library", LIBRARY, "--",
                                program, *calls(SCRIPT)[1:])
        self.assertEqual(done.returncode, 0, done.stderr)
        trace = self.read()
        self.check_whole(trace)
        self.assertEqual((trace.header["redacted"], trace.header["host"], trace.header["command"]), (True, "", []))
        with open(self.path, encoding="utf-8") as file:
            text = file.read()
        for secret in (self.folder, "malloc a", os.path.dirname(LIBRARY)):
            self.assertNotIn(secret, text)
        self.assertEqual({frozenset(p) & {"uid", "cmdline", "exe", "cgroup"} for p in trace.processes}, {frozenset()})

    def test_compressed(self):
        path = f"{self.path}.zst"
        done = self.run_cudabpf("run", "-o", path, "--profile", "full", "--library", LIBRARY, "--", *launches(3000, 0))
        self.assertEqual(done.returncode, 0, done.stderr)
        text = self.zstd(path)
        self.assertLess(os.path.getsize(path), len(text) / 3)
        trace = Trace(text)
        self.check_whole(trace)
        self.assertEqual(len(trace.named("cuLaunchKernel")), 3000)
        self.assertIn(f"cudabpf summary --all {path}", done.stderr.decode())

    def test_not_to_be_written(self):
        """Nothing is started, and whatever has the name stays as it is."""
        os.mkdir(f"{self.folder}/folder")
        os.mkfifo(f"{self.folder}/fifo")
        os.mknod(f"{self.folder}/null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        with open(f"{self.folder}/kept", "w", encoding="utf-8") as file:
            file.write("kept\n")
        os.symlink("kept", f"{self.folder}/link")
        os.symlink("nothing", f"{self.folder}/dangling")
        before = {name: os.lstat(f"{self.folder}/{name}").st_ino for name in os.listdir(self.folder)}
        for path in ("folder", "fifo", "null", "link", "dangling", "no/folder/trace.jsonl", "kept/trace.jsonl",
                     "/sys/trace.jsonl", "folder/"):
            done = self.run_cudabpf("run", "-o", path, "--only", "cuInit", "--library", LIBRARY, "--", "touch", "ran",
                                    cwd=self.folder)
            self.assertEqual((done.returncode, done.stdout), (124, b""), f"{path}: {done.stderr}")
            self.assertIn(path, done.stderr.decode())
            self.assertIn("use -o to name", done.stderr.decode())
        after = {name: os.lstat(f"{self.folder}/{name}").st_ino for name in os.listdir(self.folder)}
        self.assertEqual(after, before)
        self.assertEqual(self.text(f"{self.folder}/kept"), "kept\n")

    def test_null_device(self):
        """A trace that is not kept, to measure with: complete, and with nothing to read afterwards."""
        done = self.run_cudabpf("run", "-o", "/dev/null", "--profile", "full", "--library", LIBRARY, "--", *calls(SCRIPT))
        self.assertEqual((done.returncode, done.stdout), (0, b""), done.stderr)
        self.assertRegex(done.stderr.decode(), r"(?m)^[1-9]\d* calls of 1 process in ")
        self.assertNotIn("/dev/null", done.stderr.decode())
        self.assertTrue(stat.S_ISCHR(os.lstat("/dev/null").st_mode))

    def test_hard_link(self):
        """A hard link is not written through: the other name keeps its contents."""
        other = f"{self.folder}/other"
        with open(other, "w", encoding="utf-8") as file:
            file.write("kept\n")
        os.link(other, self.path)
        self.check_whole(self.script(SCRIPT))
        self.assertEqual(self.text(other), "kept\n")
        self.assertNotEqual(os.stat(other).st_ino, os.stat(self.path).st_ino)

    def test_default_path(self):
        """traces/trace_TIMESTAMP.jsonl in the current folder, in local time; an existing file is not touched."""
        env = dict(self.environment(), TZ="XXX-05:45")

        def stamp(at):
            return time.strftime("trace_%Y%m%dT%H%M%S.jsonl", time.gmtime(at + 5 * 3600 + 45 * 60))

        def run():
            done = self.run_cudabpf("run", "--profile", "full", "--library", LIBRARY, "--", *calls(SCRIPT), env=env,
                                    cwd=self.folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            return set(os.listdir(f"{self.folder}/traces")), done.stderr.decode()

        before = int(time.time())
        names, text = run()
        name, = names
        self.assertIn(name, {stamp(at) for at in range(before, int(time.time()) + 1)})
        self.assertIn(f"traces/{name}  ", text)
        self.check_whole(self.read(f"{self.folder}/traces/{name}"))
        now = int(time.time())
        taken = {stamp(at) for at in range(now, now + 60)} | {name}
        for other in taken:
            with open(f"{self.folder}/traces/{other}", "w", encoding="utf-8") as file:
                file.write("kept\n")
        names, text = run()
        name, = names - taken
        self.assertIn(f"traces/{name}  ", text)
        self.assertEqual({self.text(f"{self.folder}/traces/{other}") for other in taken}, {"kept\n"})
        self.assertIsNotNone(self.read(f"{self.folder}/traces/{name}").end)

    # --- obstacles

    def check_full(self, name, room_returns):
        """The disk fills up after a few lines. The target does not notice, and what is missing is counted."""
        folder = self.small_disk()
        path = f"{folder}/{name}"
        command = calls("setup; read; loop 2000 { sync }; read; loop 50 { query }; exit 3")
        tracer = self.start_tracing(path, command, stdin=subprocess.PIPE)
        wait_for(lambda: "cuCtxSetCurrent" in self.text(path), "lines in the file")
        self.fill(folder)
        tracer.send_line()
        wait_for(lambda: "cannot write" in tracer.stderr(), "a message that the disk is full")
        wait_for(lambda: self.record().counts.get("cuStreamSynchronize") == 2000, "going on")
        if room_returns:
            os.unlink(f"{folder}/ballast")
            time.sleep(1.2)  # cudabpf tries again after a second
        tracer.send_line()
        self.assertEqual(tracer.wait(), 3, tracer.stderr())
        text = self.zstd(path) if name.endswith(".zst") else self.text(path)
        trace = Trace(text, whole=room_returns)
        self.assertEqual(trace.cut, "")
        self.assertEqual(tracer.stderr().count("warning"), 1, tracer.stderr())
        self.assertIn("No space left", tracer.stderr())
        lost, = re.findall(r"^  ([\d,]+) output_failed", tracer.stderr(), re.M)
        self.assertLessEqual(trace.counts(), collections.Counter(self.record().counts))
        return trace, int(lost.replace(",", "")), tracer.stderr()

    def check_room_returned(self, name):
        trace, counted, _ = self.check_full(name, True)
        lost = sum(line["count"] for line in trace.lost)
        self.assertEqual({line["reason"] for line in trace.lost}, {"output_failed"})
        self.assertGreater(lost, 100)
        self.assertEqual((trace.end["losses"], counted), ({"output_failed": lost}, lost))
        self.assertEqual(len(trace.calls) + lost, self.total())
        self.assertEqual(trace.counts()["cuStreamQuery"], 50)
        self.assertEqual((trace.end["lines"], trace.end["calls"]), (len(trace.lines), self.total()))
        accounts = trace.end["accounts"]
        self.assertEqual((accounts["dropped"], accounts["received"]), (0, accounts["entered"]))
        for line in trace.lost:
            self.assertTrue(0 < line["since"] <= line["until"] == line["ts"])
        self.assertEqual(trace.end["command_status"], 3)

    def test_low_disk(self):
        """A trace without a command, which may run unwatched, ends in order before the disk is full."""
        folder = self.small_disk()
        path = f"{folder}/trace.jsonl"
        program = self.start(calls("setup; read; sync; read; sync"), stdin=subprocess.PIPE)
        tracer = self.start_cudabpf("attach", "--pid", str(program.pid), "-o", path, "--library", LIBRARY, output=path)
        program.send_line()
        wait_for(lambda: "cuStreamSynchronize" in self.text(path), "lines in the file")
        with open(f"{folder}/ballast", "wb") as file:
            file.write(bytes((1 << 20) - (1 << 20) // 25 - os.path.getsize(path)))
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        self.assertRegex(tracer.stderr(), r"the trace ends: only [\d.]+ KiB are left on its disk")
        trace = self.read(path)
        self.assertEqual((trace.end["reason"], trace.end["losses"]), ("disk low", {}))
        program.send_line()
        self.assertEqual(program.wait(), 0)

    def test_max_size(self):
        for name in ("trace.jsonl", "trace.jsonl.zst"):
            self.setUp()
            path = f"{self.folder}/{name}"
            program = self.start(calls("setup; read; loop 10000 { sync; sleep 10 }"), stdin=subprocess.PIPE)
            tracer = self.start_cudabpf("attach", "--pid", str(program.pid), "-o", path, "--library", LIBRARY,
                                        "--max-size", "4K", output=path)
            program.send_line()
            self.assertEqual(tracer.wait(), 0, tracer.stderr())
            self.assertIsNone(program.process.poll())  # it calls on
            program.kill()
            trace = Trace(self.zstd(path) if name.endswith(".zst") else self.text(path))
            self.assertEqual((trace.end["reason"], trace.end["losses"]), ("size", {}))
            self.assertGreaterEqual(os.path.getsize(path), 4096)

    def test_machine_by_default(self):
        """What is traced, where to and how it ends is said at once; the trace is compressed."""
        tracer = self.start([harness.CUDABPF, "--library", LIBRARY, "--profile", "full"], cwd=self.folder, env=self.environment())
        wait_for(lambda: "until Ctrl-C" in tracer.stderr(), "a message that says what is traced")
        path, = re.findall(r"every process on this machine into (traces/trace_\w+\.jsonl\.zst) until", tracer.stderr())
        wait_for(lambda: os.path.getsize(f"{self.folder}/{path}"), "the header")
        self.assertEqual(self.start(calls(SCRIPT)).wait(), 0)
        tracer.signal(signal.SIGINT)
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        self.check_law(Trace(self.zstd(f"{self.folder}/{path}")))

    def test_full_disk(self):
        trace, counted, stderr = self.check_full("trace.jsonl", False)
        self.assertIsNone(trace.end)
        self.assertIn("its end could not be written", stderr)
        # Besides calls, the line for the process's exit is missing.
        self.assertIn(self.total() - len(trace.calls), (counted - 1, counted))

    def test_room_again(self):
        self.check_room_returned("trace.jsonl")

    def test_room_again_compressed(self):
        self.check_room_returned("trace.jsonl.zst")

    def test_file_size_limit(self):
        """No signal ends cudabpf; its status says that the trace is incomplete."""
        target = self.start(calls("read; setup; loop 500 { sync }; read"), stdin=subprocess.PIPE)
        tracer = self.start_attached(self.path, target.pid)
        resource.prlimit(tracer.pid, resource.RLIMIT_FSIZE, (20000, 20000))
        target.send_line()
        wait_for(lambda: "File too large" in tracer.stderr(), "a message about the limit")
        target.send_line()
        self.assertEqual(target.wait(), 0)
        self.assertEqual(tracer.wait(), 124, tracer.stderr())
        trace = self.read(whole=False)
        self.assertEqual((trace.end, trace.cut), (None, ""))
        self.assertTrue(19000 < os.path.getsize(self.path) <= 20000)
        self.assertEqual(self.record().counts["cuStreamSynchronize"], 500)

    def check_killed(self, path):
        """Killed in the middle: what is there can be read, and is recent."""
        tracer = self.start_tracing(path, launches(60000, 2000))

        def seen():
            text = self.text(path)
            return Trace(text, whole=False).named("cuLaunchKernel") if text.count("\n") > 1 else []
        wait_for(lambda: len(seen()) > 100, "launches in the file")
        pid = self.record().pid
        self.addCleanup(self.end, pid)
        before = self.record().counts["cuLaunchKernel"]
        wait_for(lambda: len(seen()) > before, "those that were made by now, too")
        tracer.signal(signal.SIGKILL)
        tracer.wait()
        made = self.record().counts["cuLaunchKernel"]
        self.assertLess(made, 60000)
        wait_for(lambda: self.record().counts["cuLaunchKernel"] > made, "going on")
        self.end(pid)
        trace = Trace(self.text(path), whole=False)
        self.assertIsNone(trace.end)
        self.assertEqual(trace.header["type"], "trace")
        self.assertGreater(len(trace.named("cuLaunchKernel")), before)
        self.assertEqual({call["ret"] for call in trace.calls}, {0})
        return trace

    def test_killed(self):
        self.check_killed(self.path)

    def test_killed_compressed(self):
        self.assertEqual(self.check_killed(f"{self.path}.zst").cut, "")  # frames hold whole lines

    # --- rotation

    def rotated(self, *flags, name="trace.jsonl", command):
        """The files of a rotated trace, in order, each of which is a trace by itself: [(path, trace)]."""
        done = self.run_cudabpf("run", "-o", f"{self.folder}/{name}", *flags, "--profile", "full", "--library", LIBRARY,
                                "--", *command)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.stderr = done.stderr.decode()
        self.assertFalse(os.path.exists(f"{self.folder}/{name}"))
        suffix = name.partition(".")[2]
        paths = sorted(glob.glob(f"{self.folder}/trace.[0-9]*"))
        for path in paths:
            self.assertRegex(path, rf"/trace\.\d{{4}}\.{suffix}$")
        return [(path, Trace(self.zstd(path) if name.endswith(".zst") else self.text(path))) for path in paths]

    @staticmethod
    def first_library(trace):
        return next((library["path"] for library in trace.header["libraries"] + trace.libraries), None)

    def check_parts(self, parts, first=1):
        """Each is complete by itself, and together they are the complete trace from part `first` on."""
        ids, begin = [], parts[0][1].header["since"]
        library = self.first_library(parts[-1][1])
        # Recorded inside, a process makes calls as soon as its library is patched, which cudabpf is just learning:
        # the first files may not know it yet.
        know_it = [self.first_library(trace) is not None for _, trace in parts]
        self.assertTrue(know_it[-1] and (all(know_it) or harness.INSIDE))
        self.assertEqual(know_it, sorted(know_it))
        for number, (path, trace) in enumerate(parts, first):
            end, last = trace.end, (path, trace) == parts[-1]
            self.assertEqual((trace.header["part"], end["part"], end["last"]), (number, number, last))
            self.assertEqual((end["lines"], end["calls"]), (len(trace.lines), len(trace.calls)))
            self.assertEqual((end["losses"], trace.lost), ({}, []))
            self.assertEqual(end["reason"], "command ended" if last else "rotated")
            self.assertEqual(("whole" in end, "accounts" in end), (last, last))
            self.assertIn(self.first_library(trace), (library, None))
            self.assertEqual(trace.header["clocks"], parts[0][1].header["clocks"])
            self.assertEqual(trace.header["since"], begin)
            begin = end["ts"]
            ids += [call["id"] for call in trace.calls]
        self.assertEqual(len(ids), len(set(ids)))
        whole = parts[-1][1].end["whole"]
        self.assertEqual((whole["calls"], whole["unfinished_calls"], whole["losses"]), (self.total(), 0, {}))
        accounts = parts[-1][1].end["accounts"]
        self.assertEqual((accounts["dropped"], accounts["received"]), (0, accounts["entered"]))

    def check_all_there(self, parts):
        self.check_parts(parts)
        self.assertEqual(parts[0][1].header["since"], 0)
        counts = harness.merge(trace.counts() for _, trace in parts)
        self.assertEqual(dict(counts), self.record().counts)
        self.assertEqual(sum(trace.end["calls"] for _, trace in parts), self.total())
        self.assertEqual([p["op"] for _, trace in parts for p in trace.processes], ["start", "exit"])
        self.assertIn(f"the last of {len(parts)} files", self.stderr)

    def test_rotate_size(self):
        parts = self.rotated("--rotate-size", "64K", command=launches(2000, 0))
        self.check_all_there(parts)
        sizes = [os.path.getsize(path) for path, _ in parts]
        self.assertGreater(len(sizes), 5)
        self.assertLessEqual(max(sizes), 65536)
        self.assertGreater(min(sizes[:-1]), 60000)

    def test_rotate_size_compressed(self):
        """By the size on disk, roughly: it is known only once a frame is compressed."""
        parts = self.rotated("--rotate-size", "32K", name="trace.jsonl.zst", command=launches(10000, 10000))
        self.check_all_there(parts)
        sizes = [os.path.getsize(path) for path, _ in parts]
        self.assertGreater(len(sizes), 3)
        self.assertLess(max(sizes), 2 * 32768)

    def test_rotate_time(self):
        parts = self.rotated("--rotate-time", "50ms", command=launches(800, 1000))
        self.check_all_there(parts)
        times = [trace.end["duration_ns"] for _, trace in parts]
        self.assertGreaterEqual(len(parts), 3)
        self.assertGreaterEqual(min(times[:-1]), 50_000_000)
        self.assertLessEqual(sum(times), parts[-1][1].end["whole"]["duration_ns"])  # none begins after the end
        self.assertTrue(any(trace.calls for _, trace in parts[:-1]))

    def test_keep(self):
        """The newest files stay. A later trace continues their numbers, and these are then the old ones."""
        parts = self.rotated("--rotate-size", "32K", "--keep", "2", command=launches(1000, 0))
        self.assertEqual(len(parts), 2)
        first = parts[0][1].header["part"]
        self.assertGreater(first, 3)
        self.check_parts(parts, first)
        numbers = [int(path.split(".")[-2]) for path, _ in parts]
        self.assertEqual(numbers, [first, first + 1])
        self.assertLess(sum(len(trace.calls) for _, trace in parts), self.total())
        kept = self.text(parts[1][0])
        again = self.rotated("--rotate-size", "1M", "--keep", "2", command=calls(SCRIPT))
        self.assertEqual([int(path.split(".")[-2]) for path, _ in again], [numbers[1], numbers[1] + 1])
        self.assertEqual(self.text(again[0][0]), kept)
        self.assertEqual((again[1][1].header["part"], again[1][1].end["last"]), (1, True))

    def test_keep_size(self):
        """The newest files stay, as many as fit beside the one being written; they are named by host and time."""
        path = f"{self.folder}/trace_%h_%t.jsonl"
        done = self.run_cudabpf("run", "-q", "-o", path, "--rotate-size", "32K", "--keep-size", "128K", "--library", LIBRARY, "--",
                                *launches(3000, 0))
        self.assertEqual(done.returncode, 0, done.stderr)
        names = sorted(set(os.listdir(self.folder)) - {"record"}, key=lambda name: int(name.split(".")[-2]))
        for name in names:
            self.assertRegex(name, rf"^trace_{re.escape(os.uname().nodename)}_\d{{8}}T\d{{6}}\.\d{{4}}\.jsonl$")
        sizes = [os.path.getsize(f"{self.folder}/{name}") for name in names]
        self.assertEqual(len(names), 4)
        self.assertLessEqual(sum(sizes), 128 << 10)
        numbers = [int(name.split(".")[-2]) for name in names]
        self.assertEqual(numbers, list(range(numbers[0], numbers[0] + 4)))
        self.assertGreater(numbers[0], 10)
        text = self.run_cudabpf("summary", *(f"{self.folder}/{name}" for name in names)).stdout.decode()
        self.assertIn(f"Incomplete: parts 1 to {numbers[0] - 1} of it were not given.", text)

    def test_log(self):
        """What a service says in its journal: the start, each file, and the end, and nothing else."""
        done = self.run_cudabpf("run", "--log", "-o", self.path, "--rotate-size", "32K", "--keep", "2", "--library", LIBRARY,
                                "--libraries", "cuda", "--", *launches(500, 0))
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stderr.decode().splitlines()
        base = re.escape(self.path.removesuffix(".jsonl"))
        self.assertRegex(lines[0], rf"^cudabpf: tracing a command into {base}\.0001\.jsonl: {re.escape(LIBRARY)} \(\d+ functions\)$")
        self.assertRegex(lines[-1], rf"^cudabpf: the trace ends \(command ended\): [\d,]+ calls in \d+ files, .* KiB, "
                                    rf"the last {base}\.\d{{4}}\.jsonl; nothing lost$")
        files = int(re.search(r"calls in (\d+) files", lines[-1])[1])
        self.assertGreater(files, 3)
        complete = [line for line in lines if "is complete" in line]
        deleted = [line for line in lines if "is deleted" in line]
        self.assertEqual((len(complete), len(deleted), len(lines)), (files - 1, files - 2, 2 * files - 1))
        for i, line in enumerate(complete, 1):
            self.assertRegex(line, rf"^cudabpf: {base}\.{i:04}\.jsonl is complete: \d+ lines, .* KiB$")
        for i, line in enumerate(deleted, 1):
            self.assertEqual(line, f"cudabpf: {self.path.removesuffix('.jsonl')}.{i:04}.jsonl is deleted (--keep)")

    def test_rotated_into_nothing(self):
        """Files other than the trace's must be neither deleted nor written to."""
        others = ("trace.0001.jsonl.zst", "trace.1.jsonl", "trace.00001.jsonl", "trace.x0001.jsonl", "other.0001.jsonl",
                  "trace.jsonl.0001")
        for other in others:
            with open(f"{self.folder}/{other}", "w", encoding="utf-8") as file:
                file.write("kept\n")
        self.run_cudabpf("run", "-o", self.path, "--rotate-size", "16K", "--keep", "1", "--library", LIBRARY, "--",
                         *launches(300, 0))
        for other in others:
            with open(f"{self.folder}/{other}", encoding="utf-8") as file:
                self.assertEqual(file.read(), "kept\n", other)
        self.assertEqual(len(set(os.listdir(self.folder)) - {"record", *others}), 1)

    def test_rotation_usage(self):
        for flags in (["--rotate-size", "1K"], ["--rotate-size", "x"], ["--rotate-time", "0"], ["--keep", "3"],
                      ["--keep-size", "1M"], ["--rotate-time", "1h", "--keep-size", "1M"],
                      ["--rotate-size", "600K", "--keep-size", "1M"], ["-o", "-", "--rotate-size", "1M"], ["-o", "-", "--rotate-time", "1s"],
                      ["-o", "/dev/null", "--rotate-size", "1M"], ["-o", "trace.jsonl.gz"]):
            output = [] if "-o" in flags else ["-o", self.path]
            done = self.run_cudabpf("run", *output, *flags, "--only", "cuInit", "--library", LIBRARY, "--", "touch",
                                    f"{self.folder}/ran")
            self.assertEqual((done.returncode, done.stdout), (2, b""), f"{flags}: {done.stderr}")
            self.assertEqual(os.listdir(self.folder), ["record"])


if __name__ == "__main__":
    harness.main()
