"""Capture folders for tests, written as docs/architecture.md and src/bundle describe them."""
import hashlib
import json
import os
import pathlib
import struct
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "fake_libcuda/compute"))
import images  # noqa: E402  pylint: disable=wrong-import-position

PAGE = 2 << 20
UNIT = 32 << 20  # of addresses that the driver reserves
BASE = 0x2A0000000000  # where nothing else is
# Where the parameters of the simulated GPU's kernels lie, and how they are packed.
LAYOUTS = {"fill": "QIf", "fill_in_cluster": "QIf", "add": "QQQI", "scale": "QIf", "sum_rows": "QIIQ", "fill_packed": "=BQI",
           "scale_by_variable": "QI", "count_runs": "Q", "not_deterministic": "QI", "seldom_deterministic": "QI", "advance": "QQ", "fill_in_turn": "QIfQ", "fill_by_counter": "QIfQ", "fault": "", "hang": ""}


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def parameters_of(layout):
    """-> offset and size of each; none for a packed struct, which is one parameter"""
    if layout.startswith("="):
        return [{"offset": 0, "size": struct.calcsize(layout)}]
    places, at = [], 0
    for letter in layout:
        size = struct.calcsize("<" + letter)
        places.append({"offset": at, "size": size})
        at += size
    return places


class Memory:
    """Bytes by their pages."""
    def __init__(self):
        self.pages = {}

    def put(self, address, content):
        while content:
            page, offset = address // PAGE * PAGE, address % PAGE
            now = content[:PAGE - offset]
            self.pages.setdefault(page, bytearray(PAGE))[offset:offset + len(now)] = now
            content, address = content[len(now):], address + len(now)


class Capture:
    def __init__(self):
        self.blocks, self.modules, self.kernels, self.operations = [], [], [], []
        self.images, self.data, self.memory_pages = {}, bytearray(), []
        self.streams = [{"device": 0, "priority": 0, "non_blocking": False}]
        self.before, self.after = Memory(), Memory()
        self.manifest = {"contents": True, "events": 0, "graphs": 0, "limits": [], "refused": []}
        self.layouts = {}

    def extent(self, content):
        self.data += content
        return {"offset": len(self.data) - len(content), "size": len(content)}

    def block(self, address, size, kind="device"):
        self.blocks.append({"address": hex(address), "size": size, "kind": kind, "device": 0})
        return address

    def stream(self, non_blocking=True, priority=0):
        self.streams.append({"device": 0, "priority": priority, "non_blocking": non_blocking})
        return len(self.streams) - 1

    def load(self, names, variables=None, library=True, ptx=False):
        """An image with these kernels. `variables`: by name, what the image says, and what it is before and after."""
        initial = {name: values[0] for name, values in (variables or {}).items()}
        image = images.ptx(names, initial) if ptx else images.fat_binary(images.cubin(names, initial))
        name = hashlib.sha256(image).hexdigest() + (".ptx" if ptx else ".fatbin")
        self.images.setdefault(name, image)
        module = {"image": list(self.images).index(name), "library": library, "options": [], "variables": []}
        for number, (variable, values) in enumerate((variables or {}).items()):
            held = {"name": variable, "address": hex(BASE - UNIT + 256 * number), "size": len(values[0])}
            if values[1] is not None:
                held["before"] = self.extent(values[1])
            if len(values) > 2:
                held["after"] = self.extent(values[2])
            module["variables"].append(held)
        self.modules.append(module)
        return {name: self.kernel(name, len(self.modules) - 1) for name in names}

    def kernel(self, name, module, **more):
        layout = LAYOUTS.get(name, "")
        self.kernels.append({"name": name, "module": module, "attributes": [], "parameters": parameters_of(layout), **more})
        self.layouts[len(self.kernels) - 1] = layout
        return len(self.kernels) - 1

    def operation(self, what, **more):
        self.operations.append({"op": what, "call": 100 + len(self.operations), "stream": 0, "device": 0, "nodes": [], **more})

    def launched(self, kernel, *values, attributes=None, **more):
        layout = self.layouts[kernel]
        given = {"kernel": kernel, "grid": [1, 1, 1], "block": [32, 1, 1], "shared": 0, "cooperative": False,
                 "parameters": self.extent(struct.pack(layout if layout.startswith("=") else "<" + layout, *values)), **more}
        if attributes:
            given["attributes"] = self.extent(b"".join(struct.pack("<II64s", number, 0, value) for number, value in attributes))
        return given

    def launch(self, kernel, *values, stream=0, **more):
        self.operation("launch", stream=stream, launch=self.launched(kernel, *values, **more))

    @staticmethod
    def place(address=None, pitch=0, slice_=0):
        return {"pitch": pitch, "slice": slice_, **({} if address is None else {"address": hex(address)})}

    def copied(self, to, from_, size, content=None, rows=None):
        """Addresses, or None for the host."""
        made = {"rows": dict(zip(("width", "height", "depth"), rows or (size, 1, 1))),
                "to": to if isinstance(to, dict) else self.place(to), "from": from_ if isinstance(from_, dict) else self.place(from_)}
        if content is not None:
            made["data"] = self.extent(content)
        return made

    def copy(self, *arguments, stream=0, **more):
        self.operation("copy", stream=stream, copy=self.copied(*arguments, **more))

    def set(self, address, value, size, element=1, stream=0):
        self.operation("set", stream=stream, set={"rows": {"width": size, "height": 1, "depth": 1}, "to": self.place(address),
                                                  "value": value, "element": element})

    def runs(self, memory):
        runs = []
        for address, page in sorted(memory.pages.items()):
            has = any(page)
            last = runs[-1] if runs else None
            if last and int(last["address"], 16) + last["pages"] * PAGE == address and ("first" in last) == has:
                last["pages"] += 1
            else:
                runs.append({"address": hex(address), "pages": 1, **({"first": len(self.memory_pages)} if has else {})})
            if has:
                self.memory_pages.append(bytes(page))
        return runs

    def write(self, folder):
        folder = pathlib.Path(folder)
        (folder / "images").mkdir(parents=True)
        os.chmod(folder, 0o700)
        manifest = {
            "format": "cudabpf-capture", "version": "1.0", "cudabpf": "0.1.0", "host": "node7", "unix_ns": 1790000000123456789,
            "command": ["python3", "model.py"], "iteration": {"number": 12, "pid": 42, "tid": 42, "begin_ns": 5, "end_ns": 9},
            "devices": [{"name": "Simulated H200", "uuid": "GPU-1", "driver": "580.159.04", "major": 9, "minor": 0, "memory": 1 << 34}],
            "streams": self.streams, "images": [{"hash": name.partition(".")[0], "kind": name.partition(".")[2], "size": len(image)}
                                                for name, image in self.images.items()],
            "modules": self.modules, "kernels": self.kernels, "blocks": self.blocks, "before": self.runs(self.before),
            "after": self.runs(self.after), "operations": len(self.operations), "data_size": len(self.data),
            "memory_pages": len(self.memory_pages), **self.manifest}
        for name, image in self.images.items():
            (folder / "images" / name).write_bytes(image)
        (folder / "tape.jsonl").write_text("".join(json.dumps(one) + "\n" for one in self.operations), encoding="ascii")
        (folder / "data").write_bytes(self.data)
        (folder / "memory").write_bytes(b"".join(self.memory_pages))
        (folder / "manifest.json").write_text(json.dumps(manifest), encoding="ascii")
        return folder

    def trace(self, path, duration_us=10.0, pid=42, gpu=True, header=None):
        """What a trace of the same run has: the tape's calls, and when the GPU did what they asked for, one after the other."""
        lines = [{"type": "trace", "format": "cudabpf-trace", "format_version": "2.0", "version": "0.1.0", "gpu_timing": "nodes",
                  "clocks": {"realtime_ns": 1790000000123456789}, "gpus": [{"index": 0, "name": "Simulated H200", "uuid": "GPU-1"}],
                  **(header or {})}]
        ran = []
        for operation in self.operations:
            kind, op, name = {"launch": ("kernel", "launch", "cuLaunchKernel"), "graph": ("graph", "launch", "cuGraphLaunch"),
                              "copy": ("transfer", "DtoH", "cuMemcpyDtoH"), "set": ("memset", "set", "cuMemsetD32")}.get(
                                  operation["op"], ("sync", "context", "cuCtxSynchronize"))
            at = 1000 * (1 + len(lines))
            call = {"id": operation["call"], "type": kind, "op": op, "name": name, "ts": at, "duration_us": 0.5, "pid": pid, "tid": pid, "ret": 0}
            work = {"pid": pid, "call": operation["call"], "stream": "0x0", "queue": 1, "device": 0}
            did = [node["launch"] for node in operation["nodes"]] or [operation.get("launch")]
            for launch in did:
                launched = {} if not launch else {"kernel": self.kernels[launch["kernel"]]["name"], "grid": launch["grid"],
                                                  "block": launch["block"], "shared": launch["shared"]}
                if operation["op"] in ("launch", "graph"):
                    ran.append({"op": "kernel", **work, **launched})
                elif operation["op"] in ("copy", "set"):
                    ran.append({"op": operation["op"], **work, "size": 4})
            lines.append({**call, **({"kernel": launched["kernel"]} if operation["op"] == "launch" else {})})
        for number, work in enumerate(ran if gpu else []):
            lines.append({"type": "gpu", "ts": 1_000_000 + number * int(2000 * duration_us), "duration_us": duration_us, **work})
        lines.append({"type": "end", "ts": 9_000_000_000, "lines": len(lines) + 1, "duration_ns": 9_000_000_000})
        pathlib.Path(path).write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines), encoding="ascii")
        return path
