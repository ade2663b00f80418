"""`run --inside` beside a process that writes nonsense into the memory that it shares with cudabpf, or says nonsense at its
listener: one lie a test. The program beside it is whole, and the trace can be read."""
import json
import os

import hostile
import insiders
from hostile import HONEST_CALLS, LIBRARY, WORKLOADS, wait_for

END_SECONDS = 60  # in which the lying process is done, and the trace has its end
# The shared memory and its rings, as include/cudabpf/inside.h has them.
LIAR = insiders.VISITOR + """
import ctypes, fcntl, random
MOST, RINGS, RINGS_AT = (1 << 64) - 1, 1024, 50 * 4096
ENTRY, RETURN, NAME, GPU_TIMES = 1, 2, 3, 13
class Shared:
    def __init__(self):
        self.listener = knock(); hello(self.listener, FORKED)
        said, (self.fd,) = answer(self.listener)
        self.size, self.ring_size = said[4], (said[4] - RINGS_AT) // RINGS
        self.memory = mmap.mmap(self.fd, self.size)
        self.listener.send(struct.pack("<2I", VERSION, 0))
    def used(self, rings): struct.pack_into("<I", self.memory, 16, rings)
    def counters(self, at, values): struct.pack_into("<8Q", self.memory, at + 24, *values)
    def ring(self, number): return 128 + number * 192
    def take(self, number): struct.pack_into("<2I", self.memory, self.ring(number), 1, os.getpid())
    def head(self, number, value): struct.pack_into("<Q", self.memory, self.ring(number) + 8, value)
    def slot(self, number, size): struct.pack_into("<2I", self.memory, RINGS_AT + number * self.ring_size, size, 0)
    def put(self, number, record):
        head, = struct.unpack_from("<Q", self.memory, self.ring(number) + 8)
        at, space = head % self.ring_size, 8 + (len(record) + 7 & ~7)
        base = RINGS_AT + number * self.ring_size
        if self.ring_size - at < space:
            struct.pack_into("<2I", self.memory, base + at, 0, 1)
            head, at = head + self.ring_size - at, 0
        struct.pack_into("<2I", self.memory, base + at, len(record), 0)
        self.memory[base + at + 8:base + at + 8 + len(record)] = record
        self.head(number, head + space)
    def open(self, rings=1):
        self.used(rings)
        for number in range(rings): self.take(number)
        return self
def head_of(ts, function, kind, union, stack=1, flags=0):
    return struct.pack("<Q4IHBBI", ts, 0, 0, stack & 0xffffffff, 0, function & 0xffff, kind, flags, union & 0xffffffff)
def entry(ts, function, stack=1, words=(), text=b""):
    return head_of(ts, function, ENTRY, len(words) | len(text) << 16, stack) + struct.pack(f"<{len(words)}Q", *words) + text
def returned(ts, function, stack=1, result=0, words=()):
    return head_of(ts, function, RETURN, result, stack) + struct.pack(f"<{len(words)}Q", *words)
def now(): return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
pause = lambda: time.sleep(0.0002)
"""
LIES = {
    "counters": """
shared = Shared().open(3)
shared.counters(0, [MOST] * 8); shared.counters(shared.ring(1), [MOST, 0, MOST, MOST, 5, MOST, MOST, 7]); shared.counters(shared.ring(2), [0, 0, MOST - 4] + [MOST] * 5)
""",
    "heads": """
shared = Shared().open(5)
for number, head in enumerate((1, 1 << 63, MOST - 7, shared.ring_size + 8, 16)): shared.head(number, head)
""",
    "how_many_rings": "Shared().used(0xffffffff)",
    "sizes": """
shared = Shared().open(6)
for number, size in enumerate((0, 31, 4217, 0xffffffff, shared.ring_size, 32)): shared.slot(number, size); shared.head(number, 64)
""",
    "kinds": """
shared = Shared().open()
for kind in range(256): shared.put(0, head_of(now(), kind & 31, kind, MOST, flags=255) + bytes(1000)); pause()
""",
    "functions": """
shared = Shared().open()
for function in range(0, 65536, 7):
    shared.put(0, entry(now(), function, function, (MOST,) * 11)); shared.put(0, returned(now(), function, function, -1, (MOST, MOST)))
""",
    "times": """
shared = Shared().open(4)
for number, ts in enumerate((0, 1, MOST, now() + 10**15)): shared.put(number, entry(ts, 3, 9)); shared.put(number, returned(ts, 3, 9))
""",
    "time_that_goes_back": """
shared, begun = Shared().open(), now()
for past in range(1000): shared.put(0, entry(begun - past * 1000, 3, past)); shared.put(0, returned(begun - past * 2000, 3, past))
""",
    "texts": """
shared = Shared().open()
for text in (b"\\x1b]0;x\\x07\\x1b[2J\\0", b"\\xff\\xfe\\xc2\\x9b31m\\0", "\\u202eabc\\u2028</script>\\0".encode(), b"x" * 4095, bytes(100)):
    shared.put(0, head_of(now(), 0, NAME, len(text) << 16) + struct.pack("<Q", 0x1234) + text)
    for function in range(700):
        shared.put(0, entry(now(), function, function, (0x1234,) * 11, text)); shared.put(0, returned(now(), function, function, 0, (0x1234,)))
    time.sleep(0.1)
""",
    "records_that_change": """
shared, chosen, pid = Shared().open(2), random.Random(1), os.fork()
if not pid:
    end = time.monotonic() + 2
    while time.monotonic() < end:
        struct.pack_into("<Q", shared.memory, RINGS_AT + chosen.randrange(0, 4096, 8), chosen.choice((0, 32, 1 << 32, MOST, 40, 4216, 5000)))
    os._exit(0)
for number in range(3000): shared.put(0, entry(now(), number % 600, number)); shared.put(1, returned(now(), number % 600, number)); pause()
os.waitpid(pid, 0)
""",
    "a_room_that_shrinks": """
shared = Shared().open()
for change in (lambda: os.ftruncate(shared.fd, 0), lambda: os.ftruncate(shared.fd, 1 << 40)):
    try: change()
    except PermissionError: continue
    raise SystemExit("the size of the shared memory can be changed")
ctypes.CDLL(None).fallocate(shared.fd, 3, ctypes.c_long(0), ctypes.c_long(shared.size))  # a hole: all of it is zeros now
for number in range(100): shared.put(0, entry(now(), 3, number)); pause()
""",
    "gpu_records": """
shared, chosen, sizes = Shared().open(), random.Random(2), {13: 40, 14: 40, 15: 128, 16: 72, 9: 512, 10: 248}
for number in range(4000):
    kind = chosen.choice(list(sizes))
    record = head_of(now(), chosen.randrange(1, 7), kind, chosen.choice((0, 8 << 16, 200 | 8 << 16, MOST)), flags=chosen.randrange(256))
    shared.put(0, record + bytes(chosen.choice((0, 1, 255, chosen.randrange(256))) for _ in range(sizes[kind] - 16))); pause()
""",
    "hellos": """
def said(s, *messages):
    try:
        for message in messages: s.send(message)
        s.settimeout(0.2); s.recv(100)
    except OSError: pass
    s.close()
for size in (0, 1, 23, 24, 25, 4000): said(knock(), os.urandom(size))
for reason in (0, LOADED, FORKED, LEAVING, 4, 99, 0xffffffff):
    for count in (0, 1, 2, 5, 200):
        s = knock()
        try: hello(s, reason, [0] * count)
        except OSError: pass
        said(s, struct.pack("<2I", VERSION, 4096) + bytes(4096), os.urandom(4104))
""",
    "descriptors": """
for path in ("/dev/zero", "/dev/full", "/proc/self/mem", "/proc/self/pagemap", "/", "/etc/passwd", "/proc/self/exe"):
    for flags in (0, os.O_PATH):
        s, file = knock(), os.open(path, os.O_RDONLY | flags)
        hello(s, LOADED, [file]); s.settimeout(10)
        try: s.recv(100)
        except OSError: pass
        s.close(); os.close(file)
""",
}


class Live(hostile.Attack):
    def check_lie(self, lie):
        """The lying process ends, the program beside it is whole, and each line of the trace is complete."""
        program = f"{self.folder}/liar"
        with open(program, "w", encoding="utf-8") as file:
            file.write(f"#!{hostile.PYTHON}\n{LIAR}{lie}")
        os.chmod(program, 0o755)
        storm = [f"{WORKLOADS}/fake_storm", "--library", LIBRARY, "--count", HONEST_CALLS, "--rate", "1000"]
        script = '"$1" & liar=$!; shift; "$@" >/dev/null; wait $liar'
        tracer = self.start_cudabpf("run", "--inside", "-o", self.path, "--profile", "full", "--", "sh", "-c", script, "sh", program, *storm)
        most = 0

        def ends():
            nonlocal most
            ended = tracer.process.poll() is not None
            if not ended:
                most = max(most, hostile.memory_of(tracer.pid, missing=0))
            return ended
        wait_for(ends, f"at its end: {tracer.stderr()}", END_SECONDS)
        self.assertEqual(tracer.wait(), 0, tracer.stderr())
        self.assertLess(most, hostile.MEMORY)
        trace = self.read()
        self.assertIn(HONEST_CALLS, [trace.counts(pid)["cuLaunchKernel"] for pid in {call["pid"] for call in trace.calls}])
        done = self.run_cudabpf("summary", "--json", self.path)
        self.assertEqual((done.returncode, json.loads(done.stdout)["trace"]["malformed"]), (0, 0), done.stderr)


def test_of(lie):
    return lambda self: self.check_lie(lie)


for name, text in LIES.items():
    setattr(Live, f"test_{name}", test_of(text))


if __name__ == "__main__":
    hostile.harness.main()
