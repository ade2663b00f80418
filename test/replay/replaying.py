"""What the tests of cudabpf replay share: it is run on the simulated GPU, which computes."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
from captures import BASE, Capture, floats  # noqa: E402  pylint: disable=wrong-import-position

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CUDABPF = pathlib.Path(os.environ.get("CUDABPF", ROOT / "build/cudabpf")).resolve()
DRIVER = pathlib.Path(os.environ.get("CUDABPF_DRIVER", ROOT / "build/test/fake_libcuda")).resolve()
EQUAL, USAGE, DIFFERENT, NO_TARGET, FAILED = 0, 2, 117, 123, 125
COUNT = 1000
A, B, OUT, TABLE = (BASE + i * (64 << 10) for i in range(4))
SIZE = 4 * COUNT


class Replaying(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name) / "capture"

    def start(self, *arguments, **environment):
        given = {**os.environ, "LD_LIBRARY_PATH": str(DRIVER), "FAKE_CUDA_COMPUTE": "1", "LC_ALL": "C.UTF-8", **environment}
        return subprocess.run([CUDABPF, "replay", self.folder, *arguments], env=given, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def replay(self, capture, *arguments, status=EQUAL, timeout="20s", **environment):
        """The answer to --full."""
        if not self.folder.exists():
            capture.write(self.folder)
        done = self.start("--json", "--runs", "2", "--timeout", timeout, *arguments, **environment)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertIn("this runs the code in", done.stderr)
        return json.loads(done.stdout)

    def refused(self, *arguments, status=FAILED, **environment):
        done = self.start(*arguments, **environment)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        return done.stderr

    @staticmethod
    def simple():
        """a, which is all ones, is scaled by 2 twice, in place."""
        capture = Capture()
        scale = capture.load(["scale"])["scale"]
        capture.block(A, SIZE)
        capture.before.put(A, floats(*[1] * COUNT))
        capture.after.put(A, floats(*[4] * COUNT))
        for _ in range(2):
            capture.launch(scale, A, COUNT, 2)
        return capture

    def check_memory(self, answer, **expected):
        sums = answer["comparison"]["memory"]
        self.assertEqual({name: sums[name] for name in expected}, expected, answer)
