#!/usr/bin/env bash
# Checks how scripts/run_trace.sh calls cudabpf, and how it ends. Run by ctest.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# A checkout whose cudabpf prints its arguments.
mkdir -p "$work/a checkout/scripts" "$work/a checkout/build"
tool=$work/a\ checkout/scripts/run_trace.sh
cp "$root/scripts/run_trace.sh" "$tool"
cat >"$work/a checkout/build/cudabpf" <<'STUB'
#!/bin/sh
printf '%s|' "$@"
exit 7
STUB
chmod +x "$work/a checkout/build/cudabpf"
if ((EUID != 0)); then # no password is wanted here
  printf '#!/bin/sh\nexec "$@"\n' >"$work/sudo"
  chmod +x "$work/sudo"
  PATH=$work:$PATH
fi

# expect_call EXPECTED ARGUMENT...
expect_call() {
  local expected=$1 status=0 call
  shift
  call=$("$tool" "$@") || status=$?
  [[ $call == "$expected" ]] || fail "$* runs $call, not $expected"
  ((status == 7)) || fail "$* ends with $status"
}

expect_call 'run|--|python|a b.py|--kernel|' python 'a b.py' --kernel
expect_call 'run|--kernel|--|true|' --kernel true
expect_call 'run|--kernel|--|--odd|' --kernel -- --odd

for wrong in '' '--kernel' '--nonsense true'; do
  status=0
  # shellcheck disable=SC2086  # words
  "$tool" $wrong >"$work/out" 2>"$work/err" || status=$?
  ((status == 2)) || fail "'$wrong' ends with $status"
  [[ -s $work/err && ! -s $work/out ]] || fail "'$wrong' says nothing on stderr"
done
"$tool" --help | grep -q 'usage: scripts/run_trace.sh' || fail "--help"

# A user who is not root, on a machine without sudo.
as_user=()
if ((EUID == 0)); then
  as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  chmod -R a+rX "$work"
fi
mkdir "$work/no sudo"
ln -s "$(command -v bash)" "$(command -v dirname)" "$work/no sudo"
status=0
${as_user[@]+"${as_user[@]}"} env PATH="$work/no sudo" "$tool" true >"$work/out" 2>"$work/err" || status=$?
((status == 2)) || fail "without sudo it ends with $status: $(cat "$work/err")"
grep -q 'BPF needs root, and there is no sudo: run this as root' "$work/err" || fail "without sudo it says $(cat "$work/err")"
[[ ! -s $work/out ]] || fail "without sudo it starts cudabpf"

rm "$work/a checkout/build/cudabpf"
status=0
PATH=/usr/bin:/bin "$tool" true 2>"$work/err" || status=$?
if [[ ! -x /usr/bin/cudabpf ]]; then
  ((status == 2)) && grep -q 'there is no cudabpf' "$work/err" || fail "without cudabpf it ends with $status"
fi
echo "run_trace.sh calls cudabpf as it should"
