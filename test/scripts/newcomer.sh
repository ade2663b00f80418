#!/usr/bin/env bash
# What README promises after scripts/quickstart, one command after the other. It installs cudabpf on the machine, so
# scripts/fresh-machine runs it, on one that is thrown away.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH=$PWD/build/test/fake_libcuda
program=(build/test/workloads/fake_inference --tokens 5)

# promised NAME COMMAND...: it ends well
promised() {
  local name=$1
  shift
  "$@" >"$work/said" 2>&1 || { status=$?; cat "$work/said" >&2; echo "FAILED ($status): $name" >&2; exit 1; }
  echo "passed: $name"
}
# has_calls TRACE: its launches were recorded
has_calls() {
  local launches
  launches=$(jq -r 'select(.op=="launch") | .name' "$1" | wc -l)
  ((launches > 0)) || { echo "FAILED: $1 has no launches" >&2; exit 1; }
}

promised "run, without root" build/cudabpf run -o "$work/rootless.jsonl" -- "${program[@]}"
has_calls "$work/rootless.jsonl"
promised "run --inside" build/cudabpf run --inside -o "$work/inside.jsonl" -- "${program[@]}"
has_calls "$work/inside.jsonl"
promised "run --gpu, as root" sudo env LD_LIBRARY_PATH="$LD_LIBRARY_PATH" build/cudabpf run --gpu -o "$work/gpu.jsonl" -- "${program[@]}"
has_calls "$work/gpu.jsonl"
promised "top --inside" build/cudabpf top --inside --once -- "${program[@]}"
promised "report" build/cudabpf report traces/h200-gpt2.jsonl.zst -o "$work/report.html"
promised "cmake --install" sudo cmake --install build
promised "the installed program" cudabpf run --inside -o "$work/installed.jsonl" -- "${program[@]}"
has_calls "$work/installed.jsonl"
promised "the installed program, through sudo" sudo cudabpf --version
promised "cpack" sh -c 'cd build && cpack'
promised "the package" sudo apt-get install -qq -y ./build/cudabpf_*_amd64.deb
promised "the package's program" /usr/bin/cudabpf run --inside -o "$work/package.jsonl" -- "${program[@]}"
has_calls "$work/package.jsonl"
promised "the static binary" cmake --build --preset default --target cudabpf-static
promised "a summary by the static binary" build/cudabpf-static summary "$work/package.jsonl"
