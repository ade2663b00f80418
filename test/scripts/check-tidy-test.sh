#!/usr/bin/env bash
# Runs scripts/check-tidy on sources that have a name each for itself, and on headers. Run by ctest.
set -euo pipefail

tool=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/scripts/check-tidy
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# Three sources of one folder, of which two have a MUCH of their own, and a header.
mkdir "$work"/{build,src}
for name in first second; do
  printf 'namespace {\nconstexpr int MUCH = 3;\n}\nint %s() { return MUCH; }\n' $name >"$work/src/$name.cpp"
done
printf '#include "clean.hpp"\nint third() { return fourth(); }\n' >"$work/src/third.cpp"
printf '#pragma once\ninline int fourth() { return 4; }\n' >"$work/src/clean.hpp"
printf '#pragma once\ninline int* fifth() { return 0; }\n' >"$work/src/faulty.hpp"
printf 'int* sixth() { return 0; }\n' >"$work/src/sixth.cpp"
{
  separator='['
  for name in first second third sixth; do
    printf '%s{"directory": "%s", "file": "%s", "command": "c++ -std=c++20 -I%s/src -o %s.o -c %s"}' \
      "$separator" "$work/build" "$work/src/$name.cpp" "$work" $name "$work/src/$name.cpp"
    separator=', '
  done
  echo ']'
} >"$work/build/compile_commands.json"

# expect STATUS MESSAGE FILE…: what it says about these files has the message in it
expect() {
  local status=0 said
  said=$("$tool" "$work/build" "${@:3}" 2>&1) || status=$?
  if [ $status = 77 ]; then
    echo "$said"
    exit 77
  fi
  if [ $status != "$1" ] || [[ $said != *"$2"* ]]; then
    printf 'FAILED: of %s it says, with status %d:\n%s\n' "${*:3}" $status "$said"
    failed=1
  fi
}

cd "$work/src"
expect 0 '3 files are clean' first.cpp second.cpp third.cpp
expect 0 '2 files are clean' clean.hpp third.cpp
expect 1 'faulty.hpp:2:' first.cpp second.cpp faulty.hpp
expect 1 'sixth.cpp:1:' first.cpp second.cpp sixth.cpp
echo 'int seventh();' >seventh.cpp
expect 2 'does not compile' first.cpp seventh.cpp
exit $failed
