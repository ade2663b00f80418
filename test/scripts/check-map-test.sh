#!/usr/bin/env bash
# Runs scripts/check-map on small houses: one in order, and one for each possible fault. Run by ctest.
set -euo pipefail

tool=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/scripts/check-map
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

build() { # a house in order, in $house
  house=$work/house
  rm -rf "$house"
  mkdir -p "$house"/{include/cudabpf,src/util,src/decode,src/sink}
  echo '#include <vector>' >"$house/include/cudabpf/event.hpp"
  echo >"$house/src/util/result.hpp"
  printf '#include "cudabpf/event.hpp"\n#include "util/result.hpp"\n' >"$house/src/decode/record.hpp"
  printf '#include "sink/lines.hpp"\n#include "decode/record.hpp"\n' >"$house/src/sink/lines.cpp"
  echo >"$house/src/sink/lines.hpp"
  cat >"$house/CONTRIBUTING.md" <<'MAP'
| room | what | knows |
|---|---|---|
| `src/util` | errors | |
| `include/cudabpf` | the contract | |
| `src/decode` | records | `include/cudabpf` |
| `src/sink` | lines | `src/decode` |

```mermaid
```
MAP
  "$tool" --draw "$house"
}

# expect WHAT MESSAGE: the check fails, and says so
expect() {
  local said
  if said=$("$tool" "$house" 2>&1); then
    echo "FAILED: it passes with $1"
    failed=1
  elif [[ $said != *"$2"* ]]; then
    printf 'FAILED: with %s it says\n%s\n' "$1" "$said"
    failed=1
  fi
}

build
"$tool" "$house" || { echo "FAILED: it refuses a house in order" && failed=1; }
grep -q 'src_sink --> src_decode' "$house/CONTRIBUTING.md" || { echo "FAILED: an arrow is not drawn" && failed=1; }

echo '#include "sink/lines.hpp"' >>"$house/src/decode/record.hpp"
expect "an arrow turned round" "src/decode/record.hpp:3: src/decode may not know src/sink"

build
sed -i 's/| `src\/decode` | records | `include\/cudabpf` |/| `src\/decode` | records | `include\/cudabpf`, `src\/sink` |/' "$house/CONTRIBUTING.md"
echo '#include "sink/lines.hpp"' >>"$house/src/decode/record.hpp"
expect "a circle in the map" "src/decode knows src/sink, which does not stand above it"

build
echo >"$house/src/decode/record.hpp"
expect "an arrow that is gone" "src/decode includes nothing of include/cudabpf"

build
mkdir "$house/src/new"
echo >"$house/src/new/file.cpp"
expect "a folder that is no room" "src/new/file.cpp: src/new is no room"

build
sed -i '/-->/d' "$house/CONTRIBUTING.md"
expect "a drawing that is another" "the drawing is not that of the table"

exit "$failed"
