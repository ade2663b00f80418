"""Reads the tables under include/cudabpf/ for the generators in this folder.

Blank lines and those that begin with # are passed over; the first of the others names the columns."""
import sys


class TableError(Exception):
    """What is wrong with a row."""


def read_rows(source, columns, parse):
    """-> what `parse` makes of each row, given its cells and its line's number

    A mistake ends the program, with the file and line."""
    rows, header = [], None
    with open(source, encoding="utf-8") as table:
        for number, line in enumerate(table, 1):
            line = line.rstrip("\n")
            if not line or line.startswith("#"):
                continue
            cells = line.split("\t")
            if header is None:
                header = cells
                if header != columns:
                    sys.exit(f"{source}:{number}: columns must be {columns}")
                continue
            try:
                rows.append(parse(cells, number))
            except TableError as error:
                sys.exit(f"{source}:{number}: {error}")
    return rows
