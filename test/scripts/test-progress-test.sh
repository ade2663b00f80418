#!/usr/bin/env bash
# scripts/test-progress: passes every line on, and says how long is left. Run by ctest.
set -euo pipefail

tool=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/scripts/test-progress
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/plan.json" <<'JSON'
{"tests": [
  {"name": "sanitizers_build", "properties": [{"name": "PROCESSORS", "value": 2}, {"name": "LABELS", "value": ["sanitizers"]}]},
  {"name": "A name, with two .. dots", "properties": [{"name": "LABELS", "value": ["unit"]}]},
  {"name": "check_map"}]}
JSON
cat >"$work/lines" <<'LINES'
Test project
    Start 1: sanitizers_build
1/3 Test #1: sanitizers_build .......   Passed  520.00 sec
2/3 Test #2: A name, with two .. dots ....***Failed    0.10 sec
what it printed
3/3 Test #3: check_map ............   Passed    0.10 sec
LINES

# Nothing is said of a run that takes no time.
"$tool" "$work/plan.json" 2 <"$work/lines" | diff - "$work/lines"

cat >"$work/tiers.py" <<'ROWS' # instead of the table of this project's tests
import collections
Row = collections.namedtuple("Row", "seconds")
def read_rows():
    return {"sanitizers_build": [Row(520)]}
def rows_of(rows, name):
    return rows.get(name, [])
ROWS
# With every line, a word about it: 520 s of two CPUs, then two short ones.
sed 's/^EVERY_S = .*/EVERY_S = 0/' "$tool" >"$work/tool"
python3 -B "$work/tool" "$work/plan.json" 2 <"$work/lines" | grep '====' >"$work/said"
diff "$work/said" - <<'EXPECTED'
==== 0 of 3 tests in 0:00, about 8:40 left ====
==== 0 of 3 tests in 0:00, about 8:40 left ====
==== 1 of 3 tests in 0:00, about 0:00 left ====
==== 2 of 3 tests in 0:00, about 0:00 left ====
==== 2 of 3 tests in 0:00, about 0:00 left ====
EXPECTED
