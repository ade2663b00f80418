"""Which user's rights are used for what: files are made with the caller's, and what tracing needs is set aside."""
import glob
import json
import os
import pwd
import shutil
import signal
import subprocess

import callers
import harness
import machine
from callers import NOBODY
from harness import CUDABPF, LIBRARY, WORKLOADS, wait_for

DAEMON = pwd.getpwnam("daemon")
# What a late library needs: CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_PERFMON, CAP_BPF, CAP_CHECKPOINT_RESTORE.
KEPT = 1 << 2 | 1 << 19 | 1 << 38 | 1 << 39 | 1 << 40
SYS_PTRACE = 1 << 19
ROOTS_FILE_RIGHTS = 1 << 1 | 1 << 2 | 1 << 3
ALL = "setup; module m; function f m add; malloc a 4K; launch f 1 2 3 4 5 6 7; sync; free a"
SHOW_RIGHTS = ("grep -E '^(Uid|Gid|Groups|Cap...|NoNewPrivs|Seccomp):' /proc/self/status; "
        "setpriv --dump 2>/dev/null | grep -i securebits; stat -c %u /proc/self/mem")
# Prints as JSON the identity and environment that a command finds.
IDENTITY = ("import json, os; print(json.dumps({'ids': [os.getresuid(), os.getresgid()], 'environment': dict(os.environ), "
       "'mine': os.stat('/proc/self/mem').st_uid == os.getuid()}))")


def status_of(path):
    with open(f"{path}/status", encoding="utf-8") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


class Live(callers.CalledTest):
    def users_environment(self):
        """What one user has, and another must not get."""
        return dict(self.environment(LOG=None), PATH=f"{self.folder}/bin:/usr/bin:/bin", LD_LIBRARY_PATH="/users/libraries",
                    PYTHONPATH="/users/python", CUDA_VISIBLE_DEVICES="3")

    def found_by_command(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout[done.stdout.index(b"{"):])

    def check_root_without_users_environment(self, found):
        self.assertEqual(found["ids"], [[0, 0, 0], [0, 0, 0]])
        for name in ("LD_LIBRARY_PATH", "PYTHONPATH", "CUDA_VISIBLE_DEVICES", "LD_PRELOAD"):
            self.assertNotIn(name, found["environment"])
        self.assertNotIn(self.folder, found["environment"]["PATH"])

    def check_nobody_and_own_environment(self, found, env):
        self.assertEqual(found["ids"], [[NOBODY.pw_uid] * 3, [NOBODY.pw_gid] * 3])
        for name in ("LD_LIBRARY_PATH", "PYTHONPATH", "CUDA_VISIBLE_DEVICES", "PATH"):
            self.assertEqual(found["environment"].get(name), env[name], name)

    def command(self, *flags):
        return [self.program_for_all(), "run", "-q", "-o", self.path, "--library", LIBRARY, "--only", "cuInit", *flags,
                "--", "/usr/bin/python3", "-S", "-c", IDENTITY]

    # --- who called, and with what environment

    def test_sudo_of_root(self):
        """A user who became root by one sudo, and calls another as root, is root: nothing of the user's is left."""
        shell = 'sudo -n "$@"; exit $?'
        done = self.call(self.by_user("sudo", "-n", "bash", "-c", shell, "-", *self.command()), self.users_environment())
        self.check_root_without_users_environment(self.found_by_command(done))
        self.assertEqual(os.stat(self.path).st_uid, 0)

    def test_as_root_environment(self):
        """What sudo removed from a user's environment does not come back for root."""
        env = dict(self.users_environment(), LD_PRELOAD="/nonexistent/library.so")
        found = self.found_by_command(self.call(self.by_user("sudo", "-n", *self.command("--as-root")), env))
        self.check_root_without_users_environment(found)
        self.assertEqual(found["environment"]["SUDO_USER"], "nobody")
        self.assertEqual(os.stat(self.path).st_uid, NOBODY.pw_uid)

    def test_another_user_environment(self):
        env = self.users_environment()
        found = self.found_by_command(self.call(self.by_user("sudo", "-n", *self.command("--user", "daemon")), env))
        self.assertEqual(found["ids"], [[DAEMON.pw_uid] * 3, [DAEMON.pw_gid] * 3])
        for name in ("LD_LIBRARY_PATH", "PYTHONPATH", "CUDA_VISIBLE_DEVICES"):
            self.assertNotIn(name, found["environment"])
        found = self.found_by_command(self.call(self.by_user("sudo", "-n", *self.command("--user", "nobody")), env))
        self.check_nobody_and_own_environment(found, env)

    def test_ways_of_sudo(self):
        """From a shell that sudo started, with -E, on sudo's own terminal, under a sudo that does not stay."""
        env = self.users_environment()
        ways = {"plain": ["sudo", "-n"], "shell": ["sudo", "-n", "sh", "-c", '"$0" "$@"; exit $?'],
                "keeping": ["sudo", "-n", "-E"]}
        for name, way in ways.items():
            with self.subTest(name):
                found = self.found_by_command(self.call(self.by_user(*way, *self.command()), env))
                self.check_nobody_and_own_environment(found, env)
                self.assertEqual(os.stat(self.path).st_uid, NOBODY.pw_uid)

    def test_sudo_terminal(self):
        """use_pty: there is another process of sudo's between sudo and its command."""
        if not shutil.which("script"):
            self.skipTest("script is not installed")
        env = self.users_environment()
        command = self.by_user("sudo", "-n", *self.command(), defaults="Defaults use_pty")
        line = " ".join("'" + a.replace("'", "'\\''") + "'" for a in command)
        done = self.call(["script", "-qec", line, "/dev/null"], dict(env, SHELL="/bin/bash"))
        self.check_nobody_and_own_environment(self.found_by_command(done), env)

    def test_sudo_of_another(self):
        """From a user's sudo, root's shell became another user, who became root without sudo: not that user's call."""
        shell = f"{self.folder}/root-shell"  # takes the place of su and doas
        shutil.copy("/bin/bash", shell)
        os.chmod(shell, 0o4755)
        if os.statvfs(self.folder).f_flag & os.ST_NOSUID:
            self.skipTest(f"{self.folder} is mounted nosuid")
        inner = self.command()
        become_root = 'setpriv --reuid 0 --regid 0 --clear-groups "$@"; exit $?'
        become_daemon = (f'setpriv --reuid {DAEMON.pw_uid} --regid {DAEMON.pw_gid} --clear-groups '
                         f"{shell} -p -c '{become_root}' - \"$@\"; exit $?")
        done = self.call(self.by_user("sudo", "-n", "bash", "-c", become_daemon, "-", *inner), self.users_environment())
        found = self.found_by_command(done)
        self.check_root_without_users_environment(found)
        self.assertEqual(found["environment"]["SUDO_UID"], str(NOBODY.pw_uid))
        self.assertEqual(os.stat(self.path).st_uid, 0)

    # --- files

    def roots_folder(self):
        folder = f"{self.folder}/roots"
        os.mkdir(folder)
        os.chmod(folder, 0o755)
        return folder

    def test_link_to_roots_folder(self):
        """Neither a trace nor an export goes where the caller could not have put it."""
        folder = self.roots_folder()
        with open(f"{folder}/precious", "w", encoding="utf-8") as file:
            file.write("precious")
        os.symlink(folder, f"{self.folder}/traces")
        trace = self.script(ALL)
        self.assertTrue(trace.calls)
        for arguments in (["run", "-q", "--library", LIBRARY, "--only", "cuInit", "--", "true"],
                          ["run", "-q", "-o", "traces/precious", "--library", LIBRARY, "--only", "cuInit", "--", "true"],
                          ["export", self.path, "--format", "csv", "-o", "traces/precious"],
                          ["export", self.path, "--format", "all", "-o", "traces"],
                          ["export", self.path, "--format", "alnair", "-o", "traces/new"],
                          ["memory", self.path, "--svg", "traces/precious"],
                          ["timeline", self.path, "--svg", "traces/new.svg"]):
            with self.subTest(arguments):
                done = self.sudo(*arguments)
                self.assertEqual(done.returncode, 124, done.stderr)
                self.assertIn(b"Permission denied", done.stderr)
                self.assertEqual(os.listdir(folder), ["precious"])
        with open(f"{folder}/precious", encoding="utf-8") as file:
            self.assertEqual(file.read(), "precious")

    def test_link_before_root(self):
        """In another user's folder, root follows its own link, but none of that user's."""
        folder = self.roots_folder()
        arguments = ["run", "-q", "--library", LIBRARY, "--only", "cuInit", "--", "true"]
        os.symlink(folder, f"{self.folder}/traces")
        os.chown(f"{self.folder}/traces", NOBODY.pw_uid, NOBODY.pw_gid, follow_symlinks=False)
        done = self.run_cudabpf(*arguments, cwd=self.folder)
        self.assertEqual(done.returncode, 124, done.stderr)
        self.assertIn("link", done.stderr.decode())
        self.assertEqual(os.listdir(folder), [])
        os.unlink(f"{self.folder}/traces")
        os.symlink(folder, f"{self.folder}/traces")
        self.assertEqual(self.run_cudabpf(*arguments, cwd=self.folder).returncode, 0)
        self.assertEqual(len(os.listdir(folder)), 1)

    def test_private_folder(self):
        """A user's own folder, which no other user may enter: the user's own rights suffice, and are those used."""
        home = f"{self.folder}/home"
        os.mkdir(home)
        os.chown(home, NOBODY.pw_uid, NOBODY.pw_gid)
        os.chmod(home, 0o700)
        for output in ("t.jsonl", f"{home}/u.jsonl.zst"):
            done = self.sudo("run", "-q", "-o", output, "--library", LIBRARY, "--only", "cuInit", "--", "true", cwd=home)
            self.assertEqual(done.returncode, 0, done.stderr)
        done = self.sudo("run", "-q", "--rotate-time", "1s", "--library", LIBRARY, "--only", "cuInit", "--", "sleep", "2",
                         cwd=home)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.sudo("export", "t.jsonl", "--format", "csv", cwd=home)
        self.assertEqual(done.returncode, 0, done.stderr)
        made = glob.glob(f"{home}/**", recursive=True)
        self.assertGreater(len(made), 6, made)
        for path in made:
            owner = os.stat(path)
            self.assertEqual((owner.st_uid, owner.st_gid), (NOBODY.pw_uid, NOBODY.pw_gid), path)

    def test_streams_by_name(self):
        """/dev/stdout and /dev/fd/N are what the caller has open there, even if it is another user's pipe."""
        arguments = ["run", "-q", "--library", LIBRARY, "--only", "cuInit", "--", "true"]
        done = self.sudo(arguments[0], "-o", "/dev/stdout", *arguments[1:])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(harness.Trace(done.stdout.decode()).end)
        with open(f"{self.folder}/shared", "w+b") as file:
            file.write(b"before\n")
            file.flush()
            for path in (f"/dev/fd/{file.fileno()}", f"/proc/self/fd/{file.fileno()}"):
                done = self.run_cudabpf(arguments[0], "-o", path, *arguments[1:], pass_fds=[file.fileno()])
                self.assertEqual(done.returncode, 0, done.stderr)
            file.seek(0)
            before, rest = file.read().split(b"\n", 1)
        self.assertEqual(before, b"before")
        self.assertEqual(rest.count(b'"type":"trace"'), 2)
        done = self.run_cudabpf(arguments[0], "-o", "/dev/fd/77", *arguments[1:])
        self.assertEqual(done.returncode, 124, done.stderr)

    def test_reading_through_sudo(self):
        """A trace that only root may read can be analysed, and files made from it belong to the caller."""
        self.script(ALL)
        os.chmod(self.path, 0o600)
        self.assertNotEqual(self.call(self.plain_user("cat", self.path)).returncode, 0)
        done = self.sudo("summary", self.path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"calls of 1 process", done.stdout)
        done = self.sudo("diff", self.path, self.path)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.sudo("export", self.path, "--format", "csv", "-o", "out.csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.stat(f"{self.folder}/out.csv").st_uid, NOBODY.pw_uid)

    # --- what is kept

    def tracing(self, command):
        """The tracer's process, once it traces."""
        program = self.start(command, cwd=self.folder)
        wait_for(lambda: program.process.poll() is not None or os.path.exists(self.path) and os.path.getsize(self.path),
                 "a header")
        self.assertIsNone(program.process.poll(), program.stderr())
        tracers = [path for path in glob.glob("/proc/[0-9]*") if self.is_tracer(path)]
        self.assertEqual(len(tracers), 1, tracers)
        return program, tracers[0]

    def is_tracer(self, path):
        try:
            with open(f"{path}/cmdline", "rb") as file:
                arguments = file.read().split(b"\0")
            with open(f"{path}/comm", encoding="utf-8") as file:
                return file.read() == "cudabpf\n" and self.path.encode() in arguments
        except OSError:
            return False

    def check_kept(self, tracer, uid, own):
        def threads():
            return [status_of(path) for path in glob.glob(f"{tracer}/task/*")]
        # A right is in effect for a moment wherever a program maps a library.
        wait_for(lambda: not any(int(status["CapEff"], 16) & ~own & ~SYS_PTRACE for status in threads()), "no right in effect")
        self.assertGreaterEqual(len(threads()), 3)
        for status in threads():
            self.assertEqual(status["Uid"].split("\t"), [str(uid)] * 4)
            self.assertEqual((status["NoNewPrivs"], status["CapInh"], status["CapAmb"], status["CapBnd"]),
                             ("1", "0" * 16, "0" * 16, "0" * 16))
        # The reader may look into /proc, the writer may write.
        self.assertEqual({int(status["CapPrm"], 16) for status in threads()}, {KEPT | own, SYS_PTRACE, own, 0})

    def test_kept_by_sudo(self):
        """Once it traces, the process runs as the user, with few rights left, and keeps its secrets from the user."""
        command = [self.program_for_all(), "-q", "-o", self.path, "--library", LIBRARY, "--only", "cuInit"]
        program, tracer = self.tracing(self.by_user("sudo", "-n", *command))
        self.check_kept(tracer, NOBODY.pw_uid, 0)
        pid = int(os.path.basename(tracer))
        attach = ("import ctypes; libc = ctypes.CDLL(None, use_errno=True); "
                  f"print(libc.ptrace(16, {pid}, None, None), ctypes.get_errno())")
        done = self.call(self.plain_user("/usr/bin/python3", "-S", "-c", attach))
        self.assertEqual(done.stdout, b"-1 1\n", done.stderr)
        done = self.call(self.plain_user("cat", f"/proc/{pid}/environ"))
        self.assertIn(b"Permission denied", done.stderr)
        # The user may end it.
        self.assertEqual(self.call(self.plain_user("kill", "-INT", pid)).returncode, 0)
        self.assertEqual(program.wait(), 0, program.stderr())
        self.assertEqual(self.read().end["reason"], "interrupted")

    def test_kept_by_root(self):
        program, tracer = self.tracing([CUDABPF, "-q", "-o", self.path, "--library", LIBRARY, "--only", "cuInit"])
        self.check_kept(tracer, 0, ROOTS_FILE_RIGHTS)
        program.signal(signal.SIGINT)
        self.assertEqual(program.wait(), 0, program.stderr())

    def test_root_writes_anywhere(self):
        """Root keeps root's own rights to files, including those to other users' folders."""
        os.chown(self.folder, NOBODY.pw_uid, NOBODY.pw_gid)
        os.chmod(self.folder, 0o700)
        done = self.run_cudabpf("run", "-q", "-o", self.path, "--library", LIBRARY, "--only", "cuInit", "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.stat(self.path).st_uid, 0)

    def late_library(self, command, flags=()):
        """Root's program maps root's library, from a folder that only root may enter, after all rights are dropped."""
        private = f"{self.folder}/private"
        os.mkdir(private)
        shutil.copy(LIBRARY, f"{private}/libcuda.so.1")
        os.chmod(private, 0o700)
        tracer = self.start([*command, "-o", self.path, "--profile", "full", *flags], cwd=self.folder)
        wait_for(lambda: tracer.process.poll() is not None or os.path.exists(self.path) and os.path.getsize(self.path),
                 "a header")
        program = self.start([f"{WORKLOADS}/fake_calls", "--library", f"{private}/libcuda.so.1",
                              "setup; print ready; read; loop 50 { sync }; print done; read"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(program.process.stdout.readline(), b"ready\n", program.stderr())

        def traced(what):
            with open(self.path, encoding="utf-8") as file:
                return what in file.read()
        wait_for(lambda: traced('"type":"library"'), "the late library in the trace")
        program.send_line()
        self.assertEqual(program.process.stdout.readline(), b"done\n", program.stderr())
        wait_for(lambda: traced('"op":"start"'), "the process in the trace")
        program.send_line()
        self.assertEqual(program.wait(), 0)
        tracers = [path for path in glob.glob("/proc/[0-9]*") if self.is_tracer(path)]
        os.kill(int(os.path.basename(tracers[0])), signal.SIGINT)
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        trace = self.read()
        self.check_accounts(trace)
        self.assertEqual(set(trace.end["losses"]), {"late_library"})
        self.assertEqual(trace.counts(program.pid)["cuStreamSynchronize"], 50)
        start = next(p for p in trace.processes if p["op"] == "start" and p["pid"] == program.pid)
        self.assertEqual((start["uid"], start["exe"]), (0, os.path.realpath(f"{WORKLOADS}/fake_calls")))

    def test_late_by_sudo(self):
        self.late_library(self.by_user("sudo", "-n", self.program_for_all()))

    def test_late_by_root(self):
        self.late_library([CUDABPF])

    def test_late_by_single_links(self):
        self.late_library(self.by_user("sudo", "-n", self.program_for_all()),
                          ["--only", "cuInit,cuStreamSynchronize", "--no-feature", "uprobe_multi"])
        self.check_gone(100)

    def test_machine_settings(self):
        """Closing single links changes no setting of the machine, so nothing has to be restored."""
        settings = "/sys/kernel/rcu_expedited"
        with machine.grace_periods(quick=False):
            with open(settings, encoding="utf-8") as file:
                before = file.read()
            done = self.run_cudabpf("run", "-q", "-o", self.path, "--library", LIBRARY, "--only", "cuInit,cuMemAlloc*",
                                    "--no-feature", "uprobe_multi", "--", "true")
            self.assertEqual(done.returncode, 0, done.stderr)
            looked = 0
            while not self.nothing_left():
                looked += 1
                with open(settings, encoding="utf-8") as file:
                    self.assertEqual(file.read(), before)
            self.assertGreater(looked, 1, "links were closed before the test could look")

    def test_doctor(self):
        done = self.run_cudabpf("doctor", "--json")
        kept = {line["subject"].split()[1]: line for line in map(json.loads, done.stdout.splitlines())
                if line["subject"].startswith("keeps ")}
        self.assertEqual(set(kept), {"CAP_BPF", "CAP_PERFMON", "CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH",
                                     "CAP_CHECKPOINT_RESTORE", "CAP_SYS_ADMIN"})
        for line in kept.values():
            self.assertEqual(line["verdict"], "yes")
            self.assertTrue(line["what"])

    # --- the command has what it would have without cudabpf

    def test_command_untouched(self):
        flags = ["run", "-q", "-o", self.path, "--library", LIBRARY, "--only", "cuInit"]
        plain = self.call(["sh", "-c", SHOW_RIGHTS])
        self.assertEqual(plain.returncode, 0, plain.stderr)
        traced = self.call([CUDABPF, *flags, "--", "sh", "-c", SHOW_RIGHTS])
        self.assertEqual(traced.stdout.decode(), plain.stdout.decode(), traced.stderr)
        # With an account's groups, as after a login.
        plain = self.call(["setpriv", "--reuid", str(NOBODY.pw_uid), "--regid", str(NOBODY.pw_gid), "--init-groups",
                           "sh", "-c", SHOW_RIGHTS])
        traced = self.sudo(*flags, "--", "sh", "-c", SHOW_RIGHTS)
        self.assertEqual(traced.stdout.decode(), plain.stdout.decode(), traced.stderr)

    # --- capabilities without root

    def check_as_plain_user(self, found):
        self.assertEqual(found["ids"], [[NOBODY.pw_uid] * 3, [NOBODY.pw_gid] * 3])
        self.assertTrue(found["mine"])

    def test_file_capabilities(self):
        """An ordinary user traces a command: it gets all that was given to cudabpf, and no capability."""
        program = self.with_capabilities()
        libs = f"{self.folder}/libs"
        os.mkdir(libs)
        shutil.copy(LIBRARY, f"{libs}/libcuda.so.1")
        shutil.copy(f"{WORKLOADS}/fake_calls", f"{self.folder}/fake_calls")
        env = dict(self.environment(), LD_LIBRARY_PATH=libs)
        done = self.call(self.plain_user(program, "run", "-o", self.path, "--profile", "full", "--",
                                         f"{self.folder}/fake_calls", "--library", "libcuda.so.1", ALL), env)
        self.assertEqual(done.returncode, 0, done.stderr)
        trace = self.read()
        self.check_whole(trace)
        self.assertEqual(os.stat(self.path).st_uid, NOBODY.pw_uid)
        self.assertIn(f"{libs}/libcuda.so.1", [library["path"] for library in trace.header["libraries"]])

        flags = ["run", "-q", "-o", self.path, "--library", f"{libs}/libcuda.so.1", "--only", "cuInit", "--"]
        plain = self.call(self.plain_user("sh", "-c", SHOW_RIGHTS))
        traced = self.call(self.plain_user(program, *flags, "sh", "-c", SHOW_RIGHTS))
        self.assertEqual(traced.stdout.decode(), plain.stdout.decode(), traced.stderr)
        env = dict(self.environment(), LD_LIBRARY_PATH="/users/libraries", LD_PRELOAD="", TMPDIR="/users/tmp")
        found = self.found_by_command(self.call(self.plain_user(program, *flags, "/usr/bin/python3", "-S", "-c", IDENTITY), env))
        self.check_as_plain_user(found)
        for name in ("LD_LIBRARY_PATH", "LD_PRELOAD", "TMPDIR"):
            self.assertEqual(found["environment"].get(name), env[name], name)

    def test_file_capabilities_machine(self):
        """Other users' processes are seen: that is what giving a user this program means."""
        program = self.with_capabilities()
        self.late_library(self.plain_user(program))

    def test_file_capabilities_attach(self):
        program = self.with_capabilities()
        roots = self.start([f"{WORKLOADS}/fake_calls", "--library", LIBRARY, "setup; print ready; read; loop 20 { sync }"],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(roots.process.stdout.readline(), b"ready\n", roots.stderr())
        tracer = self.start(self.plain_user(program, "attach", "-o", self.path, "--pid", roots.pid))
        wait_for(lambda: tracer.process.poll() is not None or os.path.exists(self.path) and os.path.getsize(self.path),
                 "a header")
        roots.send_line()
        self.assertEqual(roots.wait(), 0)
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        trace = self.read()
        self.check_law(trace)
        self.assertEqual(trace.counts()["cuStreamSynchronize"], 20)
        self.assertEqual(trace.processes[0]["exe"], os.path.realpath(f"{WORKLOADS}/fake_calls"))

    def test_file_capabilities_files(self):
        """The capabilities open nothing else of other users': no trace to read, no file to write."""
        program = self.with_capabilities()
        folder = self.roots_folder()
        done = self.call(self.plain_user(program, "run", "-q", "-o", f"{folder}/t", "--library", LIBRARY, "--", "true"))
        self.assertEqual(done.returncode, 124, done.stderr)
        self.assertEqual(os.listdir(folder), [])
        self.script(ALL)
        os.chmod(self.path, 0o600)
        done = self.call(self.plain_user(program, "summary", self.path))
        self.assertEqual(done.returncode, 125, done.stderr)
        self.assertIn(b"Permission denied", done.stderr)

    def test_ambient_capabilities(self):
        """Ambient capabilities, as a systemd unit gives them: the command does not get them, either."""
        names = ",".join("+" + name.removeprefix("cap_") for name in callers.CAPABILITIES)
        program = self.plain_user("--inh-caps", names, "--ambient-caps", names, self.program_for_all())
        done = self.call([*program, "run", "-q", "-o", self.path, "--library", LIBRARY, "--only", "cuInit", "--",
                          "sh", "-c", SHOW_RIGHTS])
        self.assertEqual(done.returncode, 0, done.stderr)
        status = dict(line.split(":\t") for line in done.stdout.decode().splitlines() if ":\t" in line)
        self.assertEqual([status[name] for name in ("CapPrm", "CapEff", "CapAmb", "NoNewPrivs")],
                         ["0" * 16] * 3 + ["0"])


if __name__ == "__main__":
    harness.main()
