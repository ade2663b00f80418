"""How large files, functions and folders are, and which files of a folder include each other in a circle. For
scripts/check-map; what is larger than a limit today is in KNOWN, and may only shrink."""

import ast
import pathlib
import re

FILE, FUNCTION, FOLDER = 450, 60, 40  # lines of a source, lines of a function, sources in a folder
LIMITS = {"file": FILE, "function": FUNCTION, "folder": FOLDER, "circle": 0}
BASES = ["src", "include", "bpf", "inside", "test"]
C_SOURCES = {".cpp", ".hpp", ".h", ".c"}
SOURCES = C_SOURCES | {".S", ".py", ".sh", ".mjs"}  # tables (.tsv, .def) and data are as long as they are
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)
# What is not code, or may have braces of its own: comments, texts, characters, the preprocessor's lines.
NOT_CODE = re.compile(r"""//[^\n]*|/\*.*?\*/|R"([^(\s"]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'"""
                      r"""|^[ \t]*#(?:\\\n|[^\n])*""", re.DOTALL | re.MULTILINE)
# What was over a limit when it was set, and how large it is.
KNOWN = {
    "file": {
        "test/live/inside_alone_test.py": 453,
        "test/live/output_test.py": 466,
        "test/live/top_screen_test.py": 490,
        "test/scripts/reading.py": 498,
        "test/serve/serve_test.py": 505,
        "test/workloads/test_fake.py": 473,
    },
    "function": {
        "test/export/readers.py: read_chrome": 68,
        "test/export/readers.py: read_perfetto": 69,
        "test/fuzz/analyses_fuzz.cpp: all_analyses": 75,
        "test/gpu/cupti_truth.cpp: add_arguments": 65,
        "test/unit/correlate/driver_calls_test.cpp: What the driver returned is reported only where it is known": 64,
        "test/unit/correlate/graphs/graphs_test.cpp: Why it is not known what a graph holds": 83,
        "test/unit/trace/files/failing_output_test.cpp: A full disk loses whole lines, says so, and is written to again": 61,
        "test/unit/sink/live_test.cpp: What happens is shown with its process": 66,
        "test/unit/trace/files/rotation_test.cpp: By size: each file is a trace of its own, and no larger": 76,
        "test/unit/sink/run_memory_test.cpp: Memory: what was allocated, freed and is held": 109,
        "test/unit/sink/run_memory_test.cpp: step": 62,
        "test/unit/trace/files/trace_file_test.cpp: Where a trace may be written": 65,
        "test/unit/tables/driver_generator_test.cpp: The generator refuses a wrong table of the driver's and says where it is wrong": 69,
        "test/unit/util/demangle_test.cpp: A table shows the function's own name": 128,
        "test/unit/util/elf_reader_test.cpp: A file that comes with a message is read without being received here": 64,
        "test/unit/util/itanium_test.cpp: Names are demangled as the C++ library demangles them": 90,
        "test/unit/util/system/container_test.cpp: A cgroup's path names the container": 123,
        "test/workloads/copy_calls.cpp: copy_calls": 66,
        "test/workloads/memory_calls.cpp: memory_calls": 81,
    },
    "folder": {
        "test/fake_libcuda": 49,
        "test/live": 44,
    },
    "circle": {
        "test/fake_libcuda": 13,
    },
}


def sources(root):
    return [path for base in BASES for path in sorted((root / base).rglob("*"))
            if path.suffix in SOURCES and "node_modules" not in path.parts and path.is_file()]


def functions_of_c(text):
    """-> (name, lines). A function is a block with parentheses before it that is in no other such block."""
    code = NOT_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    SCOPE, VALUE = -1, -2  # pylint: disable=invalid-name
    blocks, begin = [], 0  # of each open block: where the function begins that it is, or what else it is
    for found in re.finditer(r"[{};]", code):
        at, head = found.start(), code[begin:found.start()]
        if found[0] == "{" and head and not head[-1].isspace():
            blocks.append(VALUE)  # member_{value}
            continue
        if found[0] == "{":
            is_function = "(" in head and all(block < 0 for block in blocks)
            blocks.append(begin + len(head) - len(head.lstrip()) if is_function else SCOPE)
        elif found[0] == "}":
            block = blocks.pop() if blocks else SCOPE
            if block == VALUE:
                continue
            if block >= 0:
                yield name_of(text[block:at]), code.count("\n", block, at) + 1
        begin = found.end()


def name_of(function):
    name = re.match(r'[A-Z_]+\(\s*"([^"]*)', function) or re.search(r"([\w:~]+(?:\(\)|[^\w\s]+)?)\(", function)
    return name[1] if name else function.split("\n", 1)[0]


def functions_of_python(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            yield node.name, node.end_lineno - node.lineno + 1


def functions_of(path, text):
    if path.suffix in C_SOURCES:
        return functions_of_c(text)
    return functions_of_python(text) if path.suffix == ".py" else []


def circles(root, paths):
    """-> (folder, files of it that include each other). A header and the source of the same name are one."""
    includes = {}
    for path in paths:
        if path.suffix in C_SOURCES:
            node = path.with_suffix("")
            for name in INCLUDE.findall(path.read_text()):
                found = next((f for f in [path.parent / name, *(root / base / name for base in BASES)] if f.is_file()), None)
                if found and found.parent == path.parent and found.with_suffix("") != node:
                    includes.setdefault(node, set()).add(found.with_suffix(""))

    def reached_from(node):
        reached, left = set(), [node]
        while left:
            new = includes.get(left.pop(), set()) - reached
            reached |= new
            left += new
        return reached

    in_circles = {}
    for node in sorted(includes):
        if node in reached_from(node):
            in_circles.setdefault(node.parent, []).append(node.name)
    return in_circles.items()


def measured(root):
    """-> (kind, what, size, what to say of it)"""
    paths, folders = sources(root), {}
    for path in paths:
        file, text = path.relative_to(root).as_posix(), path.read_text()
        folders[path.parent] = folders.get(path.parent, 0) + 1
        yield "file", file, text.count("\n"), "lines"
        for name, lines in functions_of(path, text):
            yield "function", f"{file}: {name}", lines, "lines"
    for folder, count in folders.items():
        yield "folder", folder.relative_to(root).as_posix(), count, "sources"
    for folder, names in circles(root, paths):
        yield "circle", folder.relative_to(root).as_posix(), len(names), f"files that include each other in a circle: {', '.join(names)}"


def problems(root, known):
    """What is wrong, line by line. `known`: KNOWN, or none of it for a house that is not this one."""
    left = {kind: dict(sizes) for kind, sizes in known.items()}
    for kind, what, size, unit in measured(root):
        if size <= LIMITS[kind]:
            continue
        allowed = left.get(kind, {}).pop(what, LIMITS[kind])
        if size > allowed:
            yield f"{what}: {size} {unit}" + (f"; a {kind} may have {allowed}" if allowed else "")
        elif size < allowed:
            yield f"{what}: {size} {unit}; write that number into KNOWN (scripts/limits.py), so that it does not grow again"
    for kind, sizes in left.items():
        for what in sizes:
            yield f"{what}: this {kind} keeps to the limit, or is gone; strike it from KNOWN (scripts/limits.py)"
