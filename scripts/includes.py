"""Which sources a change concerns: those that changed or include a changed header, or whose own header does.

usage: includes.py PATH... <SOURCES    prints those of the sources, one a line, that a change concerns; all of them if
                                       one of the paths, or what is below it, changed"""
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
def includers():
    """-> {file: the files that include it}"""
    found = {}
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.[ch]*"):
            if path.suffix not in SOURCES:
                continue
            for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
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


def concerned(sources, everything_if):
    """Those of the sources that changed or include a changed header, or whose own header does."""
    if (found := changed_files()) is None or changed(sources, everything_if) == sources:
        return list(sources)
    by = includers()
    near = found.union(*(by.get(path, []) for path in found))
    return [path for path in sources if path in near or path.with_suffix(".hpp") in near]


if __name__ == "__main__":
    for source in concerned([(ROOT / line.rstrip("\n")).resolve() for line in sys.stdin], sys.argv[1:]):
        print(source.relative_to(ROOT))
