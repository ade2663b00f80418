"""What a call's line must say, according to the simulated driver's record of that call and the function table.

Written from docs/trace-format.md, not from the program: if the two disagree, a test fails.
"""
import collections
import os
import re
import struct
import subprocess

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../include/cudabpf/apis/cuda.tsv")
RECORDED_WORDS = 24
RECORDED_OUTS = 2
STRING_LIMIT = 4095
STRUCT_LIMIT = 200
SIGNED = {"i32", "device"}
NARROW = {"u8": 8, "u16": 16, "u32": 32, "i32": 32, "device": 32, "ptr32": 32}
ADDRESSES = {"ptr", "ptr32", "hptr"}
NUMBERS = {"u8", "u16", "u32", "u64", "i32", "device"}
LOCATIONS = ["invalid", "device", "host", "host_numa", "host_numa_current"]
MEMORY_LETTER = {1: "H", 2: "D", 3: "A"}
DIMENSIONS = re.compile(r"gridDim|blockDim|grid_|sharedMemBytes")
ERRORS = {1: "CUDA_ERROR_INVALID_VALUE", 2: "CUDA_ERROR_OUT_OF_MEMORY", 100: "CUDA_ERROR_NO_DEVICE",
          400: "CUDA_ERROR_INVALID_HANDLE", 500: "CUDA_ERROR_NOT_FOUND", 600: "CUDA_ERROR_NOT_READY",
          700: "CUDA_ERROR_ILLEGAL_ADDRESS", 719: "CUDA_ERROR_LAUNCH_FAILED", 999: "CUDA_ERROR_UNKNOWN",
          401: "CUDA_ERROR_ILLEGAL_STATE", 801: "CUDA_ERROR_NOT_SUPPORTED", 910: "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
          4242: "unknown (4242)"}
for number, what in ((900, "UNSUPPORTED"), (901, "INVALIDATED"), (902, "MERGE"), (903, "UNMATCHED"), (904, "UNJOINED"),
                     (905, "ISOLATION"), (908, "WRONG_THREAD")):
    ERRORS[number] = f"CUDA_ERROR_STREAM_CAPTURE_{what}"

Function = collections.namedtuple("Function", "symbol name type op profile arguments attrs")


def read_table():
    functions = {}
    with open(TABLE, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file if line.strip() and not line.startswith("#")]
    for row in rows[1:]:
        symbol, name, kind, operation, profile, arguments, attrs = row + [""] * (7 - len(row))
        pairs = [tuple(part.strip().split(":")) for part in arguments.split(",")
                 if part.strip() and "@" not in part]  # a struct that another points to is no argument
        attributes = dict(part.partition("=")[::2] for part in attrs.split())
        functions[symbol] = Function(symbol, name, kind, operation, profile, pairs, attributes)
    return functions


FUNCTIONS = read_table()
BY_DEFAULT = {symbol for symbol, function in FUNCTIONS.items() if function.profile != "full"}
_demangled = {}  # a test may add names that c++filt cannot handle


def add_demangled(mangled, demangled):
    _demangled[mangled] = demangled


def demangle(name):
    if len(name) > STRING_LIMIT:  # longer than what is read of it
        return name[:STRING_LIMIT] + "…"
    if name not in _demangled:
        done = subprocess.run(["c++filt"], input=name + "\n", text=True, check=True, stdout=subprocess.PIPE)
        _demangled[name] = done.stdout.rstrip("\n")
    return _demangled[name]


def render(role, value):
    """A value as `args` shows it."""
    if role == "f32":
        return struct.unpack("f", struct.pack("I", value))[0]
    if role in NARROW:
        value &= (1 << NARROW[role]) - 1
    if role in SIGNED and value >= 1 << 31:
        value -= 1 << 32
    if role == "location":
        number = value >> 32
        return {"type": LOCATIONS[value & 0xffffffff], "id": number - (1 << 32) if number >> 31 else number}
    return value if role in NUMBERS else hex(value)


MAKE_CURRENT = {"cuCtxCreate", "cuCtxSetCurrent", "cuCtxPushCurrent"}
DEVICE_CALLS = MAKE_CURRENT | {"cuDevicePrimaryCtxRetain", "cuCtxPopCurrent", "cuCtxDestroy", "cuCtxDetach", "cuStreamCreate"}


def works_on_one_device(function):
    """Whether it works on one device without naming it."""
    if function.type == "memory":
        return "pool" not in {role for _, role in function.arguments} and (
            function.op == "set" or (function.op == "alloc" and function.attrs.get("kind") in ("device", "async", "managed")))
    if function.type in ("kernel", "graph"):
        return function.op == "launch"
    return (function.type, function.op) not in {("sync", "event"), ("transfer", "peer")} and function.type in ("transfer", "sync")


class Expectation:
    """Follows one process's calls in the order in which they returned."""

    def __init__(self, symbols=None, frees_traced=True):
        self.frees_traced = frees_traced  # every function that frees is traced
        names = None if symbols is None else {FUNCTIONS[symbol].name for symbol in symbols if symbol in FUNCTIONS}
        self.devices_known = names is None or DEVICE_CALLS <= names
        self.captures_known = symbols is None or BY_DEFAULT <= set(symbols)
        self.streams, self.contexts = {}, {}  # the device of each
        self.sizes = {}  # of held memory, by address
        self.lies_on = {}  # the device of each, where a trace can know it
        self.handles = {}  # the device of physical memory
        self.names = {}  # of kernels, by handle
        self.current = set()  # threads that have made a context current
        self.devices = set()  # devices with contexts that calls have named

    def line(self, call):
        """(fields, arguments): each of `arguments` may be in `args` or given by a field."""
        function = FUNCTIONS[call["symbol"]]
        self.read_words(function, call)
        fields = {"type": function.type, "op": function.op, "name": function.name, "ret": call["ret"],
                  "tid": call["tid"]}
        if function.name != function.symbol:
            fields["symbol"] = function.symbol
        if call["ret"]:
            fields["error"] = ERRORS[call["ret"]]
        if "kind" in function.attrs:
            fields["kind"] = function.attrs["kind"]
        if "async" in function.attrs:
            fields["async"] = True
        self.add_fields(function, call, fields)
        self.add_struct(function, call, fields)
        self.add_device(function, call, fields)
        if self.captures_known and call.get("captured"):
            fields["captured"] = True
        if function.type == "transfer":
            self.add_devices_of_ends(function, fields)
        if function.type == "memory" and call["ret"] == 0:
            self.follow(function, fields)
            self.follow_devices(function, fields)
        if function.attrs.get("names") == "learn" and call["ret"] == 0:
            handle = hex(call["outs"][0])
            self.names[handle] = call["strings"][0] if "strings" in call else self.names.get(hex(call["args"][1]))
        return fields, self.shown

    def read_words(self, function, call):
        """Every argument's value by name: what went in, what came out, what is shown."""
        words, outs, strings = iter(call["args"]), iter(call["outs"]), iter(call.get("strings", []))
        self.values, self.outs, self.shown = {}, {}, {}
        word, out_number, text_shown = 0, 0, False
        for name, role in function.arguments:
            if role == "f32" or re.fullmatch(r"mem\d+", role):
                continue
            value = next(words)
            recorded = word < RECORDED_WORDS
            word += 1
            if role.startswith("out."):
                out = next(outs, None)
                if recorded and out_number < RECORDED_OUTS and out is not None:
                    self.outs[name] = out
                    self.shown[name] = render(role[4:], out)
                out_number += 1
            elif role in ("str", "path"):
                text = next(strings)
                if recorded and not text_shown and text is not None:
                    self.shown[name] = text[:STRING_LIMIT]
                text_shown = True
            elif role not in ("addr", "outbuf") and not role.startswith("in.") and recorded:
                self.values[name] = value
                self.shown[name] = render(role, value)

    def inputs(self, function, roles):
        return [self.values[name] for name, role in function.arguments if role in roles and name in self.values]

    def add_fields(self, function, call, fields):
        launch = function.type == "kernel" and function.op == "launch"
        for field, roles in (("stream", {"stream"}), ("device", {"device"}), ("handle", {"mem_handle"})):
            found = self.inputs(function, roles)
            if found:
                fields[field] = render(field, found[-1]) if field != "device" else render("device", found[0])
        addresses = self.inputs(function, ADDRESSES)
        if function.type == "transfer":
            for name, role in function.arguments:
                if role in ADDRESSES and name in self.values:
                    fields["src" if name.startswith("src") else "dst"] = hex(self.values[name])
        elif addresses and not launch:
            fields["ptr"] = hex(addresses[0])
        if function.type == "memory":
            for name, role in function.arguments:
                if role[4:] in ADDRESSES and name in self.outs:
                    fields["ptr"] = hex(self.outs[name])
                if role == "out.mem_handle" and name in self.outs:
                    fields["handle"] = hex(self.outs[name])
        size = self.size(function.attrs.get("size"), call)
        if size is not None:
            fields["size"] = size
        if launch:
            self.add_launch(function, call, fields)

    def add_device(self, function, call, fields):
        """Which device it is, according to the driver; whether a trace can know depends on earlier calls."""
        if function.type == "context" and call["ret"] == 0:
            if function.name in MAKE_CURRENT:
                self.current.add(call["tid"])
            if "device" in fields and call["outs"]:
                self.contexts[call["outs"][0]] = fields["device"]
            if "device" in fields:
                self.devices.add(fields["device"])
        current = call.get("device") if call["tid"] in self.current and call.get("device") in self.devices else None
        if function.type == "stream" and function.op == "create" and call["ret"] == 0:
            self.streams[hex(call["outs"][0])] = current
        if not works_on_one_device(function) or not self.devices_known:
            return
        stream = fields.get("stream", "0x0")
        device = current if int(stream, 16) <= 2 else self.streams.get(stream)
        if "context" in {role for _, role in function.arguments}:
            device = None if call["args"][0] not in self.contexts else self.contexts[call["args"][0]]
        if device is not None:
            fields.setdefault("device", device)

    def device_of(self, address, size):
        """Adds the device of every byte."""
        address, devices = int(address, 16), set()
        while size > 0:
            start = next((at for at in self.lies_on if 0 <= address - int(at, 16) < self.sizes.get(at, 0)), None)
            devices.add(self.lies_on.get(start))
            if start is None:
                break
            left = int(start, 16) + self.sizes[start] - address
            address, size = address + left, size - left
        return devices.pop() if len(devices) == 1 else None

    def add_devices_of_ends(self, function, fields):
        plain = "size" in function.attrs  # not given for rows that a struct describes
        ends = {f"{end}_device": self.device_of(fields[end], fields["size"]) for end in ("src", "dst") if end in fields and plain}
        known = set(ends.values())
        if len(ends) == 2 and None not in known and (len(known) == 2 or function.op == "peer"):
            fields.update(ends)

    def size(self, rule, call):
        if not rule:
            return None
        if rule == "sum(sizes,count)":
            sizes = call["sizes"][0]
            return sum(sizes) if len(sizes) * 8 <= STRUCT_LIMIT else None
        size = 1
        for factor in rule.split("*"):
            value = int(factor) if factor.isdigit() else self.values.get(factor, self.outs.get(factor))
            if value is None:
                return None
            size *= value
        return size

    def add_launch(self, function, call, fields):
        handles = self.inputs(function, {"function"})
        if handles:
            fields["handle"] = hex(handles[0])
        dims = [self.values[name] for name, _ in function.arguments if name in self.values and DIMENSIONS.match(name)]
        if len(dims) == 7:
            fields.update(grid=dims[0:3], block=dims[3:6], shared=dims[6])
        if call.get("kernels", [None])[0]:
            fields["kernel"] = demangle(call["kernels"][0])

    def add_struct(self, function, call, fields):
        layouts = [role[3:] for _, role in function.arguments if role.startswith("in.") and role != "in.sizes"]
        if not layouts or not call.get("structs") or call["structs"][0] is None:
            return
        words = call["structs"][0]
        if layouts[0].startswith("memcpy"):
            self.add_copy(layouts[0], words, fields)
        elif layouts[0] in ("alloc_prop", "pool_props"):
            fields["device"] = render("device", words[1] >> 32)
        elif layouts[0] == "launch_config":
            self.add_grid(words, 0, fields)
            fields["shared"] = words[3] & 0xffffffff
            fields["stream"] = hex(words[4])
        elif layouts[0] in ("kernel_node", "kernel_node_v1"):
            self.add_kernel_node(words, fields)
        elif layouts[0] == "memset_node":
            self.add_fill_node(words, fields)
        elif layouts[0] == "alloc_node":
            fields["size"] = words[13]
        elif layouts[0] == "graph_node":
            self.add_node(words[0] & 0xffffffff, words[2:], fields)

    def add_node(self, kind, words, fields):
        """What a CUgraphNodeParams holds."""
        if kind == 0:
            self.add_kernel_node(words, fields)
        elif kind == 1:
            self.add_copy("memcpy3d", words[2:], fields)
        elif kind == 2:
            self.add_fill_node(words, fields)
        elif kind == 10:
            fields["size"] = words[13]

    def add_kernel_node(self, words, fields):
        fields["handle"] = hex(words[0] or words[7])
        self.add_grid(words, 1, fields)
        fields["shared"] = words[4] & 0xffffffff
        if self.names.get(fields["handle"]):
            fields["kernel"] = demangle(self.names[fields["handle"]])

    @staticmethod
    def add_fill_node(words, fields):
        fields["size"] = (words[2] >> 32) * words[3] * words[4]

    @staticmethod
    def add_grid(words, at, fields):
        halves = [half for word in words[at:at + 3] for half in (word & 0xffffffff, word >> 32)]
        fields.update(grid=halves[:3], block=halves[3:])

    @staticmethod
    def add_copy(layout, words, fields):
        source, destination = (2, 9) if layout == "memcpy2d" else (4, 15)
        letters = []
        for key, at in (("src", source), ("dst", destination)):
            kind = words[at] & 0xffffffff
            fields[key] = hex(words[at + {1: 1, 3: 3}.get(kind, 2)])
            letters.append(MEMORY_LETTER.get(kind))
        sizes = words[14:16] if layout == "memcpy2d" else words[22:25]
        fields["size"] = 1
        for size in sizes:
            fields["size"] *= size
        if fields["type"] == "graph":  # it adds or sets a node
            return
        if layout == "memcpy3d_peer":
            fields["op"] = "peer"
        else:
            fields["op"] = "to".join(letters) if all(letters) else "unified"

    def follow(self, function, fields):
        """A free reports the size of what was allocated at its address."""
        if function.op in ("alloc", "map", "register") and "size" in fields and "ptr" in fields:
            self.sizes[fields["ptr"]] = fields["size"]
        elif function.op in ("free", "unmap", "unregister") and fields.get("ptr") in self.sizes:
            if self.frees_traced:
                fields.setdefault("size", self.sizes[fields["ptr"]])
            del self.sizes[fields["ptr"]]


    def follow_devices(self, function, fields):
        kind, handle, at = function.attrs.get("kind"), fields.get("handle"), fields.get("ptr")
        if handle and not at and function.op in ("alloc", "free"):
            self.handles[handle] = fields.get("device")
        elif at in self.sizes and function.op in ("alloc", "map"):
            self.lies_on[at] = fields.get("device", self.handles.get(handle)) if kind not in ("host", "managed") else None


OF_GRAPHS = ("graph", "nodes", "kernels", "graph_unknown")  # these are checked for every trace
ARGUMENT_FIELDS = ("size", "ptr", "dst", "src", "stream", "handle", "device", "shared")


def same(reported, value):
    if isinstance(value, float):  # it was a float: seven digits identify it
        return struct.pack("f", reported) == struct.pack("f", value)
    return reported == value


def given_by_size(name, line, call):
    """`size` is that many times the argument."""
    rule = FUNCTIONS[call["symbol"]].attrs.get("size", "")
    return "size" in line and re.fullmatch(rf"{name}(\*\d+)?", rule)


def brief(wrong):
    """A name of 4,000 characters helps no reader."""
    return [re.sub(r"(\w{60})\w{40,}", r"\1~", text) for text in wrong]


def differences(line, call, expectation, pid, clock):
    """What is wrong with a call's line: [] if nothing."""
    fields, arguments = expectation.line(call)
    wrong = []
    # The driver does not know who asked; test/memory does.
    left_out = ("id", "ts", "duration_us", "args", "parent", "text_cut", "inferred", "holder", *OF_GRAPHS)
    reported = {k: v for k, v in line.items() if k not in left_out}
    if call["ret"]:
        reported.pop("captured", None)  # it was not
    if line.get("inferred") and fields["op"] == "unified":
        fields["op"] = line["op"]
    if reported != {**fields, "pid": pid}:
        wrong.append(f"fields {reported}, not {fields}")
    cut = any(len(text) > STRING_LIMIT for text in call.get("strings", []) if text)
    if line.get("text_cut", False) != cut:
        wrong.append("text_cut")
    in_fields = [line[key] for key in ARGUMENT_FIELDS if key in line] + line.get("grid", []) + line.get("block", [])
    for name, value in arguments.items():
        if name in line.get("args", {}):
            if not same(line["args"][name], value):
                wrong.append(f"args.{name} is {line['args'][name]}, not {value}")
        elif value not in in_fields and not given_by_size(name, line, call):
            wrong.append(f"args.{name} is missing: {value}")
    if set(line.get("args", {})) - set(arguments):
        wrong.append(f"args {line['args']}, of which only {arguments} were given")
    begin = clock + line["ts"]
    end = begin + round(line["duration_us"] * 1000)
    if not begin <= call["begin_ns"] <= call["end_ns"] <= end:
        wrong.append(f"it ran from {call['begin_ns']} to {call['end_ns']}, not {begin} to {end}")
    return [f"{call['symbol']}: {text}" for text in wrong]


def takes_effect(call):
    """When other threads can see what a call did. As soon as one thread's free has begun, another may get its
    memory, and return with it before the free returns."""
    return call["begin_ns"] if FUNCTIONS[call["symbol"]].op == "free" else call["end_ns"]


def check_calls(test, trace, symbols=None):
    """Compares every line of every thread, in order, with the driver's record."""
    for pid, record in test.records().items():
        expectation = Expectation(symbols, "frees" not in trace.header.get("left_out", []))
        calls = [call for call in record.calls if symbols is None or call["symbol"] in symbols]
        lines = [line for line in trace.calls if line["pid"] == pid]
        by_thread = collections.defaultdict(lambda: ([], []))
        for call in calls:
            by_thread[call["tid"]][0].append(call)
        for line in lines:
            by_thread[line["tid"]][1].append(line)
        wrong, pairs = [], []
        for of_thread, lines_of_thread in by_thread.values():
            test.assertEqual([c["symbol"] for c in of_thread], [l.get("symbol", l["name"]) for l in lines_of_thread])
            pairs += zip(of_thread, lines_of_thread)
        clock = trace.header["clocks"]["monotonic_ns"]
        for call, line in sorted(pairs, key=lambda pair: takes_effect(pair[0])):
            wrong += differences(line, call, expectation, pid, clock)
        test.assertEqual(brief(wrong), [])
