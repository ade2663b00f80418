#!/bin/sh
# Sourced, after check.sh, by the checks with the stand-ins for the NVIDIA driver's modules.
STAND_IN=/sys/kernel/debug/nvidia_stand_in

load() { # KIND: the modules, and the nodes that the real driver's user-space part makes
  insmod "driver/$1/nvidia.ko" && insmod "driver/$1/nvidia-uvm.ko" && insmod "driver/$1/nvidia-modeset.ko" || return 1
  uvm=$(awk '$2 == "nvidia-uvm" {print $1}' /proc/devices)
  mknod /dev/nvidiactl c 195 255
  mknod /dev/nvidia-modeset c 195 254
  mknod /dev/nvidia0 c 195 0
  mknod /dev/nvidia-uvm c "$uvm" 0
  mknod /dev/nvidia-uvm-tools c "$uvm" 1
  grep '\[nvidia' /proc/kallsyms >/tmp/symbols # reading all of it takes a second
}

unload() {
  rm /dev/nvidia*
  rmmod nvidia_modeset && rmmod nvidia_uvm && rmmod nvidia
}

control_driver() { printf '%s\n' "$@" >$STAND_IN/control; }

# awk functions for a line of a trace, or of the library's record.
FIELDS='
  function field(name,  at, rest) {
    at = index($0, "\"" name "\":")
    if (!at) return ""
    rest = substr($0, at + length(name) + 3)
    sub(/[,}].*/, "", rest)
    gsub(/"/, "", rest)
    return rest
  }
  function hex(value,  digits) { # numbers that do not fit into an int
    value += 0
    if (!value) return "0x0"
    for (; value; value = int(value / 16)) digits = substr("0123456789abcdef", value % 16 + 1, 1) digits
    return "0x" digits
  }'

# Traces a program, but only its calls to $askers, which make requests to the driver, since single
# links are slow to close; its record is then in $truth, and its trace in $trace.
# shellcheck disable=SC2034,SC2154 # set by the script that sources this
trace_run() { # FLAG... -- PROGRAM ARGUMENT...
  rm -rf /tmp/record
  mkdir /tmp/record
  trace=/tmp/trace.jsonl
  control_driver reset
  FAKE_CUDA_DRIVER=1 FAKE_CUDA_COUNTS=/tmp/record ./cudabpf run -q --kernel --only $askers -o $trace "$@" >/tmp/run.out 2>&1 ||
    { cat /tmp/run.out; return 1; }
  truth=$(echo /tmp/record/ioctls.*.jsonl)
}

nothing_lost() { # TRACE
  complete=$(tail -n 1 "$1")
  case $complete in *'"losses":{}'*) ;; *) echo "$complete"; return 1 ;; esac
}

# What the trace has for a device is what its module counted, each operation with its end.
same_as_counted() { # TRACE DEVICE
  awk "$FIELDS"'
    field("device_file") == "'"$2"'" && field("duration_us") != "" && field("ret") == 0 {count[field("op")]++}
    END {for (op in count) print op "\t" count[op]}' "$1" | sort >/tmp/traced
  awk '$1 == "'"$2"'" {count[$2] += $5} END {for (op in count) print op "\t" count[op]}' $STAND_IN/counts | sort >/tmp/got
  test -s /tmp/got && diff /tmp/got /tmp/traced
}
