"""What the workloads print about themselves: stages with their times."""

import contextlib
import time


class Stages:
    """Prints what a stage took once it is over."""

    def __init__(self):
        self.began = self.last = time.perf_counter()

    def done(self, name, detail=""):
        now = time.perf_counter()
        print(f"{name:<16} {1e3 * (now - self.last):10.2f} ms   {detail}".rstrip(), flush=True)
        self.last = now

    def total(self):
        print(f"{'all':<16} {1e3 * (time.perf_counter() - self.began):10.2f} ms", flush=True)

    @staticmethod
    @contextlib.contextmanager
    def timed(seconds):
        """Appends the block's time to the list."""
        began = time.perf_counter()
        yield
        seconds.append(time.perf_counter() - began)


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def spread(seconds):
    """4.71 ms mean, 4.60 p50, 6.62 p99"""
    mean = sum(seconds) / len(seconds)
    return f"{1e3 * mean:.2f} ms mean, {1e3 * percentile(seconds, 0.5):.2f} p50, {1e3 * percentile(seconds, 0.99):.2f} p99"
