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

# A cudabpf that prints its arguments; it may refuse a subcommand, or a trace. Its formats are its own.
cat >stub <<'STUB'
#!/bin/sh
if [ "$*" = "export --help" ]; then
  echo '  --format chrome|drawing|all=chrome'
  exit 0
fi
printf '%s|' "$@"
echo
for last; do :; done
[ "$1" != "${REFUSES-}" ] && [ "$last" != "${REFUSES-}" ] || exit 125
STUB
chmod +x stub

# expect_calls 'ARGUMENTS' EXPECTED: how the stub was called.
expect_calls() {
  local arguments calls
  read -ra arguments <<<"$1"
  calls=$("$tool" --cudabpf ./stub "${arguments[@]}")
  [[ $calls == "$2" ]] || fail "$1 does not call $2 but $calls"
}
expect_calls 't.jsonl' 'timeline|t.jsonl|'
expect_calls 't.jsonl --format=chrome' 'export|--format|chrome|t.jsonl|'
expect_calls 't.jsonl --format chrome --output x.json' 'export|--format|chrome|--output|x.json|t.jsonl|'
expect_calls 't.jsonl --format drawing' 'export|--format|drawing|t.jsonl|'
expect_calls 't.jsonl --format all' $'summary|t.jsonl|\ntimeline|t.jsonl|\nexport|--format|all|t.jsonl|'
expect_calls '--format ascii -' 'timeline|-|'
[[ $("$tool" --cudabpf ./stub 'a b') == 'timeline|a b|' ]] || fail "names with blanks"
[[ $(python3 "$tool" --cudabpf ./stub t) == 'timeline|t|' ]] || fail "python3 does not run it"

# Several traces: one after the other, each under its name.
expect_calls 'a.zst b.jsonl' $'a.zst\ntimeline|a.zst|\n\nb.jsonl\ntimeline|b.jsonl|'
expect_calls 'a.zst --format chrome b.jsonl' \
  $'a.zst\nexport|--format|chrome|a.zst|\n\nb.jsonl\nexport|--format|chrome|b.jsonl|'
expect_calls 'a.jsonl b.jsonl --format drawing --output o' \
  $'a.jsonl\nexport|--format|drawing|--output|o/a|a.jsonl|\n\nb.jsonl\nexport|--format|drawing|--output|o/b|b.jsonl|'
[[ -d o/a && -d o/b ]] || fail "there are no folders for their files"
expect_calls 'a.jsonl a.jsonl' 'timeline|a.jsonl|'

# Files of a rotated trace: one trace, in the order of their numbers.
expect_calls 't.0001.jsonl t.0002.jsonl' 'timeline|t.0001.jsonl|t.0002.jsonl|'
expect_calls 'f/t.10000.jsonl.zst f/t.9999.jsonl.zst' 'timeline|f/t.9999.jsonl.zst|f/t.10000.jsonl.zst|'
expect_calls 't.0001.jsonl u.jsonl t.0002.jsonl f/t.0003.jsonl' \
  $'t.0001.jsonl t.0002.jsonl\ntimeline|t.0001.jsonl|t.0002.jsonl|\n\nu.jsonl\ntimeline|u.jsonl|\n\nf/t.0003.jsonl\ntimeline|f/t.0003.jsonl|'
expect_calls 'trace_20261122T101500.jsonl trace_20261122T101500-2.jsonl' \
  $'trace_20261122T101500.jsonl\ntimeline|trace_20261122T101500.jsonl|\n\ntrace_20261122T101500-2.jsonl\ntimeline|trace_20261122T101500-2.jsonl|'

# ends STATUS ARGUMENT...: with that status; `out` has what was printed
ends() {
  local expected=$1 status=0
  shift
  "$tool" --cudabpf ./stub "$@" >out || status=$?
  ((status == expected)) || fail "$* ends with $status"
}
REFUSES=summary ends 125 t --format all
[[ $(cat out) == 'summary|t|' ]] || fail "goes on with a trace that cudabpf refused"
REFUSES=a ends 125 a b
[[ $(cat out) == $'a\ntimeline|a|\n\nb\ntimeline|b|' ]] || fail "does not go on with the next trace"

# refused 'ARGUMENTS' WORDS: with status 2, and says why.
refused() {
  local arguments status=0
  read -ra arguments <<<"$1"
  "$tool" --cudabpf ./stub "${arguments[@]}" >out 2>errors || status=$?
  [[ $status == 2 && ! -s out ]] && grep -q -- "$2" errors || fail "$1: status $status, $(cat errors)"
}
refused '' 'usage:'
refused 't --format svg' '--format takes ascii, chrome, drawing, all, not svg'
refused 't --colour' '--colour'
refused '- --format all' 'only once'
refused '- -' 'only once'
refused 'e/t.jsonl f/t.jsonl.zst --format chrome' 'several traces are called t,'
refused 'a b --format chrome --output -' 'takes one trace'
refused 't --cudabpf ./none' 'cannot run ./none'
refused 't --cudabpf true' 'names no formats'
"$tool" --help | grep -q '^usage:' || fail "--help"

# The real one, with every format that it has.
trace=$root/test/golden/trace.jsonl
"$tool" "$trace" --cudabpf "$cudabpf" --format all --output here >out
grep -q cuMemAlloc out || fail "the answer is not about the trace"
python3 -c 'import json, sys; events = json.load(open(sys.argv[1])); assert events, "empty"' here/trace.chrome.json
mkdir at
formats=$("$cudabpf" export --help | sed -nE 's/^  --format ([a-z|]+).*/\1/p')
[[ $formats == *chrome*perfetto* ]] || fail "export's formats are not found: $formats"
for format in ascii ${formats//|/ }; do
  COLUMNS=80 "$tool" "$trace" --cudabpf "$cudabpf" --format "$format" --output "at/$format" >out || fail "--format $format"
  [[ -s out ]] || fail "--format $format prints nothing"
  [[ $format == ascii || -e at/$format ]] || fail "--format $format writes nothing"
done
# The traces of the repository, all at once.
traces=("$root"/traces/*.zst)
COLUMNS=80 python3 "$tool" "${traces[@]}" --cudabpf "$cudabpf" >out
for shipped in "${traces[@]}"; do
  grep -A3 -Fx "$shipped" out | grep -q '^process ' || fail "$shipped is not drawn"
done
