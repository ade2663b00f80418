"""However a trace ends, the traced program goes on, the trace can be read, and no probe stays behind."""
import fcntl
import os
import shlex
import signal
import subprocess
import termios
import time

import harness
from harness import CUDABPF, LIBRARY, WORKLOADS, wait_for

STORM = [f"{WORKLOADS}/fake_storm", "--library", LIBRARY, "--rate", "2000", "--count", "4000"]  # two seconds


class Live(harness.LiveTest):
    def start_run(self, *flags, command=None, **options):
        program = self.start_cudabpf("run", "-o", self.path, "--profile", "full", "--library", LIBRARY, *flags, "--",
                                     *(command or STORM), **options)
        wait_for(lambda: any(r.counts.get("cuLaunchKernel") for r in self.records().values()), "calling")
        return program

    def storm(self):
        record = self.record()
        self.assertEqual(record.counts["cuLaunchKernel"], 4000)
        return record

    def check_part(self, trace):
        """What was traced until then is complete, and less than everything. The thread may have been in its last call, without a CPU."""
        launches = trace.named("cuLaunchKernel")
        self.assertTrue(0 < len(launches) < 4000)
        self.check_law(trace, under_way=launches[-1:])
        self.assertEqual(trace.counts()["cuModuleGetFunction"], 1)

    def test_interrupt(self):
        """SIGINT to cudabpf alone ends the trace at once; the command goes on."""
        tracer = self.start_run()
        tracer.signal(signal.SIGINT)
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        trace = self.read()
        self.check_part(trace)
        self.assertEqual(trace.end["reason"], "interrupted")
        self.assertNotIn("command_status", trace.end)
        self.check_gone()
        wait_for(lambda: self.record().counts["cuLaunchKernel"] == 4000, "finished")

    def test_terminate(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            self.setUp()
            tracer = self.start_run()
            tracer.signal(number)
            self.assertEqual(tracer.wait(), 0, tracer.stderr())
            trace = self.read()
            self.check_part(trace)
            self.assertEqual(trace.end["reason"], "terminated")
            self.check_gone()
            wait_for(lambda: self.record().counts["cuLaunchKernel"] == 4000, "finished")

    def test_signal_to_all(self):
        """As timeout(1) and batch systems end a job: the status is that of the command, which the signal ended."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            self.setUp()
            tracer = self.start_cudabpf("run", "-o", self.path, "--library", LIBRARY, "--", *harness.calls("setup; malloc a 4K; print ready; read"),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
            self.assertEqual(tracer.process.stdout.readline(), b"ready\n")
            os.killpg(tracer.pid, number)
            self.assertEqual(tracer.wait(), 128 + number, tracer.stderr())
            trace = self.read()
            self.check_law(trace)
            self.assertEqual(trace.end["command_status"], 128 + number)
            self.assertEqual(len(trace.named("cuMemAlloc_v2")), 1)
            self.check_gone()

    def test_quit_key(self):
        """It is for the command, as Ctrl-C is, even if it has ended the command before cudabpf sees the key."""
        pid, terminal = self.terminal(CUDABPF, "run", "-o", self.path, "--library", LIBRARY, "--", *STORM)
        wait_for(lambda: any(r.counts.get("cuLaunchKernel") for r in self.records().values()), "calling")
        command, = self.records()
        os.kill(pid, signal.SIGSTOP)
        os.write(terminal, b"\x1c")
        wait_for(lambda: harness.ended(command), "a command that has ended")
        os.kill(pid, signal.SIGCONT)
        status, text = self.wait_pid(pid, terminal)
        self.assertEqual(status, 128 + signal.SIGQUIT, text)
        trace = self.read()
        self.check_accounts(trace)
        self.assertEqual(trace.end["losses"], {}, trace.lost)
        self.assertEqual([call for call in trace.calls if "ret" not in call and "unfinished" not in call], [])
        self.assertEqual((trace.end["reason"], trace.end["command_status"]), ("command ended", 128 + signal.SIGQUIT))

    def terminal(self, *command):
        """A terminal with cudabpf and its command in the foreground: (program, the terminal's other end)."""
        primary, replica = os.openpty()
        self.addCleanup(os.close, primary)
        command = self.by_way(command)
        pid = os.fork()
        if pid == 0:
            harness.become_user()
            os.setsid()
            fcntl.ioctl(replica, termios.TIOCSCTTY, 0)
            for fd in range(3):
                os.dup2(replica, fd)
            os.execve(command[0], command, self.environment())
        os.close(replica)
        return pid, primary

    def wait_pid(self, pid, primary):
        """Its status and what it wrote to the terminal."""
        os.set_blocking(primary, False)
        text = b""
        end = time.monotonic() + harness.PATIENCE
        while time.monotonic() < end:
            try:
                text += os.read(primary, 65536)
            except OSError:
                pass
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status), text.decode(errors="replace")
            time.sleep(0.02)
        os.kill(pid, signal.SIGKILL)
        raise AssertionError(f"cudabpf still runs: {text}")

    def test_ctrl_c(self):
        """A single Ctrl-C is for the command, and the trace ends with the command, whatever that does with it."""
        pid, terminal = self.terminal(CUDABPF, "run", "-o", self.path, "--library", LIBRARY, "--", *STORM)
        wait_for(lambda: any(r.counts.get("cuLaunchKernel") for r in self.records().values()), "calling")
        os.write(terminal, b"\x03")
        status, text = self.wait_pid(pid, terminal)
        self.assertEqual(status, 0, text)  # fake_storm ends well at SIGINT
        self.assertIn("calls=", text)
        trace = self.read()
        self.check_law(trace)
        self.assertEqual((trace.end["reason"], trace.end["command_status"]), ("command ended", 0))
        launches = self.record().counts["cuLaunchKernel"]
        self.assertTrue(0 < launches < 4000)
        self.assertEqual(len(trace.named("cuLaunchKernel")), launches)

    def test_ctrl_c_twice(self):
        """A command that ignores it: the second Ctrl-C ends the trace, and the command lives."""
        pid, terminal = self.terminal(CUDABPF, "run", "-o", self.path, "--library", LIBRARY, "--",
                                      "python3", "-c",
                                      "import signal, sys, os; signal.signal(signal.SIGINT, signal.SIG_IGN); "
                                      f"os.execv({WORKLOADS + '/fake_calls'!r}, ['fake_calls', '--library', {LIBRARY!r}, "
                                      "'setup; loop 1500 { sync; sleep 10 }'])")
        wait_for(lambda: any(r.counts.get("cuStreamSynchronize") for r in self.records().values()), "calling")
        os.write(terminal, b"\x03")
        text = b""
        while b"Ctrl-C again" not in text:
            text += os.read(terminal, 65536)
        self.assertEqual(os.waitpid(pid, os.WNOHANG)[0], 0)
        before = self.record().counts["cuStreamSynchronize"]
        os.write(terminal, b"\x03")
        status, rest = self.wait_pid(pid, terminal)
        self.assertEqual(status, 0, rest)
        trace = self.read()
        self.check_law(trace)
        self.assertEqual(trace.end["reason"], "interrupted")
        self.assertGreaterEqual(len(trace.named("cuStreamSynchronize")), before)

    def test_kill_cudabpf(self):
        """kill -9: nothing stays in the kernel, the command ends by itself, the trace consists of whole lines."""
        tracer = self.start_run()
        wait_for(lambda: os.path.getsize(self.path) > 20000, "a longer trace")
        command = self.record().pid
        os.kill(command, signal.SIGSTOP)  # it makes no calls while the test looks for what is left in the kernel
        tracer.signal(signal.SIGKILL)
        tracer.wait()
        self.check_gone()
        before = self.record().counts["cuLaunchKernel"]
        self.assertLess(before, 4000)
        os.kill(command, signal.SIGCONT)
        wait_for(lambda: self.record().counts["cuLaunchKernel"] == 4000, "finished")
        self.assertEqual([call for call in self.record().calls if call["ret"]], [])
        trace = self.read(whole=False)
        self.assertIsNone(trace.end)
        self.assertEqual(trace.header["type"], "trace")
        launches = trace.named("cuLaunchKernel")
        self.assertTrue(0 < len(launches) < 4000)
        self.assertEqual([call["ret"] for call in launches], [0] * len(launches))

    def test_kill_command(self):
        tracer = self.start_run()
        os.kill(self.record().pid, signal.SIGKILL)
        self.assertEqual(tracer.wait(), 128 + signal.SIGKILL, tracer.stderr())
        trace = self.read()
        self.check_accounts(trace)
        self.assertEqual((trace.end["command_status"], trace.end["reason"]), (137, "command ended"))
        self.assertEqual(trace.end["losses"], {})
        calls = self.record().counts["cuLaunchKernel"]
        self.assertLessEqual(abs(len(trace.named("cuLaunchKernel")) - calls), 1)
        self.assertEqual(trace.process("exit", self.record().pid)[0]["signal"], signal.SIGKILL)
        self.check_gone()

    def test_children_outlive(self):
        """The command ends, its child runs on: it is traced until it ends, too."""
        calls = shlex.join([f"{WORKLOADS}/fake_calls", "--library", LIBRARY])
        trace = self.traced(["sh", "-c", f"{calls} 'setup; sleep 700; malloc a 1' & exit 5"], "--library", LIBRARY,
                            status=5)
        self.check_whole(trace)
        self.assertEqual(len(trace.named("cuMemAlloc_v2")), 1)
        self.assertEqual(len([p for p in trace.processes if p["op"] == "exit"]), 2 if harness.BY_BPF else 1)  # a shell makes no calls
        self.assertIn("1 of its children is still running", self.stderr)

    def test_stopped_and_continued(self):
        """SIGSTOP and SIGCONT for the command end nothing."""
        tracer = self.start_run()
        pid = self.record().pid
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.5)
        self.assertIsNone(tracer.process.poll())
        os.kill(pid, signal.SIGCONT)
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        self.check_whole(self.read())
        self.storm()

    def test_nothing_left_behind(self):
        self.script("setup; malloc a 1")
        self.check_gone()


if __name__ == "__main__":
    harness.main()
