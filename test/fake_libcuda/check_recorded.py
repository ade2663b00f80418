#!/usr/bin/env python3
"""scripts/record-prologues reads from a file what is in memory when the library is loaded.

check_recorded.py LIBRARY"""
import ctypes
import pathlib
import platform
import re
import subprocess
import sys

if platform.machine() != "x86_64":
    print("SKIPPED: only code of x86-64 is recorded")
    sys.exit(4)
recorder = pathlib.Path(__file__).resolve().parents[2] / "scripts/record-prologues"
said = subprocess.run([sys.executable, "-B", recorder, sys.argv[1]], check=True, text=True, stdout=subprocess.PIPE).stdout
header, *lines = said.splitlines()
recorded = dict((name, (int(at, 16), bytes.fromhex(code))) for name, at, code in (line.split("\t") for line in lines))

library = ctypes.CDLL(sys.argv[1])
listed = subprocess.run(["nm", "-D", "--defined-only", sys.argv[1]], check=True, text=True, stdout=subprocess.PIPE).stdout
addresses = {name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in re.findall(r" T (cu[A-Z]\w*)$", listed, re.M)}
assert len(recorded) == len(set(addresses.values())) > 600, (len(recorded), len(addresses))
assert header.startswith("# libcuda.so.1,") and list(recorded) == sorted(recorded), header
for name, (at, code) in recorded.items():
    assert (at, code) == (addresses[name] % 16, ctypes.string_at(addresses[name], 32)), name
print(f"{len(recorded)} functions are as in memory")
