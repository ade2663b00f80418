"""The questions that the documents answer from a trace, and `cudabpf summary`, on a trace that was just recorded."""
import os
import shutil
import sys

import harness
from harness import LIBRARY, WORKLOADS

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../scripts"))
import questions  # noqa: E402  pylint: disable=wrong-import-position,import-error


class Live(harness.LiveTest):
    def test_fresh_trace(self):
        if not shutil.which("jq"):
            self.skipTest("jq is not installed; scripts/setup installs it")
        trace = self.traced([f"{WORKLOADS}/fake_inference", "--library", LIBRARY], "--library", LIBRARY)
        self.check_whole(trace)
        questions.ask(self, harness.CUDABPF, self.path)


if __name__ == "__main__":
    harness.main()
