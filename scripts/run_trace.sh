#!/usr/bin/env bash
# The short form of `sudo cudabpf run`: traces a command into traces/trace_<timestamp>.jsonl.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: scripts/run_trace.sh [--kernel] COMMAND [ARGUMENT...]

  --kernel   also trace requests to the driver

The trace goes to traces/trace_<timestamp>.jsonl below the current folder. Exits with the command's status.
USAGE
}

options=()
while (($#)); do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --kernel) options+=(--kernel) ;;
    --) shift; break ;;
    -*) echo "run_trace.sh: unknown option $1; \`cudabpf run\` has more options" >&2; exit 2 ;;
    *) break ;;
  esac
  shift
done
(($#)) || { usage >&2; exit 2; }

cudabpf=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/build/cudabpf
[[ -x $cudabpf ]] || cudabpf=$(command -v cudabpf) || {
  echo "run_trace.sh: there is no cudabpf: build it (./scripts/quickstart) or install it" >&2
  exit 2
}
as_root=()
if ((EUID != 0)); then
  command -v sudo >/dev/null || {
    echo "run_trace.sh: BPF needs root, and there is no sudo: run this as root" >&2
    echo "run_trace.sh: or call \`$cudabpf run\` with the capabilities that \`cudabpf doctor\` names" >&2
    exit 2
  }
  as_root=(sudo)
fi
exec ${as_root[@]+"${as_root[@]}"} "$cudabpf" run ${options[@]+"${options[@]}"} -- "$@"
