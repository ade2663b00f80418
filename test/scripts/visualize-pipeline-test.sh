#!/usr/bin/env bash
# Checks how scripts/visualize_pipeline calls cudabpf, and that cudabpf accepts it. Run by ctest, with its path.
set -euo pipefail

cudabpf=$(realpath "${1:?the path of cudabpf is missing}")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tool=$root/scripts/visualize_pipeline
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# A cudabpf that prints its arguments; it may refuse a subcommand.
cat >stub <<'STUB'
#!/bin/sh
printf '%s|' "$@"
echo
[ "$1" != "${REFUSES-}" ]
STUB
chmod +x stub

# asked 'ARGUMENTS' EXPECTED: what the stub was asked for.
asked() {
  local arguments
  read -ra arguments <<<"$1"
  [[ $("$tool" --cudabpf ./stub "${arguments[@]}") == "$2" ]] || fail "$1 does not ask for $2"
}
asked 't.jsonl' 'timeline|t.jsonl|'
asked '--format ascii a.zst b.zst' 'timeline|a.zst|b.zst|'
asked 't.jsonl --format=chrome' 'export|--format|chrome|t.jsonl|'
asked 't.jsonl --format chrome --output x.json' 'export|--format|chrome|--output|x.json|t.jsonl|'
asked 't.jsonl --format all' $'summary|t.jsonl|\ntimeline|t.jsonl|\nexport|--format|chrome|t.jsonl|'
[[ $("$tool" --cudabpf ./stub 'a b') == 'timeline|a b|' ]] || fail "names with blanks"
if REFUSES=summary "$tool" --cudabpf ./stub t --format all >out; then fail "cudabpf's status is not passed on"; fi
[[ $(cat out) == 'summary|t|' ]] || fail "goes on where cudabpf refused"

# refused 'ARGUMENTS' WORDS: with status 2, and says why.
refused() {
  local arguments status=0
  read -ra arguments <<<"$1"
  "$tool" --cudabpf ./stub "${arguments[@]}" >out 2>errors || status=$?
  [[ $status == 2 && ! -s out ]] && grep -q -- "$2" errors || fail "$1: status $status, $(cat errors)"
}
refused '' 'usage:'
refused 't --format svg' 'not svg'
refused 't --colour' 'unknown option --colour'
refused '- --format all' 'only once'
"$tool" --help | grep -q '^usage:' || fail "--help"

# The real one.
trace=$root/test/golden/trace.jsonl
"$tool" "$trace" --cudabpf "$cudabpf" --format all --output "$work/t.json" >out
grep -q cuMemAlloc out || fail "the answer is not about the trace"
python3 -c 'import json, sys; events = json.load(open(sys.argv[1])); assert events, "empty"' t.json
