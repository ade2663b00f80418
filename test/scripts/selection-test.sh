#!/usr/bin/env bash
# scripts/changed-files and scripts/select-tests: what a change is, and which tests it needs. Run by ctest.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# --- a checkout of its own
mkdir -p "$work/checkout/scripts"
cp "$root/scripts/changed-files" "$work/checkout/scripts"
cd "$work/checkout"
git init --quiet --initial-branch main .
git config user.name nobody
git config user.email nobody@localhost
commit() { # DATE FILE
  echo "$1" >"$2"
  git add --all
  GIT_AUTHOR_DATE=$1 GIT_COMMITTER_DATE=$1 git commit --quiet --message "$2"
}
changed() {
  scripts/changed-files "$@" | tr '\n' ' '
}
expect() { # WHAT EXPECTED
  [[ $1 == "$2" ]] || { echo "not '$2': '$1'"; exit 1; }
}
commit 2026-01-01T10:00:00Z old
! scripts/changed-files 2>"$work/said" || exit 1
grep -q 'not three hours long' "$work/said"
commit 2026-01-04T06:30:00Z earlier
commit 2026-01-04T09:00:00Z today
expect "$(changed)" "earlier today "
expect "$(changed --since HEAD~1)" "today "
git update-ref refs/remotes/origin/main HEAD~1
expect "$(changed)" "today "
echo uncommitted >>old
echo new >new
expect "$(changed)" "new old today "
git update-ref refs/remotes/origin/main HEAD # as in a clone: its own commits are not known from it
expect "$(changed)" "earlier new old today "
! scripts/changed-files --since nowhere 2>/dev/null || exit 1

# --- the tests that a change needs
cat >"$work/plan" <<'JSON'
{"tests": [{"name": "check_map"}, {"name": "vm_driver_6_12"}, {"name": "attack_long"}, {"name": "report_page"}]}
JSON
selected() {
  "$root/scripts/select-tests" "$@" "$work/plan" 2>"$work/said"
}
expect "$(CUDABPF_CHANGED='' selected)" '^(check_map|vm_driver_6_12|report_page)$'
grep -q '^1 tests left out: they are for releases' "$work/said"
expect "$(CUDABPF_CHANGED='' selected --all)" '^(check_map|vm_driver_6_12|attack_long|report_page)$'
echo bpf/call.h >"$work/changed"
expect "$(CUDABPF_CHANGED=$work/changed selected)" '^(check_map|vm_driver_6_12)$'
grep -q '^1 tests left out: what they test did not change' "$work/said"
echo README.md >"$work/changed"
expect "$(CUDABPF_CHANGED=$work/changed selected)" '^(check_map)$'
echo '{"tests": [{"name": "nobody_knows_it"}]}' >"$work/plan"
expect "$(CUDABPF_CHANGED='' selected)" '^(nobody_knows_it)$'
! "$root/scripts/select-tests" --check "$work/plan" >"$work/said" || exit 1
grep -q '^nobody_knows_it: 0 rows' "$work/said"
grep -q '^attack_long: no test has such a name' "$work/said"

# --- the sources that a change affects
cd "$root"
affected() {
  printf 'src/capture/capture.cpp\nsrc/util/text/printable.cpp\nsrc/main.cpp\n' |
    CUDABPF_CHANGED=$1 python3 -B scripts/includes.py | tr '\n' ' '
}
expect "$(affected "")" "src/capture/capture.cpp src/util/text/printable.cpp src/main.cpp "
for case in "src/main.cpp=src/main.cpp " "src/util/text/printable.hpp=src/util/text/printable.cpp " \
  "include/cudabpf/source.hpp=src/capture/capture.cpp " "README.md="; do # what sees the kernel's headers
  echo "${case%%=*}" >"$work/changed"
  expect "$(affected "$work/changed")" "${case#*=}"
done
