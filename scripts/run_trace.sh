#!/usr/bin/env bash
# The short form of `sudo cudabpf run`: traces a command into traces/trace_<timestamp>.jsonl.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: scripts/run_trace.sh [--kernel] COMMAND [ARGUMENT...]

  --kernel   trace what the driver is asked for, too

The trace goes to traces/trace_<timestamp>.jsonl below the current folder. Exits as the command does.
USAGE
}

options=()
while (($#)); do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --kernel) options+=(--kernel) ;;
    --) shift; break ;;
    -*) echo "run_trace.sh: unknown option $1; \`cudabpf run\` has more of them" >&2; exit 2 ;;
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
((EUID == 0)) || as_root=(sudo)
exec ${as_root[@]+"${as_root[@]}"} "$cudabpf" run ${options[@]+"${options[@]}"} -- "$@"
