"""Products of matrices, against what the program asked for (scripts/workloads/torch_products.py) and against cuBLASLt's own log."""
import collections
import glob
import json
import os
import re
import subprocess
import sys

import toolkit

# The matrices' sizes in a call in cuBLASLt's log, by their descriptors.
LOGGED = re.compile(r"\bAdesc=\[[^]]*?rows=(\d+) cols=(\d+)[^]]*\].*?\bDdesc=\[[^]]*?rows=(\d+) cols=(\d+)")


def answer_of(machine):
    return json.loads(subprocess.run([machine.cudabpf, "gemms", "--json", machine.path], check=True, stdout=subprocess.PIPE).stdout)


def of_answer(answer):
    found = collections.Counter()
    for row in answer["products"]:
        found[tuple(sorted((row["m"], row["n"]))), row["k"], row["batch"]] += row["count"]
    return found


def in_log(folder):
    """(rows and columns of A as it is stored, of D), how often, in the logs of all processes"""
    found = collections.Counter()
    for path in glob.glob(f"{folder}/cublaslt.*"):
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                if "Matmul" in line and (match := LOGGED.search(line)):
                    found[tuple(map(int, match.groups()))] += 1
        os.remove(path)
    return found


def stored(line):
    """The same of a line of the trace"""
    turned = line["trans"][0] != "n"
    return (line["k"], line["m"], line["m"], line["n"]) if turned else (line["m"], line["k"], line["m"], line["n"])


def run(machine, check, skipped, workloads):
    if not toolkit.sees_gpu("torch"):
        skipped("shapes", "it takes PyTorch")
        return
    for way in (("--inside",), ("--inside", "--gpu"), ("--shapes",)):
        name = f"shapes, {' '.join(way)}"
        log = f"{machine.folder}/products.jsonl"
        logging = {"CUBLASLT_LOG_LEVEL": "5", "CUBLASLT_LOG_FILE": f"{machine.folder}/cublaslt.%i"}
        status, lines = machine.traced(sys.executable, f"{workloads}/torch_products.py", log, flags=way, env={**os.environ, **logging})
        logged = in_log(machine.folder)
        check(f"{name}: status", status == 0, status)
        losses = {reason for reason in lines[-1]["losses"] if "--inside" in way or reason != "late_library"}  # PyTorch loads them after cuInit
        check(f"{name}: nothing else is lost", not losses, lines[-1]["losses"])
        with open(log, encoding="utf-8") as file:
            known = {(tuple(one["sizes"]), one["k"], one["batch"]): one["count"] for one in map(json.loads, file)}
        answer = answer_of(machine)
        found = of_answer(answer)
        missing = {key: (found[key], count) for key, count in known.items() if found[key] != count}
        inside = "--inside" in way
        if inside:
            check(f"{name}: the {sum(known.values())} products that the program knows", not missing, missing)
            check(f"{name}: each has a shape", not answer["without_shape"], answer["without_shape"])
        else:
            check(f"{name}: those of cuBLASLt have no shape", set(answer["without_shape"]) <= {"descriptors"}, answer["without_shape"])
            unknown = sum(answer["without_shape"].values())
            check(f"{name}: no others are missing", sum(count - has for has, count in missing.values()) <= unknown, (missing, unknown))
        products = [line for line in lines if line["type"] == "product"]
        check(f"{name}: each has its stream", all("stream" in line for line in products), [line for line in products if "stream" not in line][:3])
        if inside and logged:
            traced = collections.Counter(stored(line) for line in products if line["op"] == "matmul")
            check(f"{name}: as cuBLASLt's own log has them", not traced - logged, (traced - logged, logged - traced))
        if "--gpu" in way:
            timed = sum(row["timed"] for row in answer["products"])
            check(f"{name}: each has its kernels", not answer["without_kernel"] and timed == sum(found.values()), (timed, sum(found.values())))
            over = [row for row in answer["products"] if "bound" in row and "roof_percent" not in row and row["bound"] == "compute"]
            check(f"{name}: none is faster than the GPU", not over, over)
            print(f"        tiles: {answer['tiles_agree']} agree, {answer['tiles_differ']} differ; of no product: "
                  f"{answer['kernels_without_product']}; ambiguous: {answer['ambiguous_kernels']}")
        print(f"        {len(products)} calls, {len(logged)} shapes in cuBLASLt's log")
    by_counters(machine, check, workloads)


def by_counters(machine, check, workloads):
    """Products that keep the GPU busy for long enough need most of what its counters say, and no more."""
    name = "shapes, by the GPU's counters"
    status, _ = machine.traced(sys.executable, f"{workloads}/loops.py", "--only", "matmul", "--rounds", "10", flags=("--inside", "--gpu"))
    check(f"{name}: status", status == 0, status)
    check_counters(name, answer_of(machine), check)


def check_counters(name, answer, check):
    tensor, memory = (answer.get("counters", {}).get(what, {}) for what in ("tensor", "memory"))
    check(f"{name}: tensor cores", not tensor.get("contradicted", True) and tensor["needed_us"] > 0.5 * tensor["counted_us"], tensor)
    check(f"{name}: memory", not memory.get("contradicted", True) and memory["counted_us"] > memory["needed_us"] > 0, memory)
    print(f"        needed of what was counted: {tensor} {memory}")
