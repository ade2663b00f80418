"""Compares what cudabpf recorded of a process with what CUPTI's callbacks saw in the same run."""
import collections
import glob
import json
import re
import subprocess

LAUNCH = ("kernel", "grid", "block", "shared", "stream")
COPY = ("op", "size", "stream")
MAKES_CURRENT = "cuCtxSetCurrent"  # of the calls that reveal a thread's device, the one that the runtime makes
NOT_REPORTED = {"cuGetExportTable": "CUPTI has no callback for it"}


def read_truth(prefix):
    """{pid: lines} from the files that cupti_truth.cpp wrote."""
    truth = {}
    for path in glob.glob(f"{glob.escape(prefix)}.*"):
        with open(path, encoding="utf-8") as file:
            truth[int(path.rpartition(".")[2])] = [json.loads(line) for line in file]
    return truth


def demangled(names):
    """Demangles with c++filt, which is independent of cudabpf."""
    names = sorted(names)
    done = subprocess.run(["c++filt"], input="\n".join(names), stdout=subprocess.PIPE, text=True, check=True)
    return dict(zip(names, done.stdout.split("\n")))


def symbol(call):
    return call.get("symbol", call["name"])


def operations(content, conditional):
    """The kernels, copies and fills among a graph's nodes, and how many of each."""
    found = collections.Counter()
    for work in content:
        if work.get("conditional", False) == conditional:
            if work["op"] == "kernel":
                found[(work["kernel"], *work["grid"], *work["block"], work["shared"])] += work["count"]
            elif work["op"] in ("copy", "set"):
                found[(work["op"], work["size"])] += work["count"]
    return found


class Comparison:
    """The comparison of one process. `causes` counts what only one side has, and why; `wrong` lists what nothing explains.

    `contents`: what graphs hold, by number. `untraced`: functions that cudabpf was not to trace. `partial`: cudabpf
    began later, or ended earlier."""

    def __init__(self, header, calls, truth, contents, untraced=(), partial=False):
        zero = header["clocks"]["monotonic_ns"]
        for call in calls:
            call["at"] = call["ts"] + zero
            call["end"] = call["at"] + round(call.get("duration_us", 0) * 1000)
        # CUPTI reports nothing of libraries above the driver.
        self.calls = sorted((call for call in calls if "library" not in call), key=lambda call: call["at"])
        self.seen = [line for line in truth if "name" in line and "failed" not in line]
        self.ran = [line for line in truth if "launched" in line]
        self.copies_changed = any(call["name"] == "cuGraphExecMemcpyNodeSetParams" for call in calls)
        self.failures = [line for line in truth if "failed" in line]
        for line in self.seen:  # CUPTI gives the current context, which need not be either end's
            if line.get("op") == "peer":
                line.pop("device", None)
        self.causes, self.wrong = collections.Counter(), []
        self.compared = collections.Counter()
        if not self.calls or not self.seen:
            self.wrong.append(f"{len(self.calls)} calls, {len(self.seen)} by CUPTI")
            return
        for name in sorted({line["name"] for line in self.seen if line["name"] in untraced}):
            self.causes[f"{name}: not of this profile"] = sum(line["name"] == name for line in self.seen)
        self.seen = [line for line in self.seen if line["name"] not in untraced]
        self.failures = [line for line in self.failures if line["name"] not in untraced]
        if partial:
            self.cut_to_attached()
        self.leave_out_unseen()
        self.compare_counts()
        device = () if partial or MAKES_CURRENT in untraced else ("device",)
        self.compare_in_order("launches", LAUNCH + device, lambda line: "kernel" in line)
        self.compare_in_order("copies", COPY + device, lambda line: "op" in line and "size" in line)
        self.compare_in_order("sizes", ("size",), lambda line: "op" not in line and "size" in line)
        self.compare_failures()
        for line in truth:
            if "kernels_by_themselves" in line:
                self.compare_kernels_by_themselves(line["kernels_by_themselves"])
                self.compare_graphs(contents)

    def cut_to_attached(self):
        """What CUPTI saw on each thread from cudabpf's first call there to its last."""
        first, last = {}, {}
        for call in self.calls:
            if "entry_lost" not in call:
                first.setdefault(call["tid"], call["at"])
                last[call["tid"]] = call["end"]
        inside = [line for line in self.seen if first.get(line["tid"], line["ts"] + 1) <= line["ts"] <= last[line["tid"]]]
        self.causes["cudabpf was not attached"] += len(self.seen) - len(inside)
        self.seen = inside
        self.failures = [line for line in self.failures
                         if first.get(line["tid"], line["ts"] + 1) <= line["ts"] <= last[line["tid"]]]

    def leave_out_unseen(self):
        """CUPTI begins while cuInit runs, and ends while the process does. Its callback is inside the call."""
        first, last = self.seen[0]["ts"], self.seen[-1]["ts"]
        kept = []
        for call in self.calls:
            name = symbol(call)
            if name in NOT_REPORTED:
                self.causes[f"{name}: {NOT_REPORTED[name]}"] += 1
            elif "entry_lost" in call:
                self.causes[f"{name}: begun before cudabpf was attached"] += 1
            elif call["end"] < first:
                self.causes[f"{name}: before CUPTI's first callback"] += 1
            elif call["at"] > last:
                self.causes[f"{name}: after CUPTI's last callback"] += 1
            elif "parent" in call:
                self.causes[f"{name}: called by the driver inside another, which CUPTI does not report"] += 1
            else:
                kept.append(call)
        self.calls = kept

    def compare_counts(self):
        ours = collections.Counter(symbol(call) for call in self.calls)
        theirs = collections.Counter(line["name"] for line in self.seen)
        self.compared["functions"], self.compared["calls"] = len(theirs), sum(theirs.values())
        for name in sorted(ours.keys() | theirs.keys()):
            if ours[name] != theirs[name]:
                self.wrong.append(f"{name}: {ours[name]} by cudabpf, {theirs[name]} by CUPTI")

    def by_thread(self, lines, key, fields, choose):
        found = collections.defaultdict(list)
        for line in lines:
            if choose(line):
                found[line["tid"]].append((key(line), *[line.get(field) for field in fields]))
        return found

    def compare_in_order(self, what, fields, choose):
        """Thread by thread, call by call."""
        theirs = self.by_thread(self.seen, lambda line: line["name"], fields, choose)
        names = {name for name, *_ in (row for rows in theirs.values() for row in rows)}
        ours = self.by_thread(self.calls, symbol, fields, lambda call: symbol(call) in names)
        if what == "launches":
            plain = demangled({row[1] for rows in theirs.values() for row in rows})
            theirs = {tid: [(row[0], plain[row[1]], *row[2:]) for row in rows] for tid, rows in theirs.items()}
        for tid in sorted(ours.keys() | theirs.keys()):
            mine, other = ours.get(tid, []), theirs.get(tid, [])
            differing = [(a, b) for a, b in zip(mine, other) if a != b]
            if len(mine) != len(other):
                self.wrong.append(f"{what} of thread {tid}: {len(mine)} by cudabpf, {len(other)} by CUPTI")
            for a, b in differing[:3]:
                self.wrong.append(f"{what}: cudabpf {a}, CUPTI {b}")
            if len(differing) > 3:
                self.wrong.append(f"{what}: and {len(differing) - 3} more of thread {tid}")
            self.compared[what] += len(other)

    def compare_kernels_by_themselves(self, ran):
        """Launches that were captured ran nothing."""
        made = [call for call in self.calls if call["type"] == "kernel" and call["op"] == "launch" and call.get("ret") == 0]
        expected = sum("captured" not in call for call in made)
        self.compared["captured launches"] = len(made) - expected
        if expected != ran:
            self.wrong.append(f"{expected} launches were not captured, {ran} kernels ran outside of graphs")

    def compare_graphs(self, contents):
        """What ran for each launch of a graph, by name, configuration and number."""
        plain = demangled({line["kernel"] for line in self.ran if "kernel" in line})
        ran = collections.defaultdict(collections.Counter)
        for line in self.ran:
            ran[line["launched"]][(plain[line["kernel"]], *line["grid"], *line["block"], line["shared"]) if "kernel" in line
                                  else (line["work"], line["bytes"])] += 1
        theirs = self.by_thread(self.seen, lambda line: line["launch"], (), lambda line: "launch" in line)
        ours = collections.defaultdict(list)
        for call in self.calls:
            if call["name"] == "cuGraphLaunch":
                ours[call["tid"]].append(call)
        for tid, launches in ours.items():
            for call, (number,) in zip(launches, theirs[tid]):
                if "graph_unknown" in call:
                    self.wrong.append(f"it is not known what graph launch {call['id']} ran: {call['graph_unknown']}")
                    continue
                content = contents[call["graph"]]["content"] if "graph" in call else []
                surely, perhaps = operations(content, False), operations(content, True)
                left, missing = ran[number] - surely, surely - ran[number]
                if self.copies_changed and {work[0] for work in left | missing} == {"copy"} and left.total() == missing.total():
                    self.causes["launches of a graph whose copy was changed: CUPTI goes on to report the size that it had"] += 1
                elif missing or left.keys() - perhaps.keys():
                    self.wrong.append(f"graph launch {call['id']}: cudabpf {dict(missing)}, CUPTI {dict(left)}")
                self.compared["graph launches"] += 1
                self.compared["kernels in graphs"] += sum(count for work, count in ran[number].items() if len(work) > 2)
                self.compared["copies and fills in graphs"] += sum(count for work, count in ran[number].items() if len(work) == 2)

    def compare_failures(self):
        ours = collections.Counter((symbol(call), call["ret"]) for call in self.calls if call.get("ret"))
        theirs = collections.Counter((line["name"], line["failed"]) for line in self.failures)
        self.compared["failures"] = sum(theirs.values())
        if ours != theirs:
            self.wrong.append(f"failures: {dict(ours - theirs)} by cudabpf alone, {dict(theirs - ours)} by CUPTI alone")


def compare(lines, truth, untraced=(), partial=False):
    """[(pid, Comparison)] of each process that either saw, except those that never called cuInit, without CUPTI."""
    calls = collections.defaultdict(list)
    contents = {line["graph"]: line for line in lines if line["type"] == "graph" and line["op"] == "content"}
    for line in lines:
        if "id" in line:
            calls[line["pid"]].append(line)
    initialised = {pid for pid, made in calls.items() if partial or any(call["name"] == "cuInit" for call in made)}
    return [(pid, Comparison(lines[0], calls.get(pid, []), truth.get(pid, []), contents, untraced, partial))
            for pid in sorted(initialised | truth.keys())]


def summary(comparison):
    text = ", ".join(f"{count:,} {what}" for what, count in comparison.compared.items() if count)
    return re.sub(r"^$", "nothing", text)
