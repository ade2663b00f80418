"""Reads test/tiers.tsv: which tests run when, and how long each takes."""
import collections
import re

import includes
import tables

TIERS = includes.ROOT / "test/tiers.tsv"
COLUMNS = ["tests", "tier", "seconds", "paths"]
Row = collections.namedtuple("Row", COLUMNS)


def parse(cells, _):
    if len(cells) not in (3, 4):
        raise tables.TableError(f"a row has {', '.join(COLUMNS)}")
    pattern, tier, seconds, paths = (cells + [""])[:4]
    if tier not in ("always", "change", "release"):
        raise tables.TableError(f"a tier is always, change or release, not {tier}")
    if (tier == "change") != bool(paths):
        raise tables.TableError("tests of the tier change name paths, and no others do")
    for path in paths.split():
        if not list(includes.ROOT.glob(path)):
            raise tables.TableError(f"there is no {path}")
    return Row(re.compile(pattern), tier, float(seconds), paths.split())


def read_rows():
    return tables.read_rows(TIERS, COLUMNS, parse)


def rows_of(rows, name):
    return [row for row in rows if row.tests.fullmatch(name)]
