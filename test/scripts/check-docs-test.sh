#!/usr/bin/env bash
# Runs scripts/check-docs on the manual, and on manuals that each have one fault in them. Run by ctest.
# usage: check-docs-test.sh CUDABPF_BINARY
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
binary=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# expect WHAT MESSAGE SED_COMMAND: the check of a manual so changed fails, says so, and nothing else
expect() {
  local said
  sed -E "$3" "$root/packaging/cudabpf.1" >"$work/cudabpf.1"
  if cmp -s "$root/packaging/cudabpf.1" "$work/cudabpf.1"; then
    echo "FAILED: nothing was changed for $1"
    failed=1
  elif said=$("$root/scripts/check-docs" "$binary" "$work/cudabpf.1" 2>&1); then
    echo "FAILED: it passes with $1"
    failed=1
  elif [[ $said != "$work/cudabpf.1: $2"$'\n'"the manual: 1 faults" ]]; then
    printf 'FAILED: with %s it says\n%s\n' "$1" "$said"
    failed=1
  fi
}

"$root/scripts/check-docs" "$binary" "$root/packaging/cudabpf.1" ||
  { echo "FAILED: it refuses the manual" && failed=1; }

# in_synopsis SUBCOMMAND COMMAND: that command of sed's for the subcommand's entry, which ends with .br
in_synopsis() {
  echo "1,/^\.SH DESCRIPTION/{/^\.B cudabpf $1\$/,/^\.br/{$2}}"
}

expect "a subcommand that the SYNOPSIS does not have" "SYNOPSIS: 'cudabpf schema' is missing" \
  "$(in_synopsis schema d)"
expect "a subcommand that the program does not have" "SYNOPSIS: 'cudabpf replay' does not exist" \
  "$(in_synopsis schema 's/^\.B.*/.B cudabpf replay\n.br\n&/')"
expect "an argument that the SYNOPSIS does not have" \
  "SYNOPSIS: 'cudabpf kernels' does not have trace, which --help has" \
  "$(in_synopsis kernels /TRACE/d)"
expect "an argument that --help does not have" "SYNOPSIS: 'cudabpf schema' has FIELD, which --help does not have" \
  "$(in_synopsis schema 's/^\.B.*/&\n.I FIELD/')"
expect "one trace for several" \
  "SYNOPSIS: 'cudabpf gaps' has TRACE, but in --help trace is required, and there may be several" \
  "$(in_synopsis gaps 's/TRACE \.\.\./TRACE/')"
expect "an optional argument for a required one" \
  "SYNOPSIS: 'cudabpf gaps' has [TRACE]..., but in --help trace is required, and there may be several" \
  "$(in_synopsis gaps 's/\.IR TRACE \.\.\./.RI [ TRACE ]\.\.\./')"
expect "an option that the SYNOPSIS does not have" "SYNOPSIS: 'cudabpf doctor' has neither --json nor [options]" \
  "$(in_synopsis doctor /json/d)"
expect "an option that --help does not have" \
  "SYNOPSIS: 'cudabpf doctor' has --jsonl, which --help does not have" \
  "$(in_synopsis doctor 's/json \]/&\n.RB [ \\-\\-jsonl ]/')"
expect "a subsection of no subcommand" "subsection 'cudabpf replay' is of no subcommand" \
  's/^\.SS cudabpf schema/.SS cudabpf replay\nReplays.\n&/'
expect "a subsection that is missing" "no subsection 'cudabpf schema'" '/^\.SS cudabpf schema/,+1d'

exit "$failed"
