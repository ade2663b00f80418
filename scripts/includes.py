"""Which sources a change concerns.

usage: includes.py <SOURCES    prints those of the sources, one a line, that changed or include a changed header of their
                               own name; and of those that see the kernel's headers, what includes any changed header"""
import functools
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("src", "include", "bpf", "inside", "test")
BASES = ("src", "include", "test/unit", "bpf", "inside")  # where an include is found, besides its own folder
SOURCES = {".c", ".h", ".cpp", ".hpp"}  # and no other that begins so, such as what Python compiled
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
KERNEL = re.compile(r"^\s*#\s*include\s+<(linux/(?!types\.h)|bpf/)", re.MULTILINE)  # the names of integers are no kernel's


def changed_files():
    """The files that scripts/test found changed, from the list that CUDABPF_CHANGED names; None: everything counts."""
    path = os.environ.get("CUDABPF_CHANGED")
    if not path:
        return None
    return {ROOT / line for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines()}


def target_of(path, name):
    """The file of ours that a file means by #include "name"; None: there is none."""
    candidates = [path.parent / name] + [ROOT / base / name for base in BASES]
    return next((c.resolve() for c in candidates if c.is_file()), None)


@functools.cache  # it reads every source
def texts():
    """-> {file of ours: what is in it}"""
    return {path: path.read_text(encoding="utf-8") for folder in FOLDERS for path in (ROOT / folder).rglob("*.[ch]*")
            if path.suffix in SOURCES}


@functools.cache
def includers():
    """-> {file: the files that include it}"""
    found = {}
    for path, text in texts().items():
        for name in INCLUDE.findall(text):
            if target := target_of(path, name):
                found.setdefault(target, []).append(path)
    return found


def changed(sources, everything_if):
    """Those of the sources that changed. A change to one of `everything_if` counts as one of all."""
    found = changed_files()
    if found is None or any(path.is_relative_to(ROOT / name) for path in found for name in everything_if):
        return list(sources)
    return [path for path in sources if path in found]


def with_includers(files):
    """The files, and whatever includes one of them, however many headers lie between."""
    by, reached, left = includers(), set(), list(files)
    while left:
        path = left.pop()
        if path not in reached:
            reached.add(path)
            left += by.get(path, [])
    return reached


def concerned(sources):
    """Those of the sources that changed, or whose own header did; and of those that see the kernel's headers, what
    includes any changed header. The others are compiled with it anyway, by whatever builds."""
    if (found := changed_files()) is None:
        return list(sources)
    see_kernel = with_includers([path for path, text in texts().items() if KERNEL.search(text)])
    affected = with_includers(found) & see_kernel
    return [path for path in sources if path in found or path.with_suffix(".hpp") in found or path in affected]


if __name__ == "__main__":
    for source in concerned([(ROOT / line.rstrip("\n")).resolve() for line in sys.stdin]):
        print(source.relative_to(ROOT))
