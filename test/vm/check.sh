#!/bin/sh
# What is sourced by all that is checked in a virtual machine: how a check is made and told, and how it ends.
export LD_LIBRARY_PATH=/root/lib
failed=0

check() { # check NAME COMMAND...: the command succeeds. Told as $kind: NAME where there are several kinds
  name=${kind:+$kind: }$1
  shift
  if "$@" >/tmp/check 2>&1; then
    echo "ok      $name"
  else
    echo "FAILED  $name"
    sed 's/^/        /' /tmp/check
    failed=1
  fi
}

finish() { # the last check; the exit status is that of all
  kind=kernel
  check 'nothing to complain of' sh -c '! dmesg | grep -E "BUG:|WARNING:|Oops|general protection"'
  exit $failed
}
