"""What `cudabpf top` keeps in memory, and writes on request or when something fails, is a trace of just that time."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess

import harness
from harness import LIBRARY, Trace, calls, launches, wait_for

OUT_OF_MEMORY = 2


class Live(harness.LiveTest):
    def setUp(self):
        super().setUp()
        if not shutil.which("zstd"):
            self.skipTest("zstd is not installed")
        self.path = f"{self.folder}/kept.jsonl.zst"

    def watch(self, *arguments, **options):
        """`top` with a recorder, once it says that it records."""
        options = {"cwd": self.folder, "stdout": subprocess.DEVNULL, "env": self.environment(), **options}
        program = harness.Program([harness.CUDABPF, "top", "--json", "--profile", "full", "--library", LIBRARY, *arguments],
                                  **options)
        self.addCleanup(program.kill)
        wait_for(lambda: "are kept in memory" in program.stderr() or program.process.poll() is not None, "recording")
        return program

    def dumps(self, program, count=1):
        """The dumps that it reports, once there are so many: [(path, events)]."""
        pattern = r"written: (\S+), the last [\d.:]+ \w+ with ([\d,]+) events"

        def found():
            texts = re.findall(pattern, program.stderr())
            return texts if len(texts) >= count else None
        texts = wait_for(found, f"{count} dumps reported: {program.stderr()}")
        return [(path, int(events.replace(",", ""))) for path, events in texts]

    def dump(self, path):
        """The trace in the file, after checking its figures."""
        done = subprocess.run(["zstd", "-dcq", os.path.join(self.folder, path)], check=True, stdout=subprocess.PIPE)
        trace = Trace(done.stdout.decode())
        self.assertEqual(trace.end["calls"], len(trace.calls))
        self.assertEqual(trace.end["lines"], len(trace.lines))
        self.assertEqual(trace.end["losses"], {}, trace.lost)
        self.assertEqual(trace.end["ts"], trace.header.get("since", 0) + trace.end["duration_ns"])
        self.assertNotIn("part", trace.header)
        ids = [call["id"] for call in trace.calls]
        self.assertEqual(len(ids), len(set(ids)))
        return trace

    def check_ours(self, trace):
        """Each call of each process of this test is there; on the machine there may be others."""
        found = self.records()
        self.assertTrue(found)
        for pid, record in found.items():
            self.assertEqual(dict(trace.counts(pid)), record.counts, f"pid {pid}")

    def end(self, program, status=0):
        program.signal(signal.SIGINT)
        self.assertEqual(program.wait(), status, program.stderr())

    def answer(self, *command):
        done = self.run_cudabpf(*command)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.decode()

    # --- on request

    def test_all_of_it(self):
        """Everything is within the time: each call is there, and subcommands read it."""
        command = calls("setup; malloc a 64K; loop 3000 { sync }; free a; read")
        watch = self.watch("--keep-last", "60s", "-o", self.path, "--", *command, stdin=subprocess.PIPE)
        wait_for(lambda: self.records() and self.record().counts.get("cuMemFree_v2"), "all calls")
        watch.signal(signal.SIGUSR1)
        (path, events), = self.dumps(watch)
        self.assertEqual(path, self.path)
        trace = self.dump(path)
        self.check_counts(trace)
        self.assertEqual(trace.end["reason"], "asked")
        self.assertEqual(events, len(trace.lines) - 2)
        self.assertNotIn("since", trace.header)
        self.assertEqual((trace.header["mode"], [line["op"] for line in trace.processes]), ("run", ["start"]))
        summary = json.loads(self.answer("summary", "--json", path))
        self.assertTrue(summary["trace"]["complete"])
        self.assertEqual(summary["trace"]["calls"], self.total())
        counts = {call["name"]: call["count"] for call in json.loads(self.answer("calls", "--json", path))["calls"]}
        self.assertEqual(counts["cuStreamSynchronize"], 3000)
        self.assertNotIn("INCOMPLETE", self.answer("summary", path))
        self.answer("report", path, "-o", f"{self.folder}/report.html")
        self.assertGreater(os.path.getsize(f"{self.folder}/report.html"), 1000)
        watch.send_line()
        self.assertEqual(watch.wait(), 0, watch.stderr())

    def test_whole_machine(self):
        watch = self.watch("--keep-last", "60s", "-o", self.path)
        for _ in range(3):
            self.assertEqual(self.start(calls("setup; loop 1000 { sync }")).wait(), 0)
        watch.signal(signal.SIGUSR1)
        trace = self.dump(self.dumps(watch)[0][0])
        self.check_ours(trace)
        for pid in self.records():
            self.assertEqual([line["op"] for line in trace.processes if line["pid"] == pid], ["start", "exit"])
        self.end(watch)

    def test_twice(self):
        """The default name; each dump is a new file, which has what came before, too."""
        watch = self.watch("--keep-last", "60s")
        self.assertEqual(self.start(calls("setup; loop 10 { sync }")).wait(), 0)
        watch.signal(signal.SIGUSR1)
        (first, _), = self.dumps(watch)
        self.assertRegex(first, r"^traces/trace_\w+\.jsonl\.zst$")
        self.assertEqual(self.start(calls("setup; loop 20 { sync }")).wait(), 0)
        watch.signal(signal.SIGUSR1)
        second = self.dumps(watch, 2)[1][0]
        ours = [[call for call in self.dump(path).named("cuStreamSynchronize") if call["pid"] in self.records()]
                for path in (first, second)]
        self.assertEqual([len(made) for made in ours], [10, 30])
        self.end(watch)
        self.assertEqual(len(os.listdir(f"{self.folder}/traces")), 2)

    def test_numbers(self):
        """A name that was given gets a number, and no file is replaced."""
        with open(self.path, "w", encoding="utf-8") as file:
            file.write("kept\n")
        watch = self.watch("--keep-last", "60s", "-o", self.path)
        for count in (1, 2):
            watch.signal(signal.SIGUSR1)
            self.assertEqual(self.dumps(watch, count)[-1][0], f"{self.folder}/kept-{count + 1}.jsonl.zst")
        self.end(watch)
        with open(self.path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "kept\n")

    def test_last_seconds(self):
        """Old calls are gone; the newest are there without a gap, and the process is still known by its name."""
        watch = self.watch("--keep-last", "2s", "-o", self.path, "--", *launches(6000, 1000))
        wait_for(lambda: self.records() and self.record().counts.get("cuLaunchKernel", 0) >= 5000, "5000 launches")
        made = self.record().counts["cuLaunchKernel"]
        watch.signal(signal.SIGUSR1)
        path = self.dumps(watch)[0][0]
        self.assertEqual(watch.wait(), 0, watch.stderr())
        trace = self.dump(path)
        self.assertGreaterEqual(trace.end["duration_ns"], 2_000_000_000)
        self.assertLess(trace.end["duration_ns"], 4_000_000_000)
        since = trace.header["since"]
        self.assertGreater(since, 0)
        launched = trace.named("cuLaunchKernel")
        self.assertGreater(min(call["ts"] + call["duration_us"] * 1000 for call in launched), since - 100_000_000)
        # It has the calls up to the moment at which it was requested, those that were made before the signal.
        ids = sorted(call["id"] for call in launched)
        self.assertEqual(ids, list(range(ids[0], ids[-1] + 1)))
        before = ids[0] - (self.total() - self.record().counts["cuLaunchKernel"])
        self.assertGreaterEqual(before + len(ids) + 10, made)
        self.assertLess(len(launched), 5000)
        process, = trace.processes
        self.assertEqual((process["op"], process["ts"], process["pid"]), ("start", since, self.record().pid))
        self.assertEqual(process["comm"], "fake_storm")
        summary = json.loads(self.answer("summary", "--json", path))
        self.assertTrue(summary["trace"]["complete"])
        self.assertEqual(summary["trace"]["calls"], len(trace.calls))
        self.assertLess(abs(summary["summary"]["duration_us"] - trace.end["duration_ns"] / 1000), 1000)
        for command in (["calls"], ["kernels"], ["gaps"], ["timeline"], ["memory"], ["errors"]):
            self.assertNotIn("INCOMPLETE", self.answer(*command, path))

    def test_memory_bound(self):
        """Where memory is short, less time is kept, and a message says so."""
        watch = self.watch("--keep-last", "60s", "--keep-most", "1M", "-o", self.path, "--", *launches(150000, 0))
        self.assertEqual(watch.wait(60), 0, watch.stderr())
        self.assertFalse(os.path.exists(self.path))  # no dump was requested
        watch = self.watch("--keep-last", "60s", "--keep-most", "1M", "-o", self.path)
        self.assertEqual(self.start(launches(150000, 0)).wait(60), 0)
        watch.signal(signal.SIGUSR1)
        path, events = self.dumps(watch)[0]
        self.end(watch)
        self.assertIn("no room to keep more", watch.stderr())
        self.assertLess(os.path.getsize(path), 1.2 * (1 << 20))
        trace = self.dump(path)
        self.assertLess(events, 150000)
        self.assertGreater(len(trace.named("cuLaunchKernel")), 1000)

    def test_many_signals(self):
        watch = self.watch("--keep-last", "60s", "-o", self.path)
        for _ in range(2000):
            watch.signal(signal.SIGUSR1)
        self.dumps(watch)
        self.end(watch)
        for path in glob.glob(f"{self.folder}/kept*"):
            self.dump(path)
        self.assertLess(len(glob.glob(f"{self.folder}/kept*")), 20)

    def test_end_during_a_dump(self):
        """Ctrl-C comes right after the request: the dump is whole all the same."""
        watch = self.watch("--keep-last", "60s", "-o", self.path)
        self.assertEqual(self.start(launches(50000, 0)).wait(), 0)
        watch.signal(signal.SIGUSR1)
        watch.signal(signal.SIGINT)
        self.assertEqual(watch.wait(), 0, watch.stderr())
        for path, _ in self.dumps(watch):
            self.check_ours(self.dump(path))

    def test_processes(self):
        """--pid, and a process that was there before."""
        target = self.start(calls("read; setup; loop 100 { sync }; read"), stdin=subprocess.PIPE)
        watch = self.watch("--keep-last", "60s", "-o", self.path, "--pid", str(target.pid))
        target.send_line()
        wait_for(lambda: self.records() and self.record().counts.get("cuStreamSynchronize") == 100, "calls")
        watch.signal(signal.SIGUSR1)
        trace = self.dump(self.dumps(watch)[0][0])
        self.assertEqual(len(trace.named("cuStreamSynchronize")), 100)
        self.assertEqual(trace.header["mode"], "attach")
        target.send_line()
        self.assertEqual(watch.wait(), 0, watch.stderr())

    def test_inside(self):
        """A user without root gets dumps, too."""
        folder = harness.build_of_our_own() if not harness.INSIDE else harness.BUILD
        os.chmod(self.folder, 0o777)
        library = f"{folder}/test/fake_libcuda/libcuda.so.1"
        command = [f"{folder}/test/workloads/fake_calls", "--library", library, "setup; loop 500 { sync }; read"]
        watch = harness.Program([f"{folder}/cudabpf", "top", "--json", "--inside", "--profile", "full", "--library", library,
                                 "--keep-last", "60s", "-o", self.path, "--", *command], cwd=self.folder,
                                env=self.environment(), stdout=subprocess.DEVNULL, stdin=subprocess.PIPE,
                                **harness.WITHOUT_RIGHTS)
        self.addCleanup(watch.kill)
        wait_for(lambda: harness.records(self.record_folder, True) and
                 next(iter(harness.records(self.record_folder, True).values())).counts.get("cuStreamSynchronize") == 500,
                 f"calls: {watch.stderr()}")
        watch.signal(signal.SIGUSR1)
        path = self.dumps(watch)[0][0]
        self.assertEqual(len(self.dump(path).named("cuStreamSynchronize")), 500)
        if harness.WITHOUT_RIGHTS:
            self.assertEqual(os.stat(path).st_uid, harness.NOBODY.pw_uid)
        watch.send_line()
        self.assertEqual(watch.wait(), 0, watch.stderr())

    # --- by itself

    def test_on_error(self):
        """The first call that fails, and what follows it, without a request; once."""
        script = ("setup; loop 100 { sync }; fails 2 malloc a 1T; sleep 100; loop 50 { query }; sleep 1500; "
                  "fails 2 malloc a 1T; sleep 1500")
        watch = self.watch("--dump-on", "error", "-o", self.path, "--", *calls(script))
        self.assertEqual(watch.wait(), 0, watch.stderr())
        (path, _), = self.dumps(watch)
        self.assertIn("something failed; written", watch.stderr())
        trace = self.dump(path)
        self.assertEqual(trace.end["reason"], "error")
        failed, = [call for call in trace.calls if call.get("error")]
        self.assertEqual((failed["name"], failed["ret"]), ("cuMemAlloc", OUT_OF_MEMORY))
        self.assertEqual(len(trace.named("cuStreamQuery")), 50)
        self.assertEqual(len(trace.named("cuStreamSynchronize")), 100)
        self.assertEqual(glob.glob(f"{self.folder}/kept.*"), [path])

    def test_on_slow_call(self):
        """Of a class; and the trace says what it was."""
        watch = self.watch("--dump-on", "wait=200ms", "-o", self.path, "--", *calls("setup; loop 50 { sync }; sleep 300; sync; sleep 1500"),
                           env=self.environment(LATENCY="cuStreamSynchronize=10000,cuCtxSynchronize=10000"))
        self.assertEqual(watch.wait(), 0, watch.stderr())
        self.assertNotIn("written", watch.stderr())
        watch = self.watch("--dump-on", "wait=200ms,xid", "-o", self.path, "--", *calls("setup; loop 2 { sync }; read"), stdin=subprocess.PIPE,
                           env=self.environment(LATENCY="cuStreamSynchronize=300000000,cuCtxSynchronize=300000000"))
        (path, _), = self.dumps(watch)
        watch.send_line()
        self.assertEqual(watch.wait(), 0, watch.stderr())
        self.assertIn("wait; written", watch.stderr())
        self.assertEqual(self.dump(path).end["reason"], "wait")

    def test_on_idle(self):
        """A process that was busy launches nothing any more."""
        watch = self.watch("--dump-on", "idle=1s", "-o", self.path, "--", *calls("setup; module m; function f m k; loop 200 { launch f 1 1 1 1 1 1 0 }; read"),
                           stdin=subprocess.PIPE)
        (path, _), = self.dumps(watch)
        watch.send_line()
        self.assertEqual(watch.wait(), 0, watch.stderr())
        trace = self.dump(path)
        self.assertEqual(trace.end["reason"], "idle")
        self.assertEqual(len(trace.named("cuLaunchKernel")), 200)

    def test_on_crash(self):
        """A process that is killed, and the end before a second is over."""
        watch = self.watch("--dump-on", "error", "-o", self.path, "--", *calls("setup; sync; kill 11"))
        self.assertEqual(watch.wait(), 139, watch.stderr())
        trace = self.dump(self.dumps(watch)[0][0])
        self.check_counts(trace)
        self.assertEqual([line.get("signal") for line in trace.processes], [None, 11])

    def test_no_error(self):
        watch = self.watch("--dump-on", "error", "-o", self.path, "--", *calls("setup; query; sync"))
        self.assertEqual(watch.wait(), 0, watch.stderr())
        self.assertNotIn("written", watch.stderr())
        self.assertEqual(os.listdir(self.folder), ["record"])

    # --- obstacles

    def test_full_disk(self):
        """A message says so, nothing half written stays, recording goes on, and there may be space later."""
        folder = self.small_disk()
        path = f"{folder}/kept.jsonl.zst"
        watch = self.watch("--keep-last", "60s", "-o", path)
        self.assertEqual(self.start(launches(20000, 0)).wait(), 0)
        self.fill(folder)
        watch.signal(signal.SIGUSR1)
        wait_for(lambda: "cannot write what is kept" in watch.stderr() or "cannot create" in watch.stderr(), "a message")
        self.assertIn("No space left on device", watch.stderr())
        self.assertEqual(os.listdir(folder), ["ballast"])
        os.unlink(f"{folder}/ballast")
        watch.signal(signal.SIGUSR1)
        self.check_ours(self.dump(self.dumps(watch)[0][0]))
        self.end(watch)

    def test_usage(self):
        """Mistakes are reported before anything begins."""
        for flags, status in ((["--keep-last", "1ms"], 2), (["--keep-last", "x"], 2), (["--keep-most", "1M"], 2),
                              (["-o", self.path], 2), (["--keep-last", "5s", "--keep-most", "1K"], 2),
                              (["--keep-last", "5s", "-o", f"{self.folder}/kept.jsonl"], 2), (["--dump-on", "exit"], 2), (["--dump-on", "idle"], 2), (["--dump-on", "wait=x"], 2),
                              (["--keep-last", "5s", "-o", "/sys/kept.zst" if os.geteuid() else "/nowhere/kept.zst"], 124)):
            done = self.run_cudabpf("top", *flags, "--", "touch", f"{self.folder}/ran")
            self.assertEqual((done.returncode, done.stdout), (status, b""), f"{flags}: {done.stderr}")
        self.assertEqual(os.listdir(self.folder), ["record"])


if __name__ == "__main__":
    harness.main()
