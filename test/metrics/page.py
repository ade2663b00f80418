"""A page of metrics, read as the format has it."""
import collections
import re

SAMPLE = re.compile(r'^([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)+)\})? (\S+)$')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


class Page:
    """A scrape: samples by name, each with its labels. Fails where a line is not as the format has it."""

    def __init__(self, text):
        self.samples, self.types = collections.defaultdict(dict), {}
        for line in text.removesuffix("\n").split("\n"):
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                assert name not in self.types, line
                self.types[name] = kind
            elif not line.startswith("# HELP "):
                name, labels, value = SAMPLE.match(line).groups()
                key = tuple(sorted((label, self.unescaped(text)) for label, text in LABEL.findall(labels or "")))
                assert key not in self.samples[name], line
                self.samples[name][key] = float(value)

    @staticmethod
    def unescaped(text):
        return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], text)

    def of(self, name, **labels):
        """The sum of those that have these labels."""
        return sum(value for key, value in self.samples[name].items() if labels.items() <= dict(key).items())

    def programs(self):
        return {dict(key)["program"] for key in self.samples["cudabpf_processes"]}

    def counters(self):
        return {(name, key): value for name, samples in self.samples.items() for key, value in samples.items()
                if name.endswith(("_total", "_count", "_sum", "_bucket"))}
