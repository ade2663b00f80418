"""What an unprivileged, hostile user can do to a trace of the whole machine, and to root's own traces.

Every scenario runs the real program as root and the attacker as `nobody`. Then the tracer must still be there, what
an honest program did meanwhile must be in the trace, and the trace must end on request.
"""
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "live"))

import callers  # noqa: E402  pylint: disable=wrong-import-position
import harness  # noqa: E402  pylint: disable=wrong-import-position
from harness import LIBRARY, WORKLOADS, wait_for  # noqa: E402  pylint: disable=wrong-import-position

NOBODY = pwd.getpwnam("nobody")
AS_NOBODY = {"user": NOBODY.pw_uid, "group": NOBODY.pw_gid, "extra_groups": []}
# An interpreter that others may run, too: the test's own may be in root's home.
PYTHON = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
HONEST_CALLS = 500
END_SECONDS = 15  # within which a tracer must end on a signal
MEMORY = 300 << 20  # no attack may make it take more than that


def memory_of(pid, missing=None):
    """How many bytes a process has in memory; `missing` if it has none any more."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        found = re.search(r"VmRSS:\s+(\d+) kB", file.read())
    if not found and missing is not None:
        return missing
    return int(found[1]) << 10


class Attack(callers.CalledTest):
    def setUp(self):
        super().setUp()
        self.lair = f"{self.folder}/lair"  # where the attacker may write
        os.mkdir(self.lair)
        os.chown(self.lair, NOBODY.pw_uid, NOBODY.pw_gid)

    # --- the two sides

    def trace_machine(self, *flags):
        return self.start_cudabpf("-o", self.path, "--library", LIBRARY, *flags)

    def as_nobody(self, command, timeout=60, **options):
        options.setdefault("cwd", self.lair)
        return subprocess.run(list(map(str, command)), timeout=timeout, check=False, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **AS_NOBODY, **options)

    def python_as_nobody(self, program, *arguments, **options):
        done = self.as_nobody([PYTHON, "-c", program, *arguments], **options)
        self.assertEqual(done.returncode, 0, done.stdout.decode(errors="replace"))
        return done

    def start_as_nobody(self, program, *arguments):
        return self.start([PYTHON, "-c", program, *map(str, arguments)], cwd=self.lair, **AS_NOBODY)

    def honest(self, count=HONEST_CALLS, library=LIBRARY, **options):
        """A program of root's that makes this many calls, during the attack or after it."""
        program = self.start([f"{WORKLOADS}/fake_storm", "--library", library, "--count", str(count), "--rate", "2000"],
                             **options)
        self.assertEqual(program.wait(), 0, program.stderr())
        return program.pid

    # --- what must hold

    def check_survived(self, tracer, *honest):
        """The tracer traces, ends on a signal, and has each of these calls; returns its trace."""
        self.assertIsNone(tracer.process.poll(), f"the tracer ended with {tracer.process.poll()}: {tracer.stderr()}")
        self.assertLess(memory_of(tracer.pid), MEMORY)
        begun = time.monotonic()
        tracer.signal(signal.SIGTERM)
        self.assertEqual(tracer.wait(END_SECONDS), 0, tracer.stderr())
        self.ended_after = time.monotonic() - begun
        trace = self.read()
        self.check_accounts(trace)
        for pid in honest:
            self.assertEqual(trace.counts(pid)["cuLaunchKernel"], HONEST_CALLS, trace.end["losses"])
        return trace

    def build(self, name, source, *flags, language="c"):
        """Compiles a program; returns the file."""
        compiler = shutil.which(os.environ.get("CC", "cc"))
        if not compiler:
            self.skipTest("there is no C compiler")
        path = f"{self.folder}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        subprocess.run([compiler, "-O1", "-o", path, "-x", language, "-", "-x", "none", *flags], check=True, input=source.encode())
        os.chmod(path, 0o755)
        return path


__all__ = ["Attack", "AS_NOBODY", "HONEST_CALLS", "LIBRARY", "MEMORY", "NOBODY", "PYTHON", "WORKLOADS", "memory_of", "wait_for"]
