#!/bin/sh
# What is checked in a virtual machine, on a kernel other than the developer's. busybox sh, as root, in
# /root; vm/CMakeLists.txt says which files are there.
# usage: sh guest.sh multi|single    how this kernel is expected to take the probes: one uprobe_multi
#                                    link for all functions (6.6 and later), or a link for each
expected=$1
# Removing one link waits for the kernel's other CPUs, 25 ms each here, one after the other: if each
# function has its own link, fewer functions are attached, and the probes may stay, idle, for a
# while after cudabpf has stopped.
if [ "$expected" = multi ]; then
  profile=default clean_limit_s=2
else
  profile=light clean_limit_s=60
fi
# shellcheck source-path=SCRIPTDIR
. ./check.sh

uptime_cs() { awk '{printf "%d\n", $1 * 100}' /proc/uptime; }

# Every count in the driver's own record is the number of that function's lines in the trace, and
# the trace has no other functions. A function that the record counts 0 of is not in the trace.
same_counts() { # TRACE COUNTS
  awk -v trace="$1" '
    function field(name,  at, rest) {
      at = index($0, "\"" name "\":\"")
      if (!at) return ""
      rest = substr($0, at + length(name) + 4)
      return substr(rest, 1, index(rest, "\"") - 1)
    }
    FILENAME == trace {
      if ($0 !~ /"id":/ || field("name") !~ /^cu/) next
      symbol = field("symbol")
      traced[symbol ? symbol : field("name")]++
      next
    }
    { sub(/^0+/, "", $2); if ($2) made[$1] = $2 + 0 } # busybox takes a leading 0 for octal
    END {
      for (symbol in made) {
        total += made[symbol]
        if (traced[symbol] + 0 != made[symbol]) {
          printf "%s: called %d times, traced %d\n", symbol, made[symbol], traced[symbol]
          wrong = 1
        }
      }
      for (symbol in traced) if (!(symbol in made)) { printf "%s: traced %d, never called\n", symbol, traced[symbol]; wrong = 1 }
      if (total < 100) { printf "only %d calls were made\n", total; wrong = 1 }
      exit wrong
    }' "$1" "$2"
}

complete() { # TRACE: begins and ends as it should, and nothing was lost
  head -n 1 "$1" | grep -q '"type":"trace"' || { echo "no header in $1"; return 1; }
  tail -n 1 "$1" | grep -q '"type":"end"' || { echo "no end in $1"; return 1; }
  tail -n 1 "$1" | grep -q '"losses":{}' || { tail -n 1 "$1"; return 1; }
}

wait_for_calls() { # TRACE: until calls are being written to it
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    ! grep -q '"name":"cu' "$1" 2>/dev/null || return 0
    sleep 1
  done
  echo "no call in $1"
  return 1
}

# The code of libcuda in process $1, as it is in memory: a probe is a breakpoint there.
code_in_memory() {
  range=$(awk '$2 == "r-xp" && $6 ~ /libcuda/ {print $1; exit}' "/proc/$1/maps")
  start=$((0x${range%-*})) end=$((0x${range#*-}))
  dd if="/proc/$1/mem" bs=4096 skip=$((start / 4096)) count=$(((end - start) / 4096)) 2>/dev/null | md5sum
}

# While single links are being closed, no others can be attached.
wait_for_closing() { while grep -qs '^cudabpf-closing' /proc/[0-9]*/comm; do sleep 1; done; }

no_probe_is_left() {
  for _ in $(seq $clean_limit_s); do
    [ "$(code_in_memory $storm)" = "$clean" ] && return
    sleep 1
  done
  return 1
}

echo "kernel $(uname -r)"

# --- doctor says what this kernel can do
check 'doctor succeeds' ./cudabpf doctor
./cudabpf doctor --json >/tmp/doctor 2>&1
if [ "$expected" = multi ]; then
  check 'doctor finds uprobe_multi' grep -q '"feature uprobe_multi","verdict":"yes"' /tmp/doctor
else
  check 'doctor misses uprobe_multi' grep -q '"feature uprobe_multi","verdict":"no"' /tmp/doctor
fi

# --- run: every call, exactly once
export FAKE_CUDA_COUNTS=/tmp/counts
mkdir -p $FAKE_CUDA_COUNTS
status=0
./cudabpf run --profile full -o /tmp/run.jsonl -- ./fake_inference --tokens 3 --print --exit-code 7 \
  >/tmp/run.out 2>/tmp/run.err || status=$?
check "the command's exit status is passed on" test $status -eq 7
check "the command's output is untouched" grep -q 'ms\] done$' /tmp/run.out
check 'the trace is complete' complete /tmp/run.jsonl
check 'every call is traced once' same_counts /tmp/run.jsonl "$(ls $FAKE_CUDA_COUNTS/counts.*.tsv)"
if [ "$expected" = multi ]; then
  check 'one link took the probes' grep -q '"name":"uprobe_multi","state":"yes"' /tmp/run.jsonl
else
  check 'a link each took the probes' grep -q '"name":"uprobe_multi","state":"no"' /tmp/run.jsonl
fi
unset FAKE_CUDA_COUNTS

# --- attach to a running program, then let go of it
wait_for_closing
./fake_storm --rate 500 --seconds 180 >/tmp/storm.out 2>&1 &
storm=$!
sleep 1
clean=$(code_in_memory $storm)
./cudabpf attach --profile $profile --pid $storm -o /tmp/attach.jsonl >/tmp/attach.out 2>&1 &
tracer=$!
check 'attached: calls are traced' wait_for_calls /tmp/attach.jsonl
check 'attached: probes are in the code' test "$(code_in_memory $storm)" != "$clean"
before=$(uptime_cs)
kill -TERM $tracer # not INT: a shell starts background commands with that ignored
(sleep 60 && kill -KILL $tracer) 2>/dev/null &
status=0
wait $tracer || status=$?
took=$(($(uptime_cs) - before))
check "stopping succeeds, took $took cs" test $status -eq 0
check 'stopping takes less than 3 s' test $took -lt 300
check 'the attached trace is complete' complete /tmp/attach.jsonl
check 'stopped: no probe is left behind' no_probe_is_left

# --- kill -9 leaves the program running and no probe behind
wait_for_closing
./cudabpf attach --profile $profile --pid $storm -o /tmp/killed.jsonl >/tmp/killed.out 2>&1 &
tracer=$!
check 'killed: calls were traced before' wait_for_calls /tmp/killed.jsonl
kill -KILL $tracer
wait $tracer 2>/dev/null
sleep 1
check 'killed: the program goes on' kill -0 $storm
check 'killed: no probe is left behind' no_probe_is_left
kill $storm

finish
