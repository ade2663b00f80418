"""`cudabpf metrics`: the places that ended processes leave in the kernel's tables are taken over by later ones, and no call is lost."""
import shutil

import scraping
from scraping import LIBRARY, WORKLOADS, harness

PLACES = 8192  # in each table: of functions, of classes with times, and of results
WAVES, CHILDREN = 4, 350
CLASSES = ("launch", "copy_to_device", "copy_to_host", "set", "wait", "other")
RESULTS = {"cuLaunchKernel": (719, "CUDA_ERROR_LAUNCH_FAILED"), "cuMemcpyHtoD_v2": (2, "CUDA_ERROR_OUT_OF_MEMORY"),
           "cuMemcpyDtoH_v2": (1, "CUDA_ERROR_INVALID_VALUE"), "cuMemsetD8_v2": (700, "CUDA_ERROR_ILLEGAL_ADDRESS"),
           "cuStreamSynchronize": (999, "CUDA_ERROR_UNKNOWN"), "cuStreamQuery": (400, "CUDA_ERROR_INVALID_HANDLE"),
           "cuEventRecord": (709, "CUDA_ERROR_CONTEXT_IS_DESTROYED")}
CHILD = ("fails 719 launch f 1 1 1 1 1 1 0; fails 2 htod a host 1K; fails 1 dtoh host a 1K; fails 700 set8 a 0 64; fails 999 sync; fails 400 query; "
         "fails 709 record e")
SCRIPT = f"setup; module m; function f m k; malloc a 64K; event e; loop {CHILDREN} {{ fork {{ {CHILD} }}; wait }}"


class Live(scraping.Scraping):
    def test_more_than_fit(self):
        for kinds in (CLASSES, RESULTS):
            self.assertGreater(WAVES * CHILDREN * len(kinds), PLACES)
            self.assertLess(CHILDREN * len(kinds), PLACES / 3)  # a wave may come before the places of the one before are free
        program = f"{self.folder}/places"  # on the machine there may be others
        shutil.copy(f"{WORKLOADS}/fake_calls", program)
        failing = ",".join(f"{symbol}={number}@*" for symbol, (number, _) in RESULTS.items())
        metrics = self.start_metrics("--profile", "full")
        for wave in range(1, WAVES + 1):
            started = self.start([program, "--library", LIBRARY, SCRIPT], env=self.environment(LOG=None, FAIL=failing))
            self.assertEqual(started.wait(), 0, started.stderr())
            page = self.page_with(lambda page, made=wave * CHILDREN: not page.of("cudabpf_processes", program="places") and
                                  page.of("cudabpf_calls_total", program="places", function_class="launch") == made, "its launches")
        self.assertEqual(page.of("cudabpf_calls_total", program="places"), self.total())
        self.assertEqual(page.of("cudabpf_call_seconds_count", program="places"), self.total())
        for one in CLASSES[:-1]:
            self.assertEqual(page.of("cudabpf_call_seconds_count", program="places", function_class=one), WAVES * CHILDREN, one)
        for _, one in RESULTS.values():
            self.assertEqual(page.of("cudabpf_call_errors_total", program="places", result=one), WAVES * CHILDREN, one)
        self.assertEqual(page.of("cudabpf_lost_events_total"), 0)
        self.ended(metrics)


if __name__ == "__main__":
    harness.main()
