"""Programs that use NCCL, as lists of steps, and what a trace must say of them by the log of the simulated NCCL."""
import collections

# Steps: [function, argument...]. A string argument is the name of a communicator; where a function makes one, its name.
PROGRAM = """
import ctypes, json, os, signal, sys, threading, time
cuda = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
copies = [ctypes.CDLL(path) for path in sys.argv[2].split(",")]
class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 128)]
word, half = ctypes.c_uint64, ctypes.c_int
graph, launched, other, event = (word() for _ in range(4))
cuda.cuInit(0)
used, made = {}, {}
def use(device):  # each has a stream of its own
    global stream
    if device not in used:
        used[device] = context, stream = word(), word()
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
        cuda.cuCtxSetCurrent(context)
        cuda.cuStreamCreate(ctypes.byref(stream), 1)
    context, stream = used[device]
    cuda.cuCtxSetCurrent(context)
use(0)
def identity(seed):
    return Id((ctypes.c_ubyte * 128)(*[(seed * 7 + i) % 256 for i in range(128)]))
def new(name):
    made[name] = word()
    return ctypes.byref(made[name])
def common(nccl, function, count, kind, *more):
    *more, comm = more
    nccl[function](word(0x1000), word(0x2000), word(count), half(kind), *map(half, more), made.get(comm, word(0)), stream)
def step(nccl, function, *arguments):
    global stream, other
    f = nccl[function] if function.startswith("nccl") else getattr(cuda, function, None)
    if function in ("ncclAllReduce", "ncclAllGather", "ncclReduceScatter", "ncclBroadcast", "ncclReduce", "ncclAlltoAll",
                    "ncclGather", "ncclScatter"):
        common(nccl, function, *arguments)
    elif function == "ncclAllReduceConfig":
        count, kind, op, comm = arguments
        f(word(0x1000), word(0x2000), word(count), half(kind), half(op), made[comm], stream, word(0))
    elif function == "ncclBcast":
        count, kind, root, comm = arguments
        f(word(0x1000), word(count), half(kind), half(root), made[comm], stream)
    elif function in ("ncclSend", "ncclRecv"):
        count, kind, peer, comm = arguments
        f(word(0x1000), word(count), half(kind), half(peer), made[comm], stream)
    elif function in ("ncclCommInitRank", "ncclCommInitRankConfig"):
        name, seed, rank, ranks = arguments
        f(new(name), half(ranks), identity(seed), half(rank), *([word(0)] if function.endswith("Config") else []))
    elif function == "ncclCommInitRankScalable":
        name, seed, rank, ranks = arguments
        ids = (Id * 2)(identity(seed), identity(seed + 1))
        f(new(name), half(ranks), half(rank), half(2), ids, word(0))
    elif function == "ncclCommInitAll":
        names, *devices = arguments
        handles = (ctypes.c_uint64 * len(names))()
        f(handles, half(len(names)), (half * len(devices))(*devices) if devices else word(0))
        made.update({name: word(handle) for name, handle in zip(names, handles)})
    elif function == "ncclCommSplit":
        name, comm, color, key = arguments
        f(made[comm], half(color), half(key), new(name), word(0))
    elif function == "ncclCommShrink":
        name, comm, *excluded = arguments
        f(made[comm], (ctypes.c_int * len(excluded))(*excluded), half(len(excluded)), new(name), word(0), half(0))
    elif function in ("ncclCommDestroy", "ncclCommAbort", "ncclCommFinalize"):
        f(made[arguments[0]])
    elif function in ("ncclCommUserRank", "ncclCommCount"):
        f(made[arguments[0]], ctypes.byref(half()))
    elif function in ("ncclGroupStart", "ncclGroupEnd"):
        f()
    elif function == "device":
        use(arguments[0])
    elif function == "capture":
        cuda.cuStreamBeginCapture_v2(stream, half(0))
    elif function == "instantiate":
        cuda.cuStreamEndCapture(stream, ctypes.byref(graph))
        cuda.cuGraphInstantiateWithFlags(ctypes.byref(launched), graph, word(0))
    elif function == "launch":
        cuda.cuGraphLaunch(launched, stream)
    elif function == "other stream":  # which waits for this one
        if not other:
            cuda.cuStreamCreate(ctypes.byref(other), 1)
            cuda.cuEventCreate(ctypes.byref(event), 0)
        cuda.cuEventRecord(event, stream)
        cuda.cuStreamWaitEvent(other, event, half(0))
        stream, other = other, stream
    elif function == "fork":
        child = os.fork()
        if not child:
            run(nccl, arguments[0])
            os._exit(0)
        os.waitpid(child, 0)
    elif function == "repeat":
        for _ in range(arguments[0]):
            run(nccl, arguments[1:])
    elif function == "sync":
        cuda.cuStreamSynchronize(stream)
    elif function == "meet":  # so many processes have come so far
        open(f"{os.environ['MEET']}/met.{os.getpid()}", "w").close()
        while sum(name.startswith("met.") for name in os.listdir(os.environ["MEET"])) < arguments[0]:
            time.sleep(0.01)
    elif function == "sleep":
        time.sleep(arguments[0])
    elif function == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif function == "exit":
        os._exit(arguments[0])
    elif function == "wait":
        print("ready", flush=True)
        sys.stdin.readline()
    else:
        raise NotImplementedError(function)
def run(nccl, steps):
    for one in steps:
        step(nccl, *one)
threads = [threading.Thread(target=run, args=(copies[i % len(copies)], steps)) for i, steps in enumerate(json.loads(sys.argv[3]))]
for thread in threads[1:]:
    thread.start()
    thread.join()
threads[0].run()
cuda.cuCtxSynchronize()
"""

TYPES = ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "bfloat16", "float8_e4m3",
         "float8_e5m2")
SIZES = (1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1)
OPS = ("sum", "prod", "max", "min", "avg")
WITH_OP, WITH_ROOT = ("AllReduce", "ReduceScatter", "Reduce"), ("Broadcast", "Bcast", "Reduce", "Gather", "Scatter")
COLLECTIVES = {"AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter", "Broadcast": "broadcast",
               "Bcast": "broadcast", "Reduce": "reduce", "AlltoAll": "all_to_all", "Gather": "gather", "Scatter": "scatter",
               "Send": "send", "Recv": "recv"}


def signed(word):
    return word - (1 << 32) if word >> 31 else word


class Truth:
    """What the lines must say, by the log of the simulated NCCL in one process."""

    def __init__(self, calls):
        self.comms, self.lines, self.groups = {}, [], collections.defaultdict(lambda: [0, None])
        self.number, self.group = 0, 0
        for call in sorted(calls, key=lambda call: call["begin_ns"]):
            if not call["nested"]:
                self.take(call["symbol"].removeprefix("nccl").removesuffix("Config"), call, call["args"])

    def make(self, handle, **known):
        self.number += 1
        self.comms[handle] = {"number": self.number, "count": collections.Counter(), "children": 0, "rank": None, "ranks": None, **known}

    def take(self, name, call, args):
        failed = call["ret"] not in (0, 7)
        group = self.groups[call["tid"]]
        if name == "GroupStart":
            group[0] += 1
            if group[0] == 1:
                self.group += 1
                group[1] = self.group
        elif name in ("CommInitRank", "CommInitRankScalable"):
            self.make(call["outs"][0], identity=call["id"], rank=args[2], ranks=args[1])
        elif name == "CommInitAll":
            for rank, handle in enumerate(call["outs"]):
                self.make(handle, identity=("all", call["begin_ns"]), rank=rank, ranks=args[1])
        elif name in ("CommSplit", "CommShrink"):
            parent = self.comms[args[0]]
            parent["children"] += 1
            if call["outs"][0]:
                color = args[1] if name == "CommSplit" else None
                self.make(call["outs"][0], identity=(name, parent["identity"], parent["children"], color),
                          ranks=None)
        elif name in ("CommDestroy", "CommAbort"):
            del self.comms[args[0]]
        elif name in ("CommUserRank", "CommCount"):
            self.comms[args[0]]["rank" if name == "CommUserRank" else "ranks"] = call["outs"][0]
        elif name in COLLECTIVES:
            self.collective(name, call, args, failed, group[1])
        if name == "GroupEnd" and group[0]:
            group[0] -= 1
            if not group[0]:
                group[1] = None

    def collective(self, name, call, args, failed, group):
        between_two = name in ("Send", "Recv")
        at = 1 if between_two or name == "Bcast" else 2
        count, kind, *more = args[at:]
        comm = more[1] if name in WITH_OP and name not in WITH_ROOT else more[2] if name == "Reduce" else more[1] if (
            name in WITH_ROOT or between_two) else more[0]
        known = self.comms.get(comm)
        line = {"name": call["symbol"], "op": COLLECTIVES[name], "ret": call["ret"], "count": count, "datatype": TYPES[kind],
                "size": count * SIZES[kind], "call_group": group}
        if name in WITH_OP:
            line["reduction"] = OPS[more[0]] if more[0] < len(OPS) else more[0]
        if between_two:
            line["peer"] = signed(more[0])
        elif name in WITH_ROOT:
            line["root"] = more[1] if name == "Reduce" else more[0]
        if known:
            line.update(identity=known["identity"], rank=known["rank"], ranks=known["ranks"])
            if not failed:
                key = (name, line["peer"]) if between_two else None
                known["count"][key] += 1
                line["seq"] = known["count"][key]
        self.lines.append(line)
