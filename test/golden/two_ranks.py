"""Writes the traces of two ranks that train on a GPU each: gradients are summed by all_reduce on a stream of their own, in part
while the backward pass still computes; then parameters are gathered, and a group exchanges what is at the borders. A toy GPU
gives the times. Rank 1 comes 3 ms late to every step.
usage: two_ranks.py > traces/example-ranks.jsonl (both ranks), or two_ranks.py RANK (one of them)"""
import json
import random
import re
import sys

STEPS, LATE = 30, 3_000  # µs
BUCKETS = 4
MIB = 1 << 20
random.seed(7)
ids, groups = 0, 0


def us(value):
    return int(value * 1000)


class Rank:
    def __init__(self, number):
        self.number, self.pid, self.now, self.lines = number, 4200 + number, us(1000), []
        self.seq = {}
        self.free = {}  # ns, by stream
        self.works = {}  # the time at which the ranks' work on a collective could begin

    def emit(self, line, written=None):
        """Lines are written when their calls have returned, those of GPUs 100 ms after their work."""
        at = written if written is not None else line["ts"]
        self.lines.append((at, len(self.lines), json.dumps(line, separators=(",", ":"))))

    def call(self, group, operation, name, took, identifier=None, **more):
        global ids  # pylint: disable=global-statement
        if identifier is None:
            ids += 1
            identifier = ids
        self.emit({"id": identifier, "type": group, "op": operation, "name": name, "ts": self.now, "duration_us": took,
                   "pid": self.pid, "tid": self.pid, "ret": 0, **more}, self.now + us(took))
        self.now += us(took)
        return identifier

    def ran(self, call_id, begin, took, stream, name):
        self.emit({"type": "gpu", "op": "kernel", "ts": begin, "duration_us": took / 1000, "pid": self.pid, "call": call_id,
                   "stream": stream, "queue": 7 if stream == "0x0" else 9, "kernel": name, "grid": [64, 1, 1],
                   "block": [256, 1, 1], "shared": 0, "device": 0}, begin + took + us(100_000))
        self.free[stream] = begin + took

    def launch(self, name, stream, within=None):
        more = {"within": within} if within else {}
        return self.call("kernel", "launch", "cuLaunchKernelEx" if within else "cuLaunchKernel", 3, stream=stream,
                         **{"async": True}, kernel=name, grid=[64, 1, 1], block=[256, 1, 1], shared=0, **more)

    def compute(self, name, took):
        issued = self.now
        call_id = self.launch(name, "0x0")
        self.ran(call_id, max(issued + us(4), self.free.get("0x0", 0) + us(1.5)), us(took), "0x0", name)

    def collective(self, operation, size, kernel, group=None, **more):
        """Returns a collective whose kernel can begin when this rank has computed so far."""
        global ids  # pylint: disable=global-statement
        ids += 1
        identifier, seq = ids, self.seq.get(operation if "peer" in more else "", 0) + 1
        self.seq[operation if "peer" in more else ""] = seq
        issued = self.now
        launched = None if group else self.launch(kernel, "0x5500", within=identifier)
        self.now = issued
        function = {"all_reduce": "ncclAllReduce", "all_gather": "ncclAllGather", "send": "ncclSend", "recv": "ncclRecv"}
        if group:
            more["call_group"] = group
        self.call("collective", operation, function[operation], 8, identifier, library="nccl", layer=1, size=size,
                  stream="0x5500", communicator=self.number + 1, rank=self.number, ranks=2, seq=seq, count=size // 2,
                  datatype="bfloat16", **more, args={"comm": "0x55d0c8a0"})
        return {"call": launched, "ready": max(issued + us(5), self.free.get("0x0", 0)), "kernel": kernel, "size": size}

    def group(self):
        """Sends and receives in a group: one kernel."""
        global ids, groups  # pylint: disable=global-statement
        groups += 1
        for operation in ("send", "recv"):
            one = self.collective(operation, 256 << 10, "", group=groups, peer=1 - self.number)
        ids += 1
        end, kernel = ids, "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
        begun = self.now
        launched = self.launch(kernel, "0x5500", within=end)
        self.now = begun
        self.call("group", "end", "ncclGroupEnd", 6, end, library="nccl", layer=1, call_group=groups)
        return {"call": launched, "ready": one["ready"], "kernel": kernel, "size": 512 << 10}


def run_together(ranks, ones):
    """All kernels of a collective end at once: when the last has come, and the bytes are transferred."""
    begins = [max(one["ready"], rank.free.get("0x5500", 0) + us(1.5)) for rank, one in zip(ranks, ones)]
    end = max(begins) + us(6 + ones[0]["size"] / 200_000) + random.randrange(us(2))
    for rank, one, begin in zip(ranks, ones, begins):
        rank.ran(one["call"], begin, end - begin, "0x5500", one["kernel"])


def step(ranks, number):
    for rank in ranks:
        rank.now = max(rank.now, max(rank.free.values(), default=0) + us(40))
        if rank.number == 1 and number:
            rank.now += us(LATE) + random.randrange(us(60))
    for layer in range(6):
        for rank in ranks:
            rank.compute("forward_gemm", 300 + layer)
    for bucket in range(BUCKETS):
        for rank in ranks:
            rank.compute("backward_gemm", 420)
        ones = [rank.collective("all_reduce", 32 * MIB, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                                reduction="sum") for rank in ranks]
        run_together(ranks, ones)
        if bucket + 1 < BUCKETS:
            for rank in ranks:
                rank.compute("backward_gemm", 60)
    run_together(ranks, [rank.group() for rank in ranks])
    run_together(ranks, [rank.collective("all_gather", 4 * MIB,
                                         "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)") for rank in ranks])
    for rank in ranks:
        took = max(us(2), max(rank.free.values()) + us(6) - rank.now) / 1000
        rank.call("sync", "ctx", "cuCtxSynchronize", took)


def written(ranks):
    for rank in ranks:
        rank.emit({"type": "process", "op": "start", "ts": 10, "pid": rank.pid, "ppid": 4100, "uid": 1000, "comm": "train.py"}, 0)
        rank.emit({"type": "gpu", "op": "times", "ts": 20, "pid": rank.pid, "cupti": "13.0.1",
                   "path": "/usr/lib/libcupti.so.13", "graphs": "nodes"}, 1)
        rank.emit({"type": "collective", "op": "comm", "ts": 30, "pid": rank.pid, "communicator": rank.number + 1,
                   "identity": "0x5f1c0d2a77e3b941", "rank": rank.number, "ranks": 2, "device": 0}, 2)
    for number in range(STEPS):
        step(ranks, number)


def main():
    ranks = [Rank(0), Rank(1)]
    written(ranks)
    shown = [ranks[int(sys.argv[1])]] if len(sys.argv) > 1 else ranks
    lines = [line for _, _, line in sorted(line for rank in shown for line in rank.lines)]
    began_earlier = us(5_000) * shown[-1].number if len(shown) == 1 else 0  # each rank's trace begins at a time of its own
    if began_earlier:
        lines = [re.sub(r'"ts":(\d+)', lambda ts: f'"ts":{int(ts[1]) + began_earlier}', line) for line in lines]
    calls = sum(line.startswith('{"id"') for line in lines)
    end = max(at for rank in shown for at, _, _ in rank.lines) + began_earlier
    name = {"RANK": shown[0].number, "WORLD_SIZE": 2} if len(shown) == 1 else None
    header = {"type": "trace", "format": "cudabpf-trace", "format_version": "2.0", "version": "0.1.0", "host": "example",
              "linux": "6.12.0", "arch": "x86_64", "boot_id": "11111111-2222-3333-4444-555555555555", "driver": "580.159.04",
              "gpus": [{"index": rank.number, "name": "NVIDIA H200", "uuid": f"GPU-{rank.number}",
                        "bus_id": f"0000:0{6 + rank.number}:00.0"} for rank in shown],
              "mode": "run", "source": "inside", "command": ["torchrun", "--nproc-per-node", "2", "train.py"], "pids": [],
              "profile": "default", "left_out": [], "returns": True, "follow": True, "gpu_timing": "nodes",
              "ring_size": 4194304,
              "clocks": {"realtime_ns": 1795846406975824250 - began_earlier, "monotonic_ns": 31415604687 - began_earlier,
                         "boottime_ns": 31415604687 - began_earlier, "namespace_monotonic_ns": 0, "namespace_boottime_ns": 0},
              **({"rank": name} if name else {})}
    print(json.dumps(header, separators=(",", ":")))
    print("\n".join(lines))
    print(json.dumps({"type": "end", "ts": end, "lines": len(lines) + 2, "duration_ns": end, "calls": calls, "unfinished_calls": 0,
                      "losses": {}, "accounts": {"entered": 2 * calls, "emitted": 2 * calls, "dropped": 0, "received": 2 * calls},
                      "command_status": 0, "reason": "command ended"}, separators=(",", ":")))


if __name__ == "__main__":
    main()
