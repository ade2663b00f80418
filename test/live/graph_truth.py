"""What a trace must say of graphs and captures, according to the simulated driver's record of what each launch ran."""
import collections

from expected import demangle

LAUNCHES = {"cuGraphLaunch", "cuGraphLaunch_ptsz"}


def work(node, name):
    """One node's work, as it can be compared."""
    return (node["op"], name, tuple(node.get("grid", ())), tuple(node.get("block", ())), node.get("shared"), node.get("size"))


def operations_that_ran(call):
    """{(work, in a body): nodes}, according to the driver."""
    ran = [(one, False) for one in call["ran"]] + [(one, True) for one in call.get("bodies", [])]
    return collections.Counter((work(one, "kernel" in one and demangle(one["kernel"])), in_body) for one, in_body in ran)


def operations_reported(content):
    found = collections.Counter()
    for one in content["content"]:
        found[work(one, one.get("kernel", False)), one.get("conditional", False)] += one["count"]
    return found


def without_names(operations):
    found = collections.Counter()
    for (one, in_body), count in operations.items():
        found[(one[0], None, *one[2:]), in_body] += count
    return found


def nodes(operations, kind=None):
    """How many of them are not in a body."""
    return sum(count for (one, in_body), count in operations.items() if not in_body and kind in (None, one[0]))


def pairs(lines, calls, clock):
    """Each line of a thread with the driver's record of that call, as far as it is known which is which."""
    if len(lines) == len(calls):
        return list(zip(lines, calls))
    found = []
    for line in lines:
        begin = clock + line["ts"]
        end = begin + line.get("duration_us", 0) * 1000 + 1
        found += [(line, call) for call in calls if begin <= call["begin_ns"] <= call["end_ns"] <= end]
    return found


def all_pairs(test, trace):
    """The lines of calls of all processes that succeeded, with the driver's record."""
    clock = trace.header["clocks"]["monotonic_ns"]
    lines = collections.defaultdict(list)
    for line in trace.calls:
        if line.get("ret") == 0:
            lines[line["pid"], line["tid"], line.get("symbol", line["name"])].append(line)
    for pid, record in test.records().items():
        calls = collections.defaultdict(list)
        for call in record.calls if record.log_has('"captured":', '"ran":') else []:
            if call["ret"] == 0:
                calls[pid, call["tid"], call["symbol"]].append(call)
        for key, of_thread in calls.items():
            yield from pairs(lines[key], of_thread, clock)


def is_exact(trace):
    """Nothing is missing that is needed to know which calls are captured."""
    header = trace.header
    flags = {"unfinished", "return_lost", "entry_lost", "read_fault"}
    return (header["mode"] == "run" and header.get("profile") in ("default", "full") and header.get("returns", True)
            and not header.get("only") and not header.get("exclude") and header.get("part", 1) == 1
            and trace.end and not trace.end["losses"] and not any(flags & set(call) for call in trace.calls))


def check_graphs(test, trace):
    """Each launch's content is what the driver ran, and exactly what was captured is said to be."""
    contents, launched = {}, set()
    for line in trace.lines:
        if line["type"] == "graph" and line["op"] == "content":
            test.assertNotIn(line["graph"], contents, "said twice in one file")
            contents[line["graph"]] = line
        elif "graph" in line and line["type"] == "graph":
            test.assertIn(line["graph"], contents, "a launch before its content")
            content = contents[line["graph"]]
            test.assertEqual(line["pid"], content["pid"])
            if line["graph"] not in launched:
                test.assertEqual(content["ts"], line["ts"])
            launched.add(line["graph"])
    exact = is_exact(trace)
    for line, call in all_pairs(test, trace):
        if exact or line.get("captured"):
            test.assertEqual(line.get("captured", False), call.get("captured", False), (line, call))
        if call["symbol"] in LAUNCHES:
            check_launch(test, line, call, contents)


def check_launch(test, line, call, contents):
    if call.get("captured") or "graph_unknown" in line:
        test.assertFalse({"graph", "nodes", "kernels"} & set(line), line)
        return
    content = contents[line["graph"]]
    ran, reported = operations_that_ran(call), operations_reported(content)
    if any("handle" in one for one in content["content"]):  # a kernel's name is not known
        ran, reported = without_names(ran), without_names(reported)
    if "more" in content:
        test.assertEqual(reported - ran, {})
    else:
        test.assertEqual(reported, ran)
    counts = {"nodes": nodes(ran), "kernels": nodes(ran, "kernel")}
    for of in (line, content):
        test.assertEqual({key: of[key] for key in counts}, counts)
