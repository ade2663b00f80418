#!/usr/bin/env python3
"""Says which headers of others can be precompiled for a source that is still to see only what it includes itself: those
that it includes, directly or through our headers, before any other line of ours.

usage: beginnings.py FOLDER <SOURCES    writes the headers to precompile to FOLDER; prints for each source the one that is
                                        for it, and the source"""
import pathlib
import re
import sys

import includes

ANY_INCLUDE = re.compile(r'#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')
NO_CODE = re.compile(r"//|#pragma once|$")
# A source gets the first of these of which it includes all: those that take the compiler longest come first.
PRECOMPILED = [
    ["nlohmann/json.hpp", "fmt/format.h"],
    ["nlohmann/json.hpp"],
    ["fmt/format.h", "string", "vector"],
    ["functional", "map", "memory", "optional", "string", "vector"],
    ["functional", "string", "vector"],
    ["memory", "string", "vector"],
    ["string", "vector"],
    ["string"],
    [],
]


def beginning(path, found, seen):
    """Adds others' headers to `found`; returns whether all of the file is includes."""
    seen.add(path)
    for line in path.read_text(encoding="utf-8").splitlines():
        include = ANY_INCLUDE.match(line)
        if not include:
            if not NO_CODE.match(line):
                return False
        elif include[2]:
            found.add(include[2])
        elif (ours := includes.target_of(path, include[1])) is None:
            return False
        elif ours not in seen and not beginning(ours, found, seen):
            return False
    return True


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 2
    folder = pathlib.Path(sys.argv[1])
    for line in sys.stdin:
        source = (includes.ROOT / line.rstrip("\n")).resolve()
        beginning(source, found := set(), set())
        row, headers = next((row, headers) for row, headers in enumerate(PRECOMPILED) if found.issuperset(headers))
        header = folder / f"{row}.hpp"
        header.write_text("".join(f"#include <{name}>\n" for name in headers), encoding="utf-8")
        print(header, source.relative_to(includes.ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
