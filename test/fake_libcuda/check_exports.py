#!/usr/bin/env python3
"""The library exports exactly the functions of the table.  check_exports.py LIBRARY TABLE.tsv"""
import subprocess
import sys

library, table = sys.argv[1:]
with open(table, encoding="utf-8") as file:
    lines = [line for line in file if not line.startswith("#") and line.strip()]
wanted = {line.split("\t")[0] for line in lines[1:]}
symbols = subprocess.run(["nm", "-D", "--defined-only", library], check=True, text=True,
                         stdout=subprocess.PIPE).stdout.split("\n")
found = {line.split()[2] for line in symbols if line and line.split()[2].startswith("cu")}
dynamic = subprocess.run(["readelf", "-d", library], check=True, text=True,
                         stdout=subprocess.PIPE).stdout

problems = [f"not exported: {name}" for name in sorted(wanted - found)]
problems += [f"exported, but not in the table: {name}" for name in sorted(found - wanted)]
if "[libcuda.so.1]" not in dynamic:
    problems.append("the SONAME is not libcuda.so.1")
if len(wanted) < 682:
    problems.append(f"the table has {len(wanted)} functions; driver 580 exports 682")
print("\n".join(problems) or f"{len(found)} functions exported, as in the table")
sys.exit(1 if problems else 0)
