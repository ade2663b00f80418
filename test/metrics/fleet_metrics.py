"""scripts/bench-fleet, at its smallest: a few nodes for a few seconds. Its figures agree with each other."""
import pathlib
import re
import subprocess

import scraping
from scraping import harness

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TARGETS, PROGRAMS, GPUS = 20, 2, 2
FIGURE = r"([\d,.]+)"


class Live(scraping.Scraping):
    def test_bench_fleet(self):
        done = subprocess.run([ROOT / "scripts/bench-fleet", "--build", harness.BUILD, "--targets", str(TARGETS), "--seconds", "6", "--interval", "2",
                               "--programs", str(PROGRAMS), "--gpus", str(GPUS), "--no-traces"],
                              check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode == 77:
            self.skipTest(done.stdout.strip().rpartition("SKIPPED: ")[2])
        self.assertEqual(done.returncode, 0, done.stdout)

        def figures(pattern):
            found = re.search(pattern.replace("#", FIGURE), done.stdout)
            self.assertTrue(found, done.stdout)
            return [float(one.replace(",", "")) for one in found.groups()]
        series, size = figures("page +# series, # bytes")
        self.assertGreater(size, 100 * series / 2)
        stored, = figures("in Prometheus +# series")
        self.assertGreaterEqual(stored, TARGETS * series)
        scrapes, failed = figures("scrapes +#, # failed")
        self.assertGreaterEqual(scrapes, TARGETS)
        self.assertLess(failed, scrapes)  # the machine may be slow
        in_chunks, = figures("on disk +# bytes a sample")
        self.assertGreater(in_chunks, 0.5)
        self.assertLess(in_chunks, 50)


if __name__ == "__main__":
    harness.main()
