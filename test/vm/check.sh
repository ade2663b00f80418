#!/bin/sh
# Sourced by every script that checks something in a virtual machine: makes and reports a check, and
# ends the checks.
export LD_LIBRARY_PATH=/root/lib
passed=0 failed=0

# What passes is printed on the console alone, whose last lines vm-run shows if the machine hangs: what fails must not be
# lost among it.
check() { # check NAME COMMAND...: the command succeeds. Reported as $kind: NAME if there are several kinds
  name=${kind:+$kind: }$1
  shift
  if "$@" >/tmp/check 2>&1; then
    echo "ok      $name" >/dev/console
    passed=$((passed + 1))
  else
    echo "FAILED  $name"
    sed 's/^/        /' /tmp/check
    failed=$((failed + 1))
  fi
}

finish() { # after the last check; the exit status is for all of them
  kind=kernel
  check 'nothing to complain of' sh -c '! dmesg | grep -E "BUG:|WARNING:|Oops|general protection"'
  echo "$passed checks passed, $failed failed"
  [ $failed = 0 ]
  exit
}
