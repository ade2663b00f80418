"""What the tests of one kernel alone share: --export, --with."""
import json
import os
import subprocess

from captures import BASE, Capture, UNIT, floats, images
from replaying import A, B, COUNT, DRIVER, EQUAL, OUT, SIZE, TABLE, Replaying

OTHER = BASE + UNIT  # what the kernel has nothing to do with
COMPILER = os.environ.get("CXX", "g++")


class Exporting(Replaying):
    def setUp(self):
        super().setUp()
        self.kernel = self.folder.with_name("kernel")

    @staticmethod
    def adds():
        """Three additions, the last of another shape, among other work."""
        capture = Capture()
        kernels = capture.load(["add", "scale"])
        ones, numbers = [1.0] * COUNT, [float(i) for i in range(COUNT)]
        for block in (A, B, OUT, TABLE, OTHER):
            capture.block(block, SIZE)
        for memory in (capture.before, capture.after):
            memory.put(B, floats(*numbers))
            memory.put(OTHER, b"x" * SIZE)
        capture.before.put(A, floats(*ones))
        capture.launch(kernels["add"], A, B, OUT, COUNT)
        capture.launch(kernels["scale"], A, COUNT, 3)
        capture.launch(kernels["add"], A, B, OUT, COUNT)
        capture.launch(kernels["add"], OUT, A, TABLE, COUNT, grid=[2, 1, 1])
        capture.after.put(A, floats(*[3.0] * COUNT))
        capture.after.put(OUT, floats(*[3 + i for i in numbers]))
        capture.after.put(TABLE, floats(*[6 + i for i in numbers]))
        return capture

    def export(self, capture, pattern, *more, status=EQUAL, **environment):
        if not self.folder.exists():
            capture.write(self.folder)
        done = self.start("--export", pattern, "-o", str(self.kernel), "--json", "--timeout", "20s", *more, **environment)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def alone(self, *arguments, folder=None, **environment):
        """cudabpf replay of the export."""
        kept, self.folder = self.folder, folder or self.kernel
        done = self.start(*arguments, **environment)
        self.folder = kept
        return done

    def equal(self, **sums):
        done = self.alone("--json", "--runs", "1")
        self.assertEqual(done.returncode, EQUAL, done.stdout + done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual((answer["verdict"], answer["not_run"], answer["failed"]), ("equal", [], []))
        self.assertEqual({name: answer["comparison"]["copies_to_host"][name] for name in sums}, sums)
        return answer

    def manifest(self):
        return json.loads((self.kernel / "manifest.json").read_text())

    def tape(self):
        return [json.loads(line) for line in (self.kernel / "tape.jsonl").read_text().splitlines()]

    def image(self, *kernels, kind="fatbin", variables=None):
        path = self.folder.with_name("candidate." + kind)
        made = {"cubin": images.cubin, "ptx": images.ptx, "fatbin": lambda *what: images.fat_binary(images.cubin(*what))}
        path.write_bytes(made[kind](list(kernels), variables or {}))
        return str(path)

    def with_code(self, file, *more, status=EQUAL, timeout="20s", runs="2", folder=None, **environment):
        done = self.alone("--with", file, "--json", "--runs", runs, "--timeout", timeout, *more, folder=folder, **environment)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def compile(self):
        done = subprocess.run([COMPILER, "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-o", self.kernel / "launch", self.kernel / "launch.cpp",
                               DRIVER / "libcuda.so.1"], check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout)

    def launch(self, *arguments):
        given = {**os.environ, "LD_LIBRARY_PATH": str(DRIVER), "FAKE_CUDA_COMPUTE": "1"}
        return subprocess.run([self.kernel / "launch", *arguments], check=False, text=True, env=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
