"""Makes calls from all sorts of Python code, and writes down for each from where, as Python itself says it.

    python_calls.py LIBCUDA LOG WHAT...

Each line of LOG is a call: pid, tid, symbol, frames (function, file and line, the innermost first). What is written at
the end says how often new code lay where freed code had lain.
"""
import asyncio
import contextlib
import ctypes
import functools
import json
import os
import sys
import threading
import time
import types

LIBRARY, LOG, *WHATS = sys.argv[1:]
released, held = ctypes.CDLL(LIBRARY), ctypes.PyDLL(LIBRARY)  # whether a call gives up Python's lock
WAIT, ALLOCATE, FREE, FILL = "cuCtxSynchronize", "cuMemAlloc_v2", "cuMemFree_v2", "cuMemsetD8_v2"
lines = {}  # by thread
reused = 0


def note(symbol, frame):
    frames = []
    while frame:
        frames.append((frame.f_code.co_qualname, frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    lines.setdefault((os.getpid(), threading.get_native_id()), []).append((symbol, frames))


def call(symbol=WAIT, *args, by=released):
    return (note(symbol, sys._getframe()), getattr(by, symbol)(*args))[1]


def write_down():
    with open(f"{LOG}.{os.getpid()}", "w", encoding="utf-8", errors="replace") as log:
        for (pid, tid), calls in lines.items():
            for symbol, frames in calls:
                log.write(json.dumps({"pid": pid, "tid": tid, "symbol": symbol, "frames": frames}) + "\n")
        log.write(json.dumps({"reused": reused}) + "\n")


def plain():
    call()
    for _ in range(3):
        call()
        call(
            WAIT,
            by=held,
        )
    place = ctypes.c_uint64()
    call(ALLOCATE, ctypes.byref(place), ctypes.c_size_t(4096))
    call(FILL, place, ctypes.c_ubyte(1), ctypes.c_size_t(4096), by=held)
    call(FREE, place)


def expressions():
    (lambda: call())()
    (lambda: (lambda: call(by=held))())()
    [call() for _ in range(2)]
    {key: call() for key in range(2)}
    list(call() for _ in range(2))
    sorted([2, 1, 3], key=lambda _: call())
    functools.reduce(lambda _, __: call(), [1, 2, 3])
    list(map(call, [WAIT, WAIT]))
    with contextlib.ExitStack() as stack:
        stack.callback(call)


def generators():
    def inner():
        call()
        yield 1
        call()
        yield from deeper()

    def deeper():
        call()
        yield 2

        call()
    for _ in inner():
        call()

    async def task():
        call()
        await asyncio.sleep(0)
        call(by=held)

    async def both():
        await asyncio.gather(task(), task())
    asyncio.run(both())


class Holder:
    class Inner:
        @staticmethod
        def method():
            call()

        @property
        def value(self):
            return call()

        def __del__(self):
            call()

    def __call__(self):
        self.Inner.method()
        self.Inner().value


def classes():
    Holder()()
    callback = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: call() or 0)
    callback()
    ctypes.PYFUNCTYPE(ctypes.c_int)(lambda: call(by=held) or 0)()


def recursion(depth=300):
    if depth % 50 == 0 or depth in (126, 127, 128, 129):
        call()
    if depth:
        recursion(depth - 1)


def names():
    def größe():
        call()

    def 函数():
        größe()
    函数()
    for name in ("дом.py", "ÿ.py", "\U0001f600.py", "long" * 400 + ".py"):
        code = compile("\n\ndef f():\n  call()\nf()", name, "exec")
        exec(code, {"call": call})
    exec("\n\n\ncall()")
    eval("call()")
    longest = "f" * 700
    space = {"call": call}
    exec(f"def {longest}(): call()", space)
    space[longest]()
    code = compile("call()", "<no lines>", "exec")
    exec(code.replace(co_linetable=b"\xf8" * ((len(code.co_code) // 2))), {"call": call})


def freed():
    """Code objects that are equal in size and name, at one address after the other."""
    global reused
    seen = set()
    for turn in range(400):
        code = compile("\n" * (turn % 29) + "call()\n", "<made>", "exec")
        reused += id(code) in seen
        seen.add(id(code))
        exec(code, {"call": call})
        del code
    seen = set()
    for turn in range(400):
        space = {"call": call}
        exec("def f():\n" + " pass\n" * (turn % 7) + " call()\n", space)
        reused += id(space["f"].__code__) in seen
        seen.add(id(space["f"].__code__))
        space["f"]()
        del space


def threads():
    def work(number):
        call("cuCtxSetCurrent", context)
        for turn in range(200):
            call(by=held if turn % 3 else released)
            (plain, expressions)[(turn + number) % 2]() if turn % 50 == 0 else call()
    started = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for one in started:
        one.start()
    freed()
    for one in started:
        one.join()


def fork():
    call()
    child = os.fork()
    if not child:
        lines.clear()
        released.cuInit(0)
        released.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
        call("cuCtxSetCurrent", context)
        plain()
        plain()
        write_down()
        os._exit(0)
    os.waitpid(child, 0)
    call()


def many():
    """More stacks than there is room for."""
    space = {"call": call}
    exec("\n".join(f"def f{i}(): call()" for i in range(200)), space)
    for outer in range(120):
        code = compile("\n" * outer + "f()", "<outer>", "exec")
        for i in range(200):
            exec(code, {"f": space[f"f{i}"]})


def ready():
    """Whoever traces from now on has not seen what came before."""
    print("ready", flush=True)
    sys.stdin.readline()
    lines.clear()


def linger():
    """Whoever reads this process's memory has time for it."""
    time.sleep(0.2)


def loop():
    """The same call again and again, 20 frames deep: how long it takes."""
    def deep(left):
        if left:
            return deep(left - 1)
        wait = released.cuCtxSynchronize
        for _ in range(3):
            began = time.perf_counter()
            for _ in range(200000):
                wait()
            print(f"us_per_call={(time.perf_counter() - began) / 200000 * 1e6:.4f}", flush=True)
    deep(20)


context = ctypes.c_void_p()
assert released.cuInit(0) == 0
assert released.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
call("cuCtxSetCurrent", context)
sys.setrecursionlimit(5000)
for what in WHATS:
    assert isinstance(globals()[what], types.FunctionType)
    globals()[what]()
write_down()
