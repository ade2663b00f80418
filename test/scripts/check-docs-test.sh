#!/usr/bin/env bash
# Runs scripts/check-docs on the manual, and on manuals and documents that each have one fault in them. Run by ctest.
# usage: check-docs-test.sh CUDABPF_BINARY
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
binary=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
python=$(python3 -c 'import sys; print(sys.executable)')  # what is found by that name may be a script that looks for it

# expect WHAT MESSAGE SED_COMMAND: the check of a manual so changed fails, says so, and nothing else
expect() {
  local said
  sed -E "$3" "$root/packaging/cudabpf.1" >"$work/cudabpf.1"
  if cmp -s "$root/packaging/cudabpf.1" "$work/cudabpf.1"; then
    echo "FAILED: nothing was changed for $1"
    failed=1
  elif said=$("$python" "$root/scripts/check-docs" "$binary" "$work/cudabpf.1" 2>&1); then
    echo "FAILED: it passes with $1"
    failed=1
  elif [[ $said != "$work/cudabpf.1: $2"$'\n'"the manual: 1 faults" ]]; then
    printf 'FAILED: with %s it says\n%s\n' "$1" "$said"
    failed=1
  fi
}

"$python" "$root/scripts/check-docs" "$binary" "$root/packaging/cudabpf.1" ||
  { echo "FAILED: it refuses the manual" && failed=1; }

# in_synopsis SUBCOMMAND COMMAND: that command of sed's for the subcommand's entry, which ends with .br
in_synopsis() {
  echo "1,/^\.SH DESCRIPTION/{/^\.B cudabpf $1\$/,/^\.br/{$2}}"
}

expect "a subcommand that the SYNOPSIS does not have" "SYNOPSIS: 'cudabpf schema' is missing" \
  "$(in_synopsis schema d)"
expect "a subcommand that the program does not have" "SYNOPSIS: 'cudabpf rewind' does not exist" \
  "$(in_synopsis schema 's/^\.B.*/.B cudabpf rewind\n.br\n&/')"
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
expect "a subsection of no subcommand" "subsection 'cudabpf rewind' is of no subcommand" \
  's/^\.SS cudabpf schema/.SS cudabpf rewind\nRewinds.\n&/'
expect "a subsection that is missing" "no subsection 'cudabpf schema'" '/^\.SS cudabpf schema/,+1d'

root_trace=traces/h200-gpt2.jsonl.zst

# expect_examples MESSAGE SED_COMMAND: of a program whose --help is so changed it says so, and nothing else
mkdir "$work/program"
ln -s "$(dirname "$(realpath "$binary")")/test" "$work/program/test" # where the simulated driver is
expect_examples() {
  local said
  cat >"$work/program/cudabpf" <<END
#!/bin/sh
for last; do :; done
[ "\$last" = --help ] || exec '$binary' "\$@"
'$binary' "\$@" | sed -E '$2'
END
  chmod +x "$work/program/cudabpf"
  said=$("$python" "$root/scripts/check-docs" "$work/program/cudabpf" --examples 2>&1) || true
  if [[ $said != *"$1"*$'\nthe examples of --help: 1 faults' ]]; then
    printf 'FAILED: of --help changed by %s it says\n%s\n' "$2" "$said"
    failed=1
  fi
}
expect_examples "cudabpf gaps --help: has no example of it" '/^  cudabpf gaps/d'
expect_examples "cudabpf gaps --help: 'cudabpf gaps' has no --tip" 's/^  cudabpf gaps --top 30/  sudo cudabpf gaps --tip/'
expect_examples "all that \`cudabpf summary --json $root_trace | jq .phases\` says is: null" 's/jq \.summary\.phases/jq .phases/'
expect_examples "all that \`cudabpf run --inside -- python3 --version\` says is: 0 calls of 0 processes in " \
  's/^(  cudabpf run --inside -- python3) inference.py/\1 --version/'
expect_examples "ends with 125: cudabpf: error: " 's/^(  cudabpf gaps --top 30) .*/\1 none.jsonl/'

# said_of OUTPUT BLOCK [PATH]: what is said of a document that is this block, less its name; an empty OUTPUT: no faults.
# One that begins as OUTPUT does is enough.
said_of() {
  local said status=0 expected=0
  printf '# Shown\n\n```\n%s\n```\n' "$2" >"$work/shown.md"
  said=$(PATH=${3-$PATH} "$python" "$root/scripts/check-docs" "$binary" "$work/shown.md" 2>&1) || status=$?
  case $1 in
    '') [[ $said == "the document: 0 faults" ]] || expected=none ;;
    SKIPPED*) expected=77 && [[ $said == $'the document: 0 faults\n'"$1"* ]] || expected=none ;;
    *) expected=1 && [[ $said == "$work/shown.md:"?(' ')"$1"*$'\nthe document: 1 faults' ]] || expected=none ;;
  esac
  if [[ $status != "$expected" ]]; then
    printf 'FAILED: with status %s, not %s, of this block:\n%s\nit says:\n%s\n' "$status" "$expected" "$2" "$said"
    failed=1
  fi
}

trace=traces/h200-vector-add.jsonl.zst
errors=$(cd "$root" && COLUMNS=80 "$binary" errors "$trace")
[[ $errors == *$'\n'* ]] || { echo "FAILED: errors has too few lines to try it on" && failed=1; }
first=${errors%%$'\n'*} last=${errors##*$'\n'}
command="\$ cudabpf errors $trace"$'\n'
said_of '' "$command$errors"
said_of '' "$command$first"$'\n…\n'"$command"$'…\n'"$last"
said_of '' "$command"$'…\n'"$first"$'\n  …\n'"$last"$'\n…'
said_of '' "T=$trace"$'\ncudabpf errors $T   # nothing is shown\ncudabpf export $T --format csv'
said_of '' $'cudabpf summary yours.jsonl\nsudo cudabpf run -o traces/trace_1.jsonl -- true'
different="this is not what \`cudabpf errors $trace\` prints, which is:"
said_of "$different" "$command"
said_of "$different" "$command$first"
said_of "$different" "$command$last"$'\n…'
said_of "$different" "$command"$'…\n'"$first"
said_of "$different" "$command"$'…\n'"$last"$'\n…\n'"$first"$'\n…'
absent=traces/trace_20260101T000000.jsonl
said_of "\`grep -E '^{' $absent | jq .type\` reads $absent, which is not there" \
  "T=$absent"$'\n'"grep -E '^{' \$T | jq .type"
said_of "\`cudabpf timeline $trace --from 1h\` ends with " "cudabpf timeline $trace --from 1h"
said_of "\`grep --text nothing_like_this $trace | cat\` ends with 1" "grep --text nothing_like_this $trace | cat"
said_of "\`grep --text --quiet -v nothing $trace\` prints nothing" "grep --text --quiet -v nothing $trace"
question="zstdcat $trace | jq -r .type | sort -u | head -n 2"
if command -v jq >/dev/null && command -v zstdcat >/dev/null; then
  said_of '' "\$ $question"$'\ncontext\nend'
  said_of "this is not what \`$question\` prints" "\$ $question"$'\ncontext\nstart'
fi
# A line of a document has 100 columns at most, but in blocks, tables and pictures.
words=$(printf 'word %.0s' {1..20}) # 100 columns
said_of '' "$words$words"
said_of '' '```'$'\n'"${words% }."$'\n\n'"| $words$words |"$'\n\n'"![$words$words](shown.md)"$'\n\n```'
wide='is longer than 100 columns; wrap it'
said_of "5: $wide" '```'$'\n'"${words}w"$'\n\n```'
mkdir "$work/few tools"
said_of 'SKIPPED: what is shown of jq and zstdcat, not found here' "$question" "$work/few tools"

exit "$failed"
