"""The questions that the documents answer from a trace, and `cudabpf summary`, on a trace that was just recorded; and two such
traces merged."""
import json
import os
import shutil
import subprocess
import sys

import harness
from harness import LIBRARY, WORKLOADS

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../scripts"))
import questions  # noqa: E402  pylint: disable=wrong-import-position,import-error


# Makes an allocation of each size that it is given.
PROGRAM = """
import ctypes, sys
driver = ctypes.CDLL(sys.argv[1])
device, context, pointer = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
assert driver.cuInit(0) == 0
assert driver.cuDeviceGet(ctypes.byref(device), 0) == 0
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
assert driver.cuCtxSetCurrent(context) == 0
for line in sys.stdin:
    assert driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(int(line))) == 0
    print("made", flush=True)
"""
FIRST, MADE = 4096, 40  # sizes: each allocation has its own


class Live(harness.LiveTest):
    def test_fresh_trace(self):
        if not shutil.which("jq"):
            self.skipTest("jq is not installed; scripts/setup installs it")
        trace = self.traced([f"{WORKLOADS}/fake_inference", "--library", LIBRARY], "--library", LIBRARY)
        self.check_whole(trace)
        questions.ask(self, harness.CUDABPF, self.path)

    def start_rank(self, rank):
        path = f"{self.folder}/rank{rank}.jsonl"
        program = self.start_cudabpf("run", "-o", path, "--profile", "full", "--library", LIBRARY, "--", "python3", "-c", PROGRAM, LIBRARY,
                                     output=path, env=self.environment() | {"RANK": str(rank)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return path, program

    def test_merged(self):
        """Two programs allocate in turn: in the merge, too, though each was recorded by a cudabpf of its own."""
        ranks = [self.start_rank(rank) for rank in range(2)]
        for number in range(MADE):
            program = ranks[number % 2][1]
            program.send_line(f"{FIRST + number}\n")
            self.assertEqual(program.process.stdout.readline(), b"made\n")
        for _, program in ranks:
            program.process.stdin.close()
            self.assertEqual(program.wait(), 0, program.stderr())
        paths = [path for path, _ in ranks]
        merged = f"{self.folder}/merged.jsonl"
        done = subprocess.run([self.program, "merge", *paths, "-o", merged, "--json"], stdout=subprocess.PIPE, text=True, check=True)
        said = json.loads(done.stdout)
        self.assertEqual([one["alignment"] for one in said["merged"]], ["same boot", "same boot"])
        self.assertEqual([one["rank"]["RANK"] for one in said["merged"]], [0, 1])
        self.assertEqual(said["order_bound_us"], 0)
        trace = self.read(merged)
        sizes = [call["size"] for call in sorted(trace.calls, key=lambda call: call["ts"]) if call["name"] == "cuMemAlloc"]
        self.assertEqual(sizes, [FIRST + number for number in range(MADE)])
        alone = [self.read(path) for path in paths]
        self.assertEqual(len(trace.calls), sum(len(one.calls) for one in alone))
        for key in ("entered", "emitted", "dropped", "received"):
            self.assertEqual(trace.end["accounts"][key], sum(one.end["accounts"][key] for one in alone))
        self.check_accounts(trace)


if __name__ == "__main__":
    harness.main()
