"""Blocks of PyTorch's allocator, by its probes, against what it says itself: what tensors asked for, and what is reserved."""
import json
import subprocess
import sys

import toolkit

# Says how much there is when most is allocated, and at the end, which the allocator does not clear up; no size fits a block exactly.
PROGRAM = """
import json, os, sys, torch
def figures():
    torch.cuda.synchronize()
    blocks = [block for segment in torch.cuda.memory_snapshot() for block in segment["blocks"]]
    return {"allocated": torch.cuda.memory_stats()["requested_bytes.all.current"], "reserved": torch.cuda.memory_reserved(),
            "blocks": sum(block["state"] == "active_allocated" for block in blocks)}
kept = [torch.empty(size, dtype=torch.uint8, device="cuda") for size in (1, 513, 1 << 20, (7 << 20) + 3, 100 << 20, (300 << 20) + 1)]
most = figures()
del kept[1], kept[3]
kept.append(torch.empty(999, dtype=torch.uint8, device="cuda"))
with open(sys.argv[1], "w", encoding="utf-8") as file:
    json.dump({"most_allocated": most, "end": figures()}, file)
os._exit(0)
"""


def run(machine, check, skipped):
    if not toolkit.sees_gpu("torch"):
        skipped("blocks", "it takes PyTorch")
        return
    said = f"{machine.folder}/blocks.json"
    status, lines = machine.traced(sys.executable, "-c", PROGRAM, said, flags=("--blocks",))
    check("blocks: status", status == 0, status)
    library = next((line for line in [*lines[0]["libraries"], *lines] if line.get("library") == "c10"), {})
    if "error" in library:
        skipped("blocks", library["error"])
        return
    losses = {reason for reason in lines[-1]["losses"] if reason != "late_library"}  # it is loaded by Python
    check("blocks: nothing else is lost", library and not losses, lines[-1]["losses"])
    with open(said, encoding="utf-8") as file:
        known = json.load(file)
    answer = json.loads(subprocess.run([machine.cudabpf, "memory", "--json", machine.path], check=True, stdout=subprocess.PIPE).stdout)
    of_gpu = answer["memory"]["blocks"]["allocators"][0]
    found = {moment: {what: of_gpu[moment][what] for what in figures} for moment, figures in known.items()}
    check("blocks: allocated and reserved, as PyTorch says", found == known, (found, known))
