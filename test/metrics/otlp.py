"""Requests of OTLP for metrics, read by the numbers of opentelemetry-proto, and a receiver of them."""
import collections
import struct

from page import Page
from servers import Server, status

CUMULATIVE = 2


def fields(message):
    """The fields of a message in protobuf's wire format: number, and value or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if not byte & 0x80:
                return value
    while at < len(message):
        tag = varint()
        kind = tag & 7
        if kind == 0:
            value = varint()
        else:
            size = {1: 8, 2: None, 5: 4}[kind]
            size = varint() if size is None else size
            value = message[at:at + size]
            assert len(value) == size, "it is cut off"
            at += size
        yield tag >> 3, value


def all_of(message, *path):
    """What is at this path of fields' numbers, everywhere."""
    for number, value in fields(message):
        if number == path[0]:
            if len(path) == 1:
                yield value
            else:
                yield from all_of(value, *path[1:])


def one_of(message, *path, default=None):
    values = list(all_of(message, *path))
    assert len(values) <= 1, path
    return values[0] if values else default


def attributes(message, number):
    found = {one_of(one, 1).decode(): one_of(one, 2, 1).decode() for one in all_of(message, number)}
    assert len(found) == len(list(all_of(message, number)))
    return found


def real(value):
    return struct.unpack("<d", value)[0]


class Push(Page):
    """A request, with the samples that the text format would have. Fails where it is not as the protocol has it."""
    KINDS = {5: "gauge", 7: "counter", 9: "histogram"}

    def __init__(self, request):  # pylint: disable=super-init-not-called
        self.samples, self.types, self.times = collections.defaultdict(dict), {}, set()
        self.size = len(request)
        self.resource = attributes(one_of(request, 1, 1), 1)
        self.scope = (one_of(request, 1, 2, 1, 1).decode(), one_of(request, 1, 2, 1, 2).decode())
        for metric in all_of(request, 1, 2, 2):
            name = one_of(metric, 1).decode()
            (number, kind), = ((number, kind) for number, kind in self.KINDS.items() if one_of(metric, number) is not None)
            assert name not in self.types, name
            assert one_of(metric, 3) is None, "it has a unit"
            self.types[name] = kind
            data = one_of(metric, number)
            assert one_of(data, 2) == (None if kind == "gauge" else CUMULATIVE), name
            assert one_of(data, 3) == (1 if kind == "counter" else None), name
            for point in all_of(data, 1):
                (self.add_times if kind == "histogram" else self.add_number)(name, kind, point)

    def add_number(self, name, kind, point):
        whole, value = one_of(point, 6), one_of(point, 4)
        self.add(name, attributes(point, 7), struct.unpack("<q", whole)[0] if whole else real(value))
        self.check_times(name, kind, point)

    def add_times(self, name, kind, point):
        labels = attributes(point, 9)
        counts, bounds = one_of(point, 6), one_of(point, 7)
        counts, bounds = struct.unpack(f"<{len(counts) // 8}Q", counts), struct.unpack(f"<{len(bounds) // 8}d", bounds)
        assert len(counts) == len(bounds) + 1 and list(bounds) == sorted(bounds)
        calls = 0
        for count, bound in zip(counts, [*map(repr, bounds), "+Inf"]):
            calls += count
            self.add(f"{name}_bucket", {**labels, "le": bound}, calls)
        self.add(f"{name}_sum", labels, real(one_of(point, 5)))
        self.add(f"{name}_count", labels, struct.unpack("<Q", one_of(point, 4))[0])
        self.check_times(name, kind, point)

    def check_times(self, name, kind, point):
        """It is not known since when the counters of engines count."""
        start, now = one_of(point, 2), one_of(point, 3)
        assert (start is None) == (kind == "gauge" or name.startswith("cudabpf_engine_"))
        self.times.add((struct.unpack("<Q", start)[0] if start else None, struct.unpack("<Q", now)[0]))

    def add(self, name, labels, value):
        key = tuple(sorted(labels.items()))
        assert key not in self.samples[name], (name, key)
        self.samples[name][key] = value


accept = status(200, ("Content-Type", "application/x-protobuf"), accepted=True)


def rejecting(samples, why):
    """Accepts the rest."""
    partial = b"\x08" + bytes([samples]) + b"\x12" + bytes([len(why)]) + why
    return status(200, ("Content-Type", "application/x-protobuf"), body=b"\x0a" + bytes([len(partial)]) + partial, accepted=True)


class Receiver(Server):
    """Each push is answered by the next of `script`, and by `otherwise` once that is used up: functions of the handler, which return
    whether the push was accepted."""

    def __init__(self, port=0, script=(), otherwise=accept):
        self.pushes, self.script, self.otherwise = [], list(script), otherwise
        super().__init__(self.take, port)

    def take(self, handler):
        assert handler.headers["Content-Type"] == "application/x-protobuf"
        push = Push(handler.rfile.read(int(handler.headers["Content-Length"])))
        answer = self.script.pop(0) if self.script else self.otherwise
        if answer(handler):
            self.pushes.append(push)

    def url(self):
        return f"http://127.0.0.1:{self.port}/v1/metrics"
