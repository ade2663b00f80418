"""Reads what cudabpf exports, with other people's programs (json, protoc) and the rules by which viewers draw.

Both give the same picture: slices on tracks, each with its parent, the two ends of flows, counters and marks. What a
call has put into a stream is a mark: Chrome's has no duration.
"""
import ast
import collections
import json
import re
import subprocess
import zlib
from decimal import Decimal

Track = collections.namedtuple("Track", "kind pid tid name process")
NOWHERE = Track("machine", 0, 0, "", "")
KINDS = ("driver", "stream", "phases", "iterations")
GPU_FLOWS = 1 << 62  # in Perfetto's format, arrows to GPUs are numbered by their calls from here on


class Slice:
    def __init__(self, track, name, begin, category, details):
        self.track, self.name, self.begin, self.category, self.details = track, name, begin, category, details
        self.end = None  # None: it has none
        self.parent = None
        self.flows_out, self.flows_in = [], []

    def __repr__(self):
        return f"{self.name} [{self.begin}, {self.end}] on {self.track}"


class Picture:
    def __init__(self):
        self.slices = []
        self.marks = []  # (track, name, ts, details)
        self.arrows = []  # (slice, mark) from a call to what it has put into a stream
        self.gpu_arrows = []  # (slice, slice) from a call to what a GPU did because of it
        self.counters = collections.defaultdict(list)  # (pid, process, name): (ts, value)

    def by_id(self):
        """Only calls have one."""
        drawn = [slice for slice in self.slices if "id" in slice.details and slice.track.kind == "thread"]
        ids = {int(slice.details["id"]): slice for slice in drawn}
        assert len(ids) == len(drawn), "a call is drawn twice"
        return ids


def nanoseconds(microseconds):
    whole = Decimal(microseconds) * 1000
    assert whole == int(whole), f"{microseconds} is no number of nanoseconds"
    return int(whole)


def read_chrome(path):
    with open(path, encoding="utf-8") as file:
        trace = json.load(file, parse_float=Decimal)
    events = trace["traceEvents"]
    names = {}
    for event in events:
        if event["ph"] == "M" and event["name"] != "thread_sort_index":
            key = (event["pid"], None if event["name"] == "process_name" else event["tid"])
            names[key] = event["args"]["name"]

    def track_of(event):
        name = names.get((event["pid"], event["tid"]), "")
        process = names.get((event["pid"], None), "")
        known = {kind: kind for kind in KINDS}.get(name.split(",")[0].split(" ")[0])
        known = "queue" if name.startswith("GPU ") else known
        kind = "machine" if event["pid"] == 0 else known if known and event["tid"] > 10**7 else "thread"
        return Track(kind, event["pid"], event["tid"], name, process)

    picture, open_slices, flows, bound, issuing = Picture(), collections.defaultdict(list), {}, {}, {}
    # Events with the same time count in file order.
    for event in sorted((e for e in events if e["ph"] != "M"), key=lambda event: event["ts"]):
        ts = nanoseconds(event["ts"])
        track = track_of(event)
        stack = open_slices[event["pid"], event["tid"]]
        # What ends when the next begins was before it. The format cannot say that a call without
        # duration is at its parent's end; viewers draw it beside.
        point = event["ph"] != "X" or event["dur"] == 0
        while stack and stack[-1].end is not None and (stack[-1].end < ts or (stack[-1].end == ts and not point)):
            stack.pop()
        if track.kind == "stream":
            assert event["ph"] == "X" and event["dur"] == 0
            picture.marks.append((track, event["name"], ts, event["args"]))
            if "bind_id" in event:
                assert event["flow_in"]
                picture.arrows.append((bound.pop(event["bind_id"]), picture.marks[-1]))
        elif event["ph"] in "XB":
            slice = Slice(track, event["name"], ts, event["cat"], event["args"])
            slice.end = ts + nanoseconds(event["dur"]) if event["ph"] == "X" else None
            while stack and stack[-1].begin == stack[-1].end:
                stack.pop()
            slice.parent = stack[-1] if stack else None
            stack.append(slice)
            picture.slices.append(slice)
            if "bind_id" in event:
                assert event["flow_out"] and event["bind_id"] not in bound
                bound[event["bind_id"]] = slice
        elif event["ph"] == "i":
            picture.marks.append((track, event["name"], ts, event["args"]))
        elif event["ph"] == "C":
            (value,) = event["args"].values()
            picture.counters[event["pid"], track.process, event["name"]].append((ts, value))
        elif event["ph"] == "s" and event["cat"] == "gpu":  # the operation that it issued may be missing
            assert stack and stack[-1].end >= ts and event["id"] not in issuing
            issuing[event["id"]] = stack[-1]
        elif event["ph"] == "f" and event["cat"] == "gpu":
            assert event["bp"] == "e"
            picture.gpu_arrows.append((issuing.pop(event["id"]), stack[-1]))
        elif event["ph"] == "s":
            assert stack and stack[-1].end >= ts, f"{event} is in no slice"
            flows[event["id"]] = stack[-1]
        elif event["ph"] == "f":
            assert event["bp"] == "e"
            flows.pop(event["id"]).flows_out.append(event["id"])
            stack[-1].flows_in.append(event["id"])
        else:
            raise AssertionError(f"unknown phase {event}")
    assert not flows and not bound, "flows without an end"
    return picture, trace


def inflated(data):
    """The trace without its compressed packets."""
    def varint(at):
        value = shift = 0
        while True:
            value |= (data[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 0x80:
                return value, at

    out, at = b"", 0
    while at < len(data):
        begin = at
        assert data[at] == 0x0A  # Trace.packet
        size, at = varint(at + 1)
        assert size < 512 << 10, "readers take no packet as large"
        end = at + size
        tag, inner = varint(at)
        if tag == 50 << 3 | 2:
            size, inner = varint(inner)
            assert inner + size == end
            packets = zlib.decompress(data[inner:end])
            assert len(packets) < 512 << 10
            out += packets
        else:
            out += data[begin:end]
        at = end
    return out


def parse_text_format(text):
    """Parses a message that protoc has printed."""
    root, stack = collections.defaultdict(list), []
    message = root
    for line in text.splitlines():
        line = line.strip()
        if line.endswith("{"):
            inner = collections.defaultdict(list)
            message[line[:-1].strip()].append(inner)
            stack.append(message)
            message = inner
        elif line == "}":
            message = stack.pop()
        else:
            key, value = line.split(": ", 1)
            assert key.isidentifier(), f"a field that the schema does not have: {line}"
            if value.startswith('"'):
                value = ast.literal_eval("b" + value).decode("utf-8")
            elif re.fullmatch(r"-?[0-9]+|0x[0-9a-f]+", value):
                value = int(value, 0)
            message[key].append(value)
    assert not stack
    return root


def decode_perfetto(path, schema):
    with open(path, "rb") as file:
        plain = inflated(file.read())
    folder, name = schema.rsplit("/", 1)
    text = subprocess.run(["protoc", f"-I{folder}", "--decode=perfetto.protos.Trace", name], input=plain,
                          stdout=subprocess.PIPE, check=True).stdout.decode("utf-8")
    return parse_text_format(text)["packet"]


class Tracks:
    """What the TrackDescriptors say, with the process that each track belongs to."""

    def __init__(self, packets):
        self.descriptors = {}
        for packet in packets:
            for descriptor in packet["track_descriptor"]:
                (uuid,) = descriptor["uuid"]
                assert uuid
                self.descriptors[uuid] = descriptor

    def process(self, uuid):
        descriptor = self.descriptors[uuid]
        if descriptor["process"]:
            return uuid, descriptor["process"][0]
        return self.process(descriptor["parent_uuid"][0]) if descriptor["parent_uuid"] else (0, None)

    def track(self, uuid):
        descriptor = self.descriptors[uuid]
        (name,) = descriptor["name"] or [""]
        _, process = self.process(uuid)
        if not process:
            return NOWHERE._replace(name=name, tid=uuid)
        pid, process_name = process["pid"][0], (process["process_name"] or [""])[0]
        if descriptor["thread"]:
            (thread,) = descriptor["thread"]
            assert thread["pid"] == [pid]
            return Track("thread", pid, thread["tid"][0], (thread["thread_name"] or [""])[0], process_name)
        kind = "counter" if descriptor["counter"] else name.split(",")[0].split(" ")[0]
        if (self.descriptors[descriptor["parent_uuid"][0]]["name"] or [""])[0].startswith("GPU "):
            kind = "queue"
        return Track(kind, pid, uuid, name, process_name)


def read_perfetto(path, schema):
    packets = decode_perfetto(path, schema)
    assert packets[0]["sequence_flags"] == [1], "the first packet clears the sequence's state"
    assert {tuple(packet["trusted_packet_sequence_id"]) for packet in packets} == {(1,)}
    tracks, picture = Tracks(packets), Picture()
    tables = {table: {} for table in ("event_categories", "event_names", "debug_annotation_names",
                                      "debug_annotation_string_values")}

    def detail(annotation):
        if annotation["name_iid"]:
            name = tables["debug_annotation_names"][annotation["name_iid"][0]]
        else:
            (name,) = annotation["name"]
        for kind in ("uint_value", "int_value", "string_value", "pointer_value"):
            if annotation[kind]:
                return name, annotation[kind][0]
        return name, tables["debug_annotation_string_values"][annotation["string_value_iid"][0]]

    events, described = [], set()
    for packet in packets:
        for data in packet["interned_data"]:
            for table, entries in data.items():
                for entry in entries:
                    (iid,) = entry["iid"]
                    (text,) = entry["name"] or entry["str"]
                    assert iid and iid not in tables[table] and text not in tables[table].values(), "interned twice"
                    tables[table][iid] = text
        described.update(descriptor["uuid"][0] for descriptor in packet["track_descriptor"])
        for event in packet["track_event"]:
            assert event["track_uuid"][0] in described, "an event on a track that is not described yet"
            refers = event["name_iid"] or event["category_iids"]
            assert packet["sequence_flags"] == ([2] if refers else [])
            (name,) = event["name"] or [tables["event_names"][iid] for iid in event["name_iid"]] or [None]
            category = [tables["event_categories"][iid] for iid in event["category_iids"]]
            details = dict(detail(annotation) for annotation in event["debug_annotations"])
            events.append((packet["timestamp"][0], event, name, category, details))

    stacks, flows, issuing = collections.defaultdict(list), {}, {}
    for ts, event, name, category, details in sorted(events, key=lambda event: event[0]):  # stable
        (uuid,), (kind,) = event["track_uuid"], event["type"]
        track, stack = tracks.track(uuid), stacks[uuid]
        if kind == "TYPE_SLICE_BEGIN":
            slice = Slice(track, name, ts, (category or [None])[0], details)
            slice.parent = stack[-1] if stack else None
            stack.append(slice)
            picture.slices.append(slice)
            slice.flows_out = [flow for flow in event["flow_ids"] if flow < GPU_FLOWS]
            slice.flows_in = [flow for flow in event["terminating_flow_ids"] if flow < GPU_FLOWS]
            issuing.update((flow, slice) for flow in event["flow_ids"] if flow >= GPU_FLOWS)
            picture.gpu_arrows.extend((issuing.pop(flow), slice) for flow in event["terminating_flow_ids"] if flow >= GPU_FLOWS)
            for flow in slice.flows_out:
                assert flow not in flows
                flows[flow] = slice
            for flow in slice.flows_in:
                assert flows.pop(flow).begin <= ts
        elif kind == "TYPE_SLICE_END":
            stack.pop().end = ts
        elif kind == "TYPE_INSTANT":
            picture.marks.append((track, name, ts, details))
            for flow in event["terminating_flow_ids"]:
                caller = flows.pop(flow)
                caller.flows_out = [other for other in caller.flows_out if other != flow]
                picture.arrows.append((caller, picture.marks[-1]))
        else:
            process, descriptor = tracks.process(uuid)
            assert track.kind == "counter" or not descriptor  # a process's, or a GPU's samples
            picture.counters[track.pid, track.process, track.name].append((ts, (event["counter_value"])[0]))
    assert not flows, "flows without an end"
    return picture, packets
