"""The traced command is the same as without cudabpf: its status, its streams, its user, its environment."""
import json
import os
import platform
import shutil
import signal

import subprocess
import sys

import callers
import harness
from callers import NOBODY
from harness import CUDABPF, LIBRARY, WORKLOADS, wait_for

# Everything that a program may inherit, as JSON.
INHERITED = """
import json, os, resource, signal, sys
print(json.dumps({
    "ids": [os.getresuid(), os.getresgid(), os.getgroups()], "cwd": os.getcwd(), "umask": os.umask(0),
    "session": [os.getsid(0) == os.getsid(os.getppid()), os.getpgrp() == os.getpgid(os.getppid())],
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "ignored": [n for n in range(1, 65) if n not in (32, 33) and signal.getsignal(n) == signal.SIG_IGN],
    "limits": [resource.getrlimit(getattr(resource, n)) for n in sorted(dir(resource)) if n.startswith("RLIMIT_")],
    "files": sorted(int(f) for f in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + f)),
    "nice": os.nice(0), "affinity": sorted(os.sched_getaffinity(0)), "environment": dict(os.environ)}))
"""


class Live(callers.CalledTest):
    def run_command(self, *command, flags=(), **options):
        """With a library, since its absence would be a warning, and hardly any probes, which take time."""
        return self.run_cudabpf("run", "-q", "-o", self.path, "--library", LIBRARY, "--only", "cuInit", *flags, "--",
                                *command, **options)

    def test_arguments(self):
        """The command gets every argument as it was given, also those that look like lists or options."""
        given = ["", "[1, 2]", "[[\"a\"], []]", "[", "[]", "[x]\1", "--", "-o", "a b", "{}", "--only=[c]"]
        done = self.run_command(harness.PYTHON, "-c", "import json, sys; print(json.dumps(sys.argv[1:]))", *given)
        self.assertEqual(json.loads(done.stdout), given, done.stderr)

    def test_exit_status(self):
        for status in (0, 1, 77, 124, 126, 255):
            done = self.run_command("sh", "-c", f"exit {status}")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (status, b"", b""))
            trace = self.read()
            self.assertEqual((trace.end["command_status"], trace.calls), (status, []))

    def test_signals(self):
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGINT, signal.SIGUSR1):
            done = self.run_command("sh", "-c", f"kill -{int(number)} $$")
            self.assertEqual(done.returncode, 128 + number, done.stderr)
            trace = self.read()
            self.assertEqual(trace.end["command_status"], 128 + number)
            if not harness.INSIDE:  # a process that makes no CUDA calls is not in such a trace
                self.assertEqual([p.get("signal") for p in trace.processes if p["op"] == "exit"], [number])

    def test_not_found(self):
        for command, words in (("no-such-command-at-all", "command not found"), ("/no/such/file", "No such file")):
            done = self.run_command(command)
            self.assertEqual(done.returncode, 127, done.stderr)
            self.assertIn(words, done.stderr.decode())
            self.assertIn(command, done.stderr.decode())
            self.assertIn("PATH", done.stderr.decode())
        script = f"{self.folder}/script"
        with open(script, "w", encoding="utf-8") as file:
            file.write("#!/no/such/interpreter\n")
        os.chmod(script, 0o755)
        done = self.run_command(script)
        self.assertEqual(done.returncode, 127, done.stderr)
        self.assertIn("interpreter", done.stderr.decode())

    def test_not_executable(self):
        plain = f"{self.folder}/plain"
        with open(plain, "w", encoding="utf-8") as file:
            file.write("text\n")
        for command in (plain, self.folder):
            done = self.run_command(command)
            self.assertEqual(done.returncode, 126, done.stderr)
            self.assertIn("cannot execute", done.stderr.decode())
        os.chmod(plain, 0o755)
        self.assertEqual(self.run_command(plain).returncode, 126)  # not a format that the kernel knows

    def test_streams(self):
        """Byte for byte, both ways, even if there is much of it and it is not text."""
        data = bytes(range(256)) * 8192 + b"\0\xff no newline"
        copy = "import sys; d = sys.stdin.buffer.read(); sys.stdout.buffer.write(d); sys.stderr.buffer.write(d[::-1])"
        done = self.run_command(harness.PYTHON, "-c", copy, stdin=None, input=data)
        self.assertEqual(done.returncode, 0)
        self.assertTrue(done.stdout == data, "stdout")  # without a diff, which would take hours
        self.assertTrue(done.stderr == data[::-1], "stderr")

    def test_inherited(self):
        """Directory, signals, limits, open files, environment: the same with cudabpf and without."""
        def prepare():
            signal.signal(signal.SIGUSR2, signal.SIG_IGN)
            os.umask(0o027)
        env = self.environment(LOG=None, COUNTS=None)
        env.update({"EMPTY": "", "WITH SPACE": "x\ny", "LC_ALL": "C.UTF-8"})
        with open("/dev/null", "rb") as extra:
            options = {"cwd": self.folder, "env": env, "preexec_fn": prepare, "pass_fds": [extra.fileno()]}
            plain = subprocess.run([harness.PYTHON, "-c", INHERITED], check=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options, **harness.AS_USER)
            traced = self.run_command(harness.PYTHON, "-c", INHERITED, **options)
        self.assertEqual(traced.returncode, 0, traced.stderr)
        found, wanted = json.loads(traced.stdout), json.loads(plain.stdout)
        if harness.INSIDE:  # by which libcuda, NVTX, and then the library find their way
            for variable in ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"):
                self.assertEqual(found["environment"].pop(variable), harness.INSIDE_LIBRARY)
            del found["environment"]["CUDABPF_LISTENER"]
        for key, value in wanted.items():
            self.assertEqual(found[key], value, key)

    def test_inherited_signals(self):
        """Which signals are blocked and ignored, including SIGPIPE, which cudabpf ignores for itself."""
        def prepare():
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH])
        command = ["grep", "-E", "^Sig(Blk|Ign):", "/proc/self/status"]
        options = {"preexec_fn": prepare, "restore_signals": False}
        plain = subprocess.run(command, check=True, stdout=subprocess.PIPE, **options)
        self.assertEqual(self.run_command(*command, **options).stdout.decode(), plain.stdout.decode())

    def test_path(self):
        """Found as a shell finds it, even if PATH has relative and empty folders."""
        os.mkdir(f"{self.folder}/bin")
        tool = f"{self.folder}/bin/tool"
        with open(tool, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho found \"$@\"\n")
        os.chmod(tool, 0o755)
        for path in (f"{self.folder}/bin:/usr/bin:/bin", "bin:/usr/bin:/bin", "/nowhere:/usr/bin:/bin:bin"):
            done = self.run_command("tool", "-o", "--", "x y", cwd=self.folder, env=dict(os.environ, PATH=path))
            self.assertEqual((done.returncode, done.stdout), (0, b"found -o -- x y\n"), done.stderr)
        os.mkdir(f"{self.folder}/first")
        with open(f"{self.folder}/first/tool", "w", encoding="utf-8") as file:
            file.write("not executable\n")
        for command, path in (("./tool", "/usr/bin:/bin"), ("tool", ":/usr/bin:/bin"), ("tool", "/usr/bin::/bin"),
                              ("tool", "../first:/usr/bin:/bin:../bin")):
            done = self.run_command(command, cwd=f"{self.folder}/bin", env=dict(os.environ, PATH=path))
            self.assertEqual((done.returncode, done.stdout), (0, b"found\n"), done.stderr)

    # --- as another user

    def test_sudo(self):
        """The command runs as the user who called sudo, in that user's environment; the trace belongs to that user."""
        venv = f"{self.folder}/venv"
        os.mkdir(venv)
        env = self.environment(LOG=None)
        env.update({"VIRTUAL_ENV": venv, "PATH": f"{venv}:/usr/bin:/bin", "LD_LIBRARY_PATH": f"{self.folder}/libs",
                    "CUDA_VISIBLE_DEVICES": "3", "PYTHONPATH": "/somewhere", "HOME": "/nonexistent"})
        python = f"{venv}/python-of-the-venv"
        os.symlink(shutil.which("python3", path="/usr/bin:/bin") or sys.executable, python)
        done = self.sudo("run", "-q", "--library", LIBRARY, "--", "python-of-the-venv", "-S", "-c", INHERITED, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual(found["ids"][:2], [[NOBODY.pw_uid] * 3, [NOBODY.pw_gid] * 3])
        self.assertNotIn(0, found["ids"][2])
        for name in ("VIRTUAL_ENV", "PATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "PYTHONPATH", "HOME",
                     "FAKE_CUDA_COUNTS"):
            self.assertEqual(found["environment"].get(name), env[name], name)
        traces = os.listdir(f"{self.folder}/traces")
        self.assertEqual(len(traces), 1)
        for path in (f"{self.folder}/traces", f"{self.folder}/traces/{traces[0]}"):
            self.assertEqual((os.stat(path).st_uid, os.stat(path).st_gid), (NOBODY.pw_uid, NOBODY.pw_gid))
        trace = self.read(f"{self.folder}/traces/{traces[0]}")
        self.assertEqual({p["uid"] for p in trace.processes}, {NOBODY.pw_uid})

    def test_sudo_calls(self):
        """The whole way: a user's program, whose library is found only through the user's LD_LIBRARY_PATH."""
        libs = f"{self.folder}/libs"
        os.mkdir(libs)
        shutil.copy(LIBRARY, f"{libs}/libcuda.so.1")
        shutil.copy(f"{WORKLOADS}/fake_calls", f"{self.folder}/fake_calls")
        env = self.environment()
        env["LD_LIBRARY_PATH"] = libs
        done = self.sudo("run", "-o", self.path, "--profile", "full", "--", f"{self.folder}/fake_calls", "--library",
                         "libcuda.so.1", "setup; malloc a 4K; free a", env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        trace = self.read()
        self.check_whole(trace)
        self.assertIn(f"{libs}/libcuda.so.1", [library["path"] for library in trace.header["libraries"]])

    def test_as_root_and_user(self):
        ask = "import os; print(os.getuid(), os.getgid())"
        done = self.sudo("run", "-q", "--as-root", "-o", self.path, "--", "python3", "-S", "-c", ask)
        self.assertEqual(done.stdout, b"0 0\n", done.stderr)
        for name in ("nobody", str(NOBODY.pw_uid)):
            done = self.run_command("/usr/bin/env", "python3", "-S", "-c", ask, flags=["--user", name],
                                    env=dict(self.environment(), PATH="/usr/bin:/bin"))
            self.assertEqual(done.stdout.decode(), f"{NOBODY.pw_uid} {NOBODY.pw_gid}\n", done.stderr)

    def test_not_root(self):
        """Says which capabilities it lacks, and starts nothing; only on x86-64 a command can be traced all the same."""
        program = self.program_for_all()
        command = ["run", "-o", f"{self.folder}/t", "--", "touch", f"{self.folder}/ran"]
        if platform.machine() == "x86_64":
            command[1:1] = ["--no-feature", "uprobe_multi"]
        for arguments in (command, ["attach", "--pid", "1"], ["--duration", "1s"]):
            done = subprocess.run([program, *arguments], check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  user=NOBODY.pw_uid, group=NOBODY.pw_gid, extra_groups=[], cwd=self.folder)
            self.assertEqual(done.returncode, 120, done.stderr)
            self.assertRegex(done.stderr.decode(), r"CAP_BPF.*CAP_PERFMON")
            self.assertIn("sudo", done.stderr.decode())
        self.assertEqual(sorted(os.listdir(self.folder)), ["for-all", "record"])

    def start_one_probe_at_a_time(self):
        """The tracer, which is about to put its probes in place one by one, and its command, which waits meanwhile."""
        tracer = self.start([CUDABPF, "run", "-o", self.path, "--profile", "full", "--library", LIBRARY,
                             "--no-feature", "uprobe_multi", "--", "touch", f"{self.folder}/ran"])
        children = f"/proc/{tracer.pid}/task/{tracer.pid}/children"

        def child():
            with open(children, encoding="utf-8") as file:
                return file.read().split()
        return tracer, int(wait_for(child, "a child")[0])

    def check_given_up(self, reason):
        trace = self.read()
        self.check_law(trace)
        self.assertEqual(trace.end["reason"], reason)
        given_up = {library.get("error") for library in trace.header["libraries"] if library["path"] == LIBRARY}
        self.assertEqual(given_up, {"the trace ended before its probes were in place"})
        return trace

    def test_killed_before_it_begins(self):
        """Killed while its probes are put in place: its status is the signal's, and the trace is in order."""
        tracer, command = self.start_one_probe_at_a_time()
        os.kill(command, signal.SIGKILL)
        self.assertEqual(tracer.wait(60), 128 + signal.SIGKILL, tracer.stderr())
        self.assertFalse(os.path.exists(f"{self.folder}/ran"))
        trace = self.check_given_up("command ended")
        self.assertEqual(trace.end["command_status"], 128 + signal.SIGKILL)

    def test_ended_before_it_begins(self):
        """A signal does not wait for the probes of all functions."""
        tracer, _ = self.start_one_probe_at_a_time()
        tracer.signal(signal.SIGTERM)
        tracer.wait(60)
        self.check_given_up("terminated")

    def test_waits_for_nobody(self):
        """A command that leaves its streams open in the background does not keep cudabpf from ending."""
        program = self.start([CUDABPF, "run", "-q", "--no-follow", "-o", self.path, "--", "sh", "-c",
                              "sleep 20 & echo $! >pid"], cwd=self.folder)
        self.assertEqual(program.wait(10), 0)
        with open(wait_for(lambda: os.path.exists(f"{self.folder}/pid") and f"{self.folder}/pid", "written"),
                  encoding="utf-8") as file:
            os.kill(int(file.read()), signal.SIGKILL)


if __name__ == "__main__":
    harness.main()
