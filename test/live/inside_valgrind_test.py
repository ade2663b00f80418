"""The library inside, under valgrind: it uses nothing uninitialized, no memory of others, and leaves no file open.

Valgrind translates what the library has written into libcuda's code, and knows the system calls that it makes itself.
What it says of other libraries is not our business. There is no search for leaks: the library allocates nothing from
the heap, and valgrind would look through the whole of the memory that is shared with cudabpf.

These tests are run only this way (inside_tests.txt).
"""
import glob
import re
import shutil

import harness
import insiders
from expected import check_calls
from harness import BUILD, LIBRARY, WORKLOADS, calls
from insiders import EVERYTHING, odd

OURS = "libcudabpf-inside.so"
# A frame of libc, of the linker, or of what valgrind has put in their place; libc's may have debug information.
LIBC = re.compile(r"\(([\w./-]+:\d+|in \S*/(libc|ld-linux-x86-64|vgpreload_\w+-amd64-linux)\.so[.\d]*)\)$")
DEVICES = "1:3=nvidiactl,1:5=nvidia-uvm,1:7=nvidia0"  # as in driver_test.py
FAKE_DRIVER = "nvidiactl=/dev/null,nvidia-uvm=/dev/zero,nvidia0=/dev/full"


def is_ours(finding):
    """Whether the library has done it, perhaps by a function of libc."""
    frames = re.findall(r"(?m)^==\d+==    (?:at|by) 0x.*$", finding)
    return OURS in next((frame for frame in frames if not LIBC.search(frame)), "")


class Live(insiders.InsideTest):
    program = f"{BUILD}/test/live/cudabpf"  # CUDABPF_DEVICES names its driver's devices

    def setUp(self):
        super().setUp()
        if not shutil.which("valgrind"):
            self.skipTest("valgrind is not installed; scripts/setup installs it")

    def traced_in_valgrind(self, command, *flags, processes=1, fake=None):
        """The trace of a command that valgrind has found nothing about, in so many processes."""
        valgrind = ["valgrind", "--smc-check=all", "--leak-check=no", "--track-fds=yes", f"--log-file={self.folder}/valgrind.%p"]
        env = dict(self.environment(**(fake or {})), CUDABPF_DEVICES=DEVICES)
        done = self.run_cudabpf("run", "-q", "-o", self.path, "--profile", "full", *flags, "--", *valgrind, *command, env=env)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        reports = glob.glob(f"{self.folder}/valgrind.*")
        self.assertEqual(len(reports), processes, reports)
        for path in reports:
            with open(path, encoding="utf-8", errors="replace") as file:
                report = file.read()
            self.assertRegex(report, "ERROR SUMMARY: ")
            findings = re.split(r"(?m)^==\d+== \n|^(?===\d+== Open file descriptor)", report)
            self.assertEqual([finding for finding in findings if is_ours(finding)], [])
        return self.read()

    def test_calls(self):
        trace = self.traced_in_valgrind(calls(EVERYTHING))
        self.check_whole(trace)
        check_calls(self, trace)

    def test_arguments(self):
        """Floats, structs by value, sixteen words; pointers to where nothing can be read."""
        trace = self.traced_in_valgrind(odd("arguments"))
        left_out = {text.split()[0] for library in trace.libraries for text in library["unpatched"]}
        self.check_whole(trace, set(self.record().counts) - left_out)
        self.assertGreater(len(trace.calls), 10)

    def test_threads_and_forks(self):
        trace = self.traced_in_valgrind(calls("setup; loop 4 { thread { loop 50 { sync; query } } }; loop 3 { fork { malloc a 4K; free a; "
                                              "raw cuProfilerStart; quit 0 } }; wait"), processes=4)
        self.check_whole(trace)
        self.assertEqual(len({call["pid"] for call in trace.calls}), 4)

    def test_driver(self):
        """libcuda's requests to the driver, as well."""
        command = [f"{WORKLOADS}/fake_inference", "--library", LIBRARY, "--tokens", "3", "--threads", "2"]
        trace = self.traced_in_valgrind(command, "--kernel", "--library", LIBRARY, fake={"DRIVER": FAKE_DRIVER})
        self.check_whole(trace)
        self.assertGreater(len(trace.of("kernel")), 100)


if __name__ == "__main__":
    harness.main()
