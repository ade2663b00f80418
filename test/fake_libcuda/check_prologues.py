#!/usr/bin/env python3
"""At least 95 % of the exported functions begin with `push %rbp`.  check_prologues.py LIBRARY"""
import platform
import re
import subprocess
import sys

if platform.machine() != "x86_64":
    print("SKIPPED: `push %rbp` is an x86-64 instruction")
    sys.exit(4)
code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", sys.argv[1]], check=True, text=True,
                      stdout=subprocess.PIPE).stdout
first = dict(re.findall(r"^[0-9a-f]+ <(cu\w+)>:\n\s+[0-9a-f]+:\s+([^\n]*?)\s*$", code, re.M))
pushes = [name for name, instruction in first.items() if re.match(r"push\s+%rbp$", instruction)]
others = sorted(set(first) - set(pushes))
print(f"{len(pushes)} of {len(first)} functions begin with push %rbp")
for name in others[:10]:
    print(f"  {name}: {first[name]}")
sys.exit(0 if first and len(pushes) >= 0.95 * len(first) else 1)
