#!/usr/bin/env python3
"""Turns the tables of include/cudabpf/driver/ into the C++ that src/tables/driver_tables.cpp includes.

A mistake in a table is an error here, with its line, and not a wrong trace later."""
import re
import sys

from tables import TableError, read_rows

GROUPS = {"scheduling", "channel", "memory", "event", "peer", "query", "power", "other"}
HANDLES = ["client", "parent", "object"]
FIELDS = HANDLES + ["control", "class", "length", "base", "status"]  # as struct Layout has them
WIDTHS = {"length": 8, "base": 8}  # the others have 4 bytes
RETURNED = {"object", "base"}  # may be `out.`: describe_ioctl_return() reads them again
LIMITS = {"length", "size"}  # may be `+1`
VERSIONED = ["number", "name", "group", "since", "until"]
COLUMNS = {
    "escapes": VERSIONED + ["size", "when"] + FIELDS,
    "uvm": VERSIONED + ["size", "client", "object", "length", "base", "status"],
    "controls": VERSIONED + ["firmware", "value"],
    "classes": VERSIONED + ["size", "value"],
    "status": ["number", "name"],
    "xid": ["number", "meaning"],
}
ALWAYS = (1 << 16, 0, 0)  # `until` of a row that holds to this day; later than any version


def parse_integer(text, what, limit):
    if not re.fullmatch(r"0x[0-9a-f]+|0|[1-9][0-9]*", text):
        raise TableError(f"{what}: '{text}' is no number")
    number = int(text, 0)
    if number > limit:
        raise TableError(f"{what}: '{text}' is too large")
    return number


def parse_version(text, what, absent):
    if text == "-":
        return absent
    if not re.fullmatch(r"\d{1,5}(\.\d{1,5}){0,2}", text):
        raise TableError(f"{what}: '{text}' is no version")
    parts = [int(part) for part in text.split(".")]
    if parts[0] == 0 or max(parts) > 65535:
        raise TableError(f"{what}: '{text}' is no version")
    return tuple(parts + [0] * (3 - len(parts)))


def parse_field(text, column, size):
    """`8`, `out.8`, `32+1` -> the text of a C++ Field"""
    if text == "-":
        return "{}"
    parts = re.fullmatch(r"(out\.)?(\d+)(\+1)?", text)
    if not parts or (parts[1] and column not in RETURNED) or (parts[3] and column not in LIMITS):
        raise TableError(f"{column}: cannot read '{text}'")
    at = int(parts[2])
    if at + WIDTHS.get(column, 8 if column == "size" else 4) > size:
        raise TableError(f"{column}: {at} lies outside the struct")
    return f"{{{at}, {1 if parts[3] else 0}, {'true' if parts[1] else 'false'}}}"


def parse_value(text):
    """`timeslice_us@0:8` -> the text of a C++ Value"""
    if text == "-":
        return "{}"
    parts = re.fullmatch(r"([a-z_]+)@(\d+):([1248])", text)
    if not parts or int(parts[2]) > 255:
        raise TableError(f"value: cannot read '{text}'")
    return f'{{"{parts[1]}", {parts[2]}, {parts[3]}}}'


def parse_layout(row):
    """-> the C++ of struct size, condition and Layout"""
    size = 0 if row["size"] == "-" else parse_integer(row["size"], "size", 16384)
    when = "{}"
    if row.get("when", "-") != "-":
        parts = re.fullmatch(r"(\d+)=(\d+)", row["when"])
        if not parts or int(parts[1]) + 4 > size or int(parts[2]) > 0xFFFFFFFF:
            raise TableError(f"when: cannot read '{row['when']}'")
        when = f"{{true, {parts[1]}, {parts[2]}}}"
    fields = [parse_field(row.get(column, "-"), column, size) for column in FIELDS]
    return f'{size}, {when}, {{{", ".join(fields)}}}'


def parse_firmware(text):
    if text not in ("yes", "-"):
        raise TableError(f"firmware: '{text}' is neither 'yes' nor '-'")
    return "true" if text == "yes" else "false"


def cpp_version(version):
    return "ALWAYS" if version == ALWAYS else "{%d, %d, %d}" % version


def check_versions(row, others):
    """At any version, a number has one name and a struct one layout."""
    for other in others:
        if row["range"][0] >= other["range"][1] or other["range"][0] >= row["range"][1]:
            continue
        if "when" not in row and "status" not in row:
            raise TableError(f"overlaps '{other['name']}' in line {other['line']}")
        if row["name"] != other["name"] or row["group"] != other["group"]:
            raise TableError(f"overlaps '{other['name']}' in line {other['line']}, which differs")
        if "when" not in row or (row["size"], row["when"]) == (other["size"], other["when"]):
            raise TableError(f"overlaps line {other['line']}: two layouts of one struct")


def parse_row(table, row, number, others):
    """-> the text of the C++ row; `others` are earlier rows with the same number"""
    if "group" not in row:
        text = row.get("name", row.get("meaning"))
        if not re.fullmatch(r"NV_[A-Z0-9_]+" if table == "status" else r"[ -!#-\[\]-~]+", text):
            raise TableError(f"cannot read '{text}'")
        if others:
            raise TableError(f"'{row['number']}' stands twice")
        return f'{{{number:#x}, "{text}"}},'
    if not re.fullmatch(r"[A-Za-z0-9_]+", row["name"]):
        raise TableError(f"'{row['name']}' is no name")
    if row["group"] not in GROUPS:
        raise TableError(f"unknown group '{row['group']}'")
    since = parse_version(row["since"], "since", (0, 0, 0))
    until = parse_version(row["until"], "until", ALWAYS)
    if since >= until:
        raise TableError(f"until '{row['until']}' is not after since '{row['since']}'")
    row["range"] = (since, until)
    check_versions(row, others)
    if table in ("escapes", "uvm"):
        rest = parse_layout(row)
    elif table == "controls":
        rest = f"{parse_firmware(row['firmware'])}, {parse_value(row['value'])}"
    else:
        rest = f"{parse_field(row['size'], 'size', 256)}, {parse_value(row['value'])}"
    return (f'{{{{{number:#x}, "{row["name"]}", DriverGroup::{row["group"]}, '
            f'{cpp_version(since)}, {cpp_version(until)}}}, {rest}}},')


def parse_cells(table, cells, line_number, seen):
    """-> (number, since, line number, the text of the C++ row); `seen`: earlier rows, by number"""
    columns = COLUMNS[table]
    if len(cells) != len(columns) or not all(cells):
        raise TableError(f"{len(columns)} columns are needed, none of them empty")
    row = dict(zip(columns, cells), line=line_number)
    number = parse_integer(cells[0], "number", 0xFF if table == "escapes" else 0xFFFFFFFF)
    others = seen.setdefault(number, [])
    text = parse_row(table, row, number, others)
    others.append(row)
    return number, row.get("range", ((0, 0, 0),))[0], line_number, text


def read_table(folder, table):
    """-> the C++ rows, sorted by number and version for binary search"""
    source, seen = f"{folder}/{table}.tsv", {}
    rows = read_rows(source, COLUMNS[table], lambda cells, line: parse_cells(table, cells, line, seen))
    if not rows:
        sys.exit(f"{source}: no rows")
    return [text for *_, text in sorted(rows)]


def main():
    folder, target = sys.argv[1:]
    types = {"escapes": "IoctlRow", "uvm": "IoctlRow", "controls": "ControlRow",
             "classes": "ClassRow", "status": "TextRow", "xid": "TextRow"}
    tables = {table: read_table(folder, table) for table in COLUMNS}
    with open(target, "w", encoding="utf-8") as out:
        out.write("// Generated by scripts/gen-driver-tables.py from include/cudabpf/driver/.\n")
        for table, rows in tables.items():
            out.write(f"constexpr {types[table]} {table.upper()}[] = {{\n")
            out.writelines(f"    {row}\n" for row in rows)
            out.write("};\n\n")


if __name__ == "__main__":
    main()
