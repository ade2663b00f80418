#!/usr/bin/env python3
"""Makes a long trace from a short one, to try readers on: repeats what a program does, on several
threads.

Takes the calls that a program repeats from the recorded trace (no initialization, no loading of code,
no ioctls, no GPU operations) and writes them until there are enough: times and ids rise, threads interleave, lines are
in the order in which calls end, and each round frees what it allocated.
usage: gen-long-trace.py TRACE OUTPUT [options]"""
import argparse
import json
import pathlib
import subprocess

REPEATED = {"kernel", "memory", "transfer", "sync", "query", "event", "stream", "graph"}
ID, TS = "\0id\0", "\0ts\0"  # placeholders for numbers that differ from round to round
BETWEEN = 20_000  # ns between rounds, and between the beginnings of threads


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", help="a recorded trace, plain or .zst")
    parser.add_argument("output", help="the file to write, plain")
    parser.add_argument("--calls", type=int, default=10_000_000, help="how many [10000000]")
    parser.add_argument("--threads", type=int, default=4, help="how many [4]")
    parser.add_argument("--name-bytes", type=int, default=0, metavar="N", help="cut kernels' names to N bytes [0: do not]")
    return parser.parse_args()


def lines_of(path):
    if path.endswith(".zst"):
        text = subprocess.run(["zstd", "-dcq", path], check=True, stdout=subprocess.PIPE).stdout
    else:
        text = pathlib.Path(path).read_bytes()
    return [json.loads(line) for line in text.splitlines()]


def nanoseconds(call):
    return round(call.get("duration_us", 0) * 1000)


def repeated_calls(lines, name_bytes):
    """What one thread does in a round, from ts 0; it frees at the end whatever it has allocated."""
    calls = [line for line in lines
             if "id" in line and (line["type"] in REPEATED or line["op"] == "get_function") and "parent" not in line]
    first = min(call["ts"] for call in calls)
    held, kernels = {}, {}
    for call in calls:
        call["ts"] -= first
        if len(call.get("kernel", "")) > name_bytes > 0:  # they must still differ when cut
            call["kernel"] = call["kernel"][:name_bytes - 4] + f"~{kernels.setdefault(call['kernel'], len(kernels)):03}"
        if call["type"] == "memory" and call.get("ptr"):
            if call["op"] == "alloc":
                held[call["ptr"]] = call
            elif call["op"] == "free":
                held.pop(call["ptr"], None)
    end = max(call["ts"] + nanoseconds(call) for call in calls)
    for ptr, alloc in held.items():
        calls.append({"id": 0, "type": "memory", "op": "free", "name": "cuMemFree", "symbol": "cuMemFree_v2", "ts": end,
                      "duration_us": 1.5, "pid": alloc["pid"], "tid": alloc["tid"], "ret": 0, "ptr": ptr,
                      "kind": alloc.get("kind", "device")})
        end += 2000
    return calls, end


def one_round(calls, length, threads):
    """The lines of a round as one text with placeholders for ids and times; the values to fill in,
    counted from the round's beginning; and the round's length."""
    placed = []
    for thread in range(threads):
        for call in calls:
            copy = dict(call, ts=call["ts"] + thread * BETWEEN, tid=call["pid"] + thread)
            if thread and copy["type"] == "memory" and "ptr" in copy:
                copy["ptr"] = hex(int(copy["ptr"], 16) + (thread << 44))
            placed.append(copy)
    placed.sort(key=lambda call: call["ts"])
    for number, call in enumerate(placed):
        call["id"] = number
    placed.sort(key=lambda call: call["ts"] + nanoseconds(call))
    text, offsets = "", []
    for call in placed:
        offsets += [call["id"], call["ts"]]
        # cudabpf writes durations with three decimals.
        duration = f'"duration_us":{call["duration_us"]:.3f}' if "duration_us" in call else None
        line = json.dumps(dict(call, id=ID, ts=TS), separators=(",", ":"), ensure_ascii=False)
        if duration:
            line = line.replace(f'"duration_us":{json.dumps(call["duration_us"])}', duration)
        text += line + "\n"
    text = text.replace("%", "%%")
    for place in (ID, TS):
        text = text.replace(json.dumps(place), "%d")
    return text, offsets, length + threads * BETWEEN


def main():
    options = parse_arguments()
    lines = lines_of(options.trace)
    header = next(line for line in lines if line["type"] == "trace")
    for what in ("driver_traced", "driver_way", "gpu_timing", "sampling"):  # readers would wait for their lines
        header.pop(what, None)
    process = next(line for line in lines if line["type"] == "process")
    text, offsets, length = one_round(*repeated_calls(lines, options.name_bytes), options.threads)
    each = len(offsets) // 2
    ids, times = offsets[::2], offsets[1::2]
    numbers = offsets[:]
    with open(options.output, "w", encoding="utf-8", buffering=1 << 20) as output:
        for line in (header, process):
            output.write(json.dumps(line, separators=(",", ":")) + "\n")
        written, ts = 0, process["ts"]
        while written < options.calls:
            numbers[::2] = [id + written + 1 for id in ids]
            numbers[1::2] = [time + ts for time in times]
            lines_now = text % tuple(numbers)
            if options.calls - written < each:  # the last round is cut short
                lines_now = "".join(lines_now.splitlines(True)[:options.calls - written])
            output.write(lines_now)
            written += min(each, options.calls - written)
            ts += length
        end = {"type": "end", "ts": ts, "lines": written + 3, "duration_ns": ts, "calls": written, "unfinished_calls": 0, "losses": {}}
        output.write(json.dumps(end, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
