"""Reads the tables under include/cudabpf/ for the generators in this folder.

Blank lines and lines that begin with # are skipped; the first other line names the columns."""
import sys


class TableError(Exception):
    """Says what is wrong with a row."""


def read_rows(source, columns, parse):
    """-> what `parse` returns for each row, given its cells and line number

    A mistake ends the program, naming file and line."""
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
