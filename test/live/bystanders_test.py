"""Processes that are not traced: what the traced processes' probes change in them, and cost them."""
import re
import shutil
import subprocess

import harness
from harness import LIBRARY, WORKLOADS, wait_for

BREAKPOINT = 0xCC  # x86-64
BEGIN = "setup; module m; function f m add; print ready"
LAUNCH = "launch f 1 1 1 1 1 1 0"


def mappings(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
        return file.read()


class Live(harness.LiveTest):
    def setUp(self):
        super().setUp()
        # A library of its own: the kernel may still be removing an earlier test's probes from the others' library.
        self.library = shutil.copy(LIBRARY, self.folder)

    def first_byte(self, pid):
        """The first byte of cuLaunchKernel, as it is in that process's memory."""
        text = subprocess.run(["nm", "-D", self.library], check=True, text=True, stdout=subprocess.PIPE).stdout
        offset = int(re.search("^([0-9a-f]+) T cuLaunchKernel$", text, re.MULTILINE)[1], 16)  # as in the file
        base = min(int(line.split("-")[0], 16) for line in mappings(pid).splitlines() if self.library in line)
        with open(f"/proc/{pid}/mem", "rb") as memory:
            memory.seek(base + offset)
            return memory.read(1)[0]

    def start_calls(self, script):
        """fake_calls, once it has reached `print ready`; a line on its stdin lets it go on."""
        program = self.start([f"{WORKLOADS}/fake_calls", "--library", self.library, f"{BEGIN}; read; {script}"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(program.process.stdout.readline(), b"ready\n", program.stderr())
        return program

    def finish(self, *programs):
        for program in programs:
            program.send_line()
        for program in programs:
            self.assertEqual(program.wait(), 0, program.stderr())

    def attach(self, *arguments):
        return self.start_cudabpf("attach", "-o", self.path, "--library", self.library, *arguments)

    def check_launches(self, trace, *programs):
        self.check_law(trace)
        self.assertEqual({call["pid"] for call in trace.calls}, {program.pid for program in programs})
        for program in programs:
            launched = [call for call in trace.named("cuLaunchKernel") if call["pid"] == program.pid]
            self.assertEqual(len(launched), self.records()[program.pid].counts["cuLaunchKernel"])

    def feature(self, trace, name):
        return next(f for f in trace.header["features"] if f["name"] == name)["state"]

    def needs(self, trace, name):
        if self.feature(trace, name) != "yes":
            self.skipTest(f"this kernel has no {name}")

    def test_no_follow_attach(self):
        """The bystander's code is untouched, and all of the target is recorded, on each of its threads."""
        target = self.start_calls(f"{LAUNCH}; loop 4 {{ thread {{ loop 50 {{ {LAUNCH} }} }} }}; wait; read")
        bystander = self.start_calls(f"loop 100 {{ {LAUNCH} }}; read")
        before = self.first_byte(bystander.pid)
        tracer = self.attach("--pid", target.pid, "--no-follow")
        probed = self.first_byte(target.pid), self.first_byte(bystander.pid)
        for program in (target, bystander):
            program.send_line()
        wait_for(lambda: self.records()[bystander.pid].counts.get("cuLaunchKernel") == 100, "launched")
        left = mappings(bystander.pid)
        self.finish(target, bystander)
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        trace = self.read()
        self.check_launches(trace, target)
        self.needs(trace, "uprobe_process")
        self.assertEqual(probed, (BREAKPOINT, before))
        self.assertNotIn("[uprobes]", left)

    def test_no_follow_run(self):
        """A command's own probes are there before its first call, and no other process's are."""
        bystander = self.start_calls(f"loop 100 {{ {LAUNCH} }}")
        before = self.first_byte(bystander.pid)
        script = f"{BEGIN}; {LAUNCH}; print running; read; thread {{ {LAUNCH} }}; thread {{ {LAUNCH} }}"
        tracer = self.start_cudabpf("run", "-o", self.path, "--library", self.library, "--no-follow", "--",
                                    f"{WORKLOADS}/fake_calls", "--library", self.library, script,
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(tracer.process.stdout.readline(), b"ready\n", tracer.stderr())
        self.assertEqual(tracer.process.stdout.readline(), b"running\n", tracer.stderr())
        during = self.first_byte(bystander.pid)
        self.finish(bystander, tracer)
        trace = self.read()
        self.check_law(trace)
        command = trace.processes[0]["pid"]
        self.assertEqual(dict(trace.counts(command)).get("cuLaunchKernel"), 3)
        self.assertEqual({call["pid"] for call in trace.calls}, {command})
        self.needs(trace, "uprobe_process")
        self.assertEqual(during, before)

    def test_no_follow_several(self):
        """Several targets, and a library that one of them maps later."""
        targets = [self.start_calls(f"loop 10 {{ {LAUNCH} }}") for _ in range(3)]
        bystander = self.start_calls(f"loop 10 {{ {LAUNCH} }}")
        tracer = self.attach("--no-follow", "--pid", ",".join(str(t.pid) for t in targets))
        self.finish(*targets, bystander)
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        self.check_launches(self.read(), *targets)

    def test_follow(self):
        """If children are followed, the bystander takes probe hits at entries, but none of its returns is watched."""
        target = self.start_calls(f"loop 100 {{ {LAUNCH} }}")
        bystander = self.start_calls(f"loop 100 {{ {LAUNCH} }}; read")
        tracer = self.attach("--pid", target.pid)
        during = self.first_byte(bystander.pid)
        bystander.send_line()
        wait_for(lambda: self.records()[bystander.pid].counts.get("cuLaunchKernel") == 100, "launched")
        left = mappings(bystander.pid)
        self.finish(bystander, target)
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        trace = self.read()
        self.check_launches(trace, target)
        self.assertEqual(during, BREAKPOINT)
        self.needs(trace, "uprobe_session")
        self.assertNotIn("[uprobes]", left)

    def test_children_that_run_already(self):
        """The target's children are followed, and with --no-follow they are not."""
        for flags, followed in (([], True), (["--no-follow"], False)):
            self.setUp()
            script = f"{BEGIN}; fork {{ print child; read; loop 5 {{ {LAUNCH} }} }}; wait; {LAUNCH}"
            parent = self.start([f"{WORKLOADS}/fake_calls", "--library", self.library, script],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for line in (b"ready\n", b"child\n"):
                self.assertEqual(parent.process.stdout.readline(), line, parent.stderr())
            tracer = self.attach("--pid", parent.pid, *flags)
            self.finish(parent)
            self.assertEqual(tracer.wait(), 0, tracer.stderr())
            trace = self.read()
            self.check_law(trace)
            launches = {pid: count for pid, record in self.records().items()
                        if (count := record.counts.get("cuLaunchKernel"))}
            self.assertEqual(len(launches), 2)
            if not followed:
                launches = {parent.pid: launches[parent.pid]}
            traced = {pid: trace.counts(pid)["cuLaunchKernel"] for pid in {c["pid"] for c in trace.calls}}
            self.assertEqual(traced, launches)

    def test_own_parent(self):
        """Attaching to the shell that started cudabpf does not wait for cudabpf itself."""
        script = (f"{harness.CUDABPF} attach -q -o {self.path} --library {self.library} --pid $$ & "
                  f"while ! test -s {self.path}; do sleep 0.05; done; "
                  f"{WORKLOADS}/fake_calls --library {self.library} '{BEGIN}; {LAUNCH}'")
        shell = self.start(["bash", "-c", script], stdout=subprocess.DEVNULL)
        self.assertEqual(shell.wait(), 0, shell.stderr())
        wait_for(lambda: '"type":"end"' in open(self.path, encoding="utf-8").read(), "ended")
        trace = self.read()
        self.check_law(trace)
        self.assertEqual(trace.end["reason"], "targets ended")
        self.assertEqual(trace.counts()["cuLaunchKernel"], 1)

    def test_without_sessions(self):
        """The trace is the same, record for record."""
        script = (f"{BEGIN}; malloc a 4K; htod a host 4K; {LAUNCH}; fails 2 malloc b 1T; "
                  f"loop 3 {{ thread {{ loop 20 {{ {LAUNCH}; sync }} }} }}; wait; free a")
        symbols = {}
        for flags in ([], ["--no-feature", "uprobe_session"]):
            self.setUp()
            trace = self.script(script, *flags, library=self.library)
            self.check_whole(trace)
            symbols[tuple(flags)] = sorted(
                (harness.symbol_of(c), c.get("ret"), c.get("size"), "duration_us" in c) for c in trace.calls)
        self.assertEqual(len(set(map(str, symbols.values()))), 1)

    def test_unloading_elsewhere(self):
        """A process that loads and unloads modules does not cause other processes' names to be sent again."""
        unloading = self.start_calls("loop 300 { module u; unload u }; read")
        launching = self.start_calls(f"loop 3000 {{ {LAUNCH} }}; read")
        tracer = self.start_cudabpf("-o", self.path, "--library", self.library)
        for program in (unloading, launching):
            program.send_line()
        for program, symbol, count in ((unloading, "cuModuleUnload", 300), (launching, "cuLaunchKernel", 3000)):
            wait_for(lambda p=program, s=symbol, c=count: self.records()[p.pid].counts.get(s) == c, "done")
        self.finish(unloading, launching)
        tracer.signal(2)
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        trace = self.read()
        self.check_law(trace)
        names = trace.end["accounts"]["entered"] - 2 * len(trace.calls)  # and a few records of processes
        self.assertLess(names, 20)


if __name__ == "__main__":
    harness.main()
