#!/bin/sh
# What is checked about the NVIDIA driver's ioctls in a virtual machine, where stand-ins for its
# modules can be loaded. busybox sh, as root, in /root; vm/CMakeLists.txt says which files are
# there.
# usage: sh kernel_guest.sh [KIND...]    the kinds are folders in driver/: plain, frontend, btf; default: all
# shellcheck source-path=SCRIPTDIR
. ./check.sh
. ./driver.sh

# Runs a program on the simulated libcuda; its record is then in $truth.
run() { # PROGRAM ARGUMENT...
  rm -rf /tmp/record
  mkdir /tmp/record
  control_driver reset
  FAKE_CUDA_DRIVER=1 FAKE_CUDA_COUNTS=/tmp/record "$@" >/tmp/run.out 2>&1
  status=$?
  truth=$(echo /tmp/record/ioctls.*.jsonl)
  return $status
}

# The library's record, counted as the modules count: device, operation, number, control or class.
counts_of() { # RECORD...
  awk "$FIELDS"'
    {
      key = field("device") "\t" field("op")
      if (field("op") == "ioctl") {
        subject = field("control") field("class")
        key = key "\t" hex(field("nr")) "\t" hex(subject)
      } else {
        key = key "\t-\t-"
      }
      if (field("op") == "open" && field("result") < 0) next
      count[key]++
    }
    END { for (key in count) print key "\t" count[key] }' "$@" | sort
}

# What the modules got is what the library says that it did, except for what is closed when a process ends,
# and pages that are touched.
same_counts() { # RECORD...
  counts_of "$@" | grep -v '	close	' >/tmp/did
  sort $STAND_IN/counts | grep -vE '	(close|fault)	' >/tmp/got
  test -s /tmp/did && diff /tmp/did /tmp/got
}

all_closed() { # every open file of every device is closed again
  awk '$2 == "open" {open[$1] = $5} $2 == "close" {open[$1] -= $5}
       END {for (node in open) if (open[node]) {print node, open[node]; bad = 1} exit bad}' $STAND_IN/counts
}

all_statuses_are() { # STATUS RECORD...: in every struct that has one; and the system calls' results are 0
  wanted=$1
  shift
  awk "$FIELDS"'
    field("op") != "ioctl" {next}
    field("result") != 0 || (field("status") != "" && field("status") != '"$wanted"') {print; bad = 1}
    END {exit bad}' "$@"
}

has_line() { # RECORD PATTERN...: a line that has all of them
  record=$1
  shift
  cp "$record" /tmp/lines
  for pattern; do
    grep -- "$pattern" /tmp/lines >/tmp/fewer || { echo "no line with $*"; return 1; }
    mv /tmp/fewer /tmp/lines
  done
}

took_at_least() { # NANOSECONDS RECORD PATTERN: the operation that matches
  grep -- "$3" "$2" | awk "$FIELDS"'
    {took = field("end_ns") - field("begin_ns"); if (took > most) most = took}
    END {print most; exit most < '"$1"'}'
}

reports_xid() {
  trace=/sys/kernel/tracing
  echo 1 >$trace/events/nvidia/nvidia_dev_xid/enable || return 1
  control_driver 'xid 79 GPU has fallen off the bus.'
  echo 0 >$trace/events/nvidia/nvidia_dev_xid/enable
  grep 'nvidia_dev_xid: Xid 79 on 0000:0a:00.0: GPU has fallen off the bus' $trace/trace
}

# The functions that a tracer attaches to exist, and can be probed.
probes() { # FUNCTION...
  for function; do
    grep -q " $function	" /tmp/symbols || { echo "no $function"; return 1; }
    echo "p:probe$(echo "$function" | tr -d .) $function" >>/sys/kernel/tracing/kprobe_events || { echo "no probe on $function"; return 1; }
  done
  echo >/sys/kernel/tracing/kprobe_events
}

# Each operation with its device, kind, results and the CUDA call that it was made in, according to the trace ...
operations_of_trace() { # TRACE
  awk "$FIELDS"'
    FNR == NR {
      if (field("id") != "") calls[field("id")] = field("symbol") != "" ? field("symbol") : field("name")
      next
    }
    field("device_file") == "nvidia-modeset" {next} # the library does not use it
    field("type") == "kernel" && field("op") ~ /^(ioctl|open|mmap|poll|close)$/ {
      print field("device_file") "\t" field("op") "\t" field("ret") "\t" field("status") "\t" calls[field("call")]
    }' "$1" "$1" | sort
}

# ... and according to the library.
operations_of_record() { # RECORD...
  awk "$FIELDS"'
    BEGIN { name[0] = "NV_OK"; name[81] = "NV_ERR_NO_MEMORY"; name[86] = "NV_ERR_NOT_SUPPORTED" }
    {
      op = field("op"); result = field("result"); status = field("status")
      if ((op == "open" || op == "mmap") && result >= 0) result = 0
      status = status == "" || result != 0 ? "" : name[status + 0]
      print field("device") "\t" op "\t" result "\t" status "\t" field("symbol")
    }' "$@" | sort
}

# Each operation of the record has one line in the trace, and there is no other.
same_operations() { # TRACE RECORD...
  operations_of_trace "$1" >/tmp/traced
  shift
  operations_of_record "$@" >/tmp/did
  test -s /tmp/did && diff /tmp/did /tmp/traced
}

same_trace() { # TRACE RECORD...
  nothing_lost "$1" && same_operations "$@"
}

# What a trace says about the driver, except for what differs from run to run.
driver_lines() { # TRACE
  grep '"type":"kernel"' "$1" | grep -v '"op":"launch"' |
    grep -vE '"op":"(fault|interrupt)"' | sed -E 's/"(ts|pid|tid|call)":[0-9]+,?//g; s/"duration_us":[0-9.]+,?//; s/"(base|client|parent_object|object)":"[^"]*",?//g' | sort
}

# The pages that were touched: the doorbell and the semaphore pool of each context, in a call.
same_faults() { # TRACE
  grep '"op":"fault"' "$1" >/tmp/lines
  test "$(grep -c '^nvidia.*	fault	' $STAND_IN/counts)" -gt 0 || return 1
  counted=$(awk '$2 == "fault" {sum += $5} END {print sum + 0}' $STAND_IN/counts)
  uvm=$(grep -c '"device_file":"nvidia-uvm"' /tmp/lines)
  [ "$uvm" = "$counted" ] || { echo "$uvm faults of nvidia-uvm traced, $counted made"; return 1; }
  if grep -v '"duration_us":[0-9.]*,"pid":[0-9]*,"tid":[0-9]*,"ret":0,"call":[0-9]*,.*"address":"0x[0-9a-f]*000","access":"write"' /tmp/lines; then return 1; fi
}

# Traces the machine while something happens.
trace_machine() { # EVENT FLAG...
  trace=/tmp/machine.jsonl event=$1
  shift
  rm -f $trace
  ./cudabpf -q --kernel --only $askers -o $trace "$@" >/tmp/run.out 2>&1 &
  tracer=$!
  until [ -s $trace ]; do
    kill -0 $tracer || { cat /tmp/run.out; return 1; }
    sleep 0.2
  done
  $event
  happened=$?
  kill -INT $tracer
  wait $tracer || { cat /tmp/run.out; return 1; }
  return $happened
}

modes='open d /dev/nvidia-modeset; ioctl d 0xc0106d00; ioctl d 0xc0106d00; close d'
# Each of 16 threads is held up in its first ioctl until all are there, and makes two more, one of them the same.
held_up='answer nr 0x29 status 0x56 delay 2000000 times 16'
crowd="open d /dev/nvidiactl; $(for _ in $(seq 16); do echo 'thread { ioctl d 0xc0104629; ioctl d 0xc00846d6; ioctl d 0xc0104629 }'; done); wait"

# Every operation of the crowd is in the trace once. Its end is its own, or is lost, and then counted.
same_crowd() { # TRACE
  awk "$FIELDS"'
    field("op") != "ioctl" || field("device_file") != "nvidiactl" {next}
    {
      nth = ++ioctls[field("tid")]
      first = nth == 1
      lost += missed = field("return_lost") == "true"
      us = field("duration_us") + 0
      status = field("status")
      if (first) held_up_lost += missed
      if (field("name") != (nth == 2 ? "NV_ESC_SYS_PARAMS" : "NV_ESC_RM_FREE")) bad = 1
      if (missed) bad = bad || field("duration_us") != "" || field("ret") != "" || status != ""
      else if (first) bad = bad || us < 1990000 || status != "NV_ERR_NOT_SUPPORTED"
      else bad = bad || us > 1500000 || field("ret") != 0 || status != (nth == 2 ? "" : "NV_OK")
      if (bad && !printed++) print
    }
    END {
      for (tid in ioctls) {threads++; if (ioctls[tid] != 3) bad = 1}
      counted = field("driver_return") + 0 # from the last line
      print threads, "threads;", lost + 0, "ends lost,", held_up_lost + 0, "of those held up;", counted, "counted"
      exit bad || threads != 16 || counted != lost + 0
    }' "$1"
}

# A process is killed while one of its threads waits in the driver.
held='answer nr 0xd6 delay 60000000'
killed_inside() { # FLAG...
  ! trace_run "$@" -- ./fake_calls 'open d /dev/nvidiactl; thread { ioctl d 0xc00846d6 }; sleep 500; kill 9'
}

# The tracer has found what was loaded: it has said so, and for three seconds nothing more.
found() {
  still=0 reports=0
  for _ in $(seq 300); do
    before=$reports
    reports=$(grep -c late_driver $trace)
    if [ "$reports" -gt 0 ] && [ "$reports" = "$before" ]; then still=$((still + 1)); else still=0; fi
    [ $still -lt 15 ] || return 0
    sleep 0.2
  done
  echo 'the tracer finds no driver'
  return 1
}

load_and_run() { load "$kind" && found && run ./fake_calls "setup; malloc a 4M; free a; $modes"; }
interrupts_and_xid() { control_driver 'interrupt 3' 'xid 79 pid=4242, name=python, GPU has fallen off the bus.'; }

same_interrupts() { # TRACE COUNT
  awk "$FIELDS"'
    field("op") == "interrupt" {
      count[field("name")]++
      if (field("duration_us") < 100 || field("cpu") == "" || field("pid") != "") {print; bad = 1}
    }
    END {
      print count["isr"] + 0, count["bottom_half"] + 0
      exit bad || count["isr"] != '"$2"' || count["bottom_half"] != '"$2"'
    }' "$1"
}

all_same() { # FILE...
  first=$1
  shift
  for file; do diff "$first" "$file" || return 1; done
  test -s "$first"
}

echo "kernel $(uname -r)"
# shellcheck disable=SC2046 # a word each
[ $# -gt 0 ] || set -- $(ls driver)
checked=''
for kind; do
  check 'the modules are loaded' load "$kind"
  if [ "$kind" = frontend ]; then
    entries='nvidia_frontend_unlocked_ioctl nvidia_frontend_open nvidia_frontend_close nvidia_frontend_mmap nvidia_frontend_poll'
    entries="$entries nvkms_ioctl"
    check 'the newer name is not there' sh -c '! grep -qE " (nvidia|nvkms)_unlocked_ioctl" /tmp/symbols'
  else
    entries='nvidia_unlocked_ioctl nvidia_open nvidia_close nvidia_mmap nvidia_poll nvkms_unlocked_ioctl'
    check 'the older name is not there' sh -c '! grep -q " nvidia_frontend_unlocked_ioctl" /tmp/symbols'
    check 'the version is shown' grep -q 'Open Kernel Module for x86_64  580.159.04' /proc/driver/nvidia/version
  fi
  # shellcheck disable=SC2086 # names, each a word
  check 'its functions can be probed' probes $entries nvkms_open nvkms_close \
    uvm_unlocked_ioctl_entry uvm_open_entry uvm_release_entry.isra.0 uvm_mmap_entry uvm_vm_fault_entry
  if [ "$kind" = btf ]; then
    check 'the modules have BTF' test -s /sys/kernel/btf/nvidia -a -s /sys/kernel/btf/nvidia_uvm -a -s /sys/kernel/btf/nvidia_modeset
  else
    check 'the modules have no BTF' test ! -e /sys/kernel/btf/nvidia
  fi

  # --- an inference: what the modules counted is what the library did
  check 'an inference runs' run ./fake_inference --tokens 2 --threads 2
  check 'its operations are counted' same_counts "$truth"
  askers=$(awk "$FIELDS"' field("symbol") != "" {print field("symbol")}' "$truth" | sort -u | tr '\n' ,)
  check 'all is answered with success' all_statuses_are 0 "$truth"
  check 'all is closed' all_closed
  check 'a page fault of unified memory' grep -q '^nvidia-uvm	fault	' $STAND_IN/counts
  check 'one went through XFER_CMD' has_line "$truth" '"nr":42,"indirect":1,"control":2691432707'
  check 'some belong to no call' has_line "$truth" '"op":"ioctl"' '"nr":206' '"result":0,"tid"'
  check 'two processes run at once' run ./fake_inference --tokens 1 --processes 2
  # shellcheck disable=SC2086 # a name each
  check 'their operations are counted' same_counts $truth

  # --- traced: at the driver's own functions, in each way that this kernel has, and at the system calls
  ways='driver_kprobes syscall_tracepoints'
  [ "$kind" != btf ] || ways="driver_fentry $ways"
  without=''
  for way in $ways; do
    flags=$without
    without="$without --no-feature $way"
    # An inference with a control that is delayed and fails, and a mode setting.
    control_driver 'answer nr 0x2a control 0x20801803 status 0x56 delay 3000'
    # shellcheck disable=SC2086 # words
    check "$way: an inference is traced" trace_run $flags -- sh -c "./fake_inference --tokens 2 --threads 2 && ./fake_calls '$modes'"
    control_driver forget
    check "$way: that is the way" sh -c "head -n 1 $trace | grep -q '\"driver_way\":\"$way\"'"
    # shellcheck disable=SC2086 # a name each
    check "$way: each operation is in the trace" same_trace $trace $truth
    check "$way: a name for each control" sh -c "grep -q NVA06C_CTRL_CMD_GPFIFO_SCHEDULE $trace && ! grep -q '\"control\":\"0x' $trace"
    [ $way = syscall_tracepoints ] || check "$way: faults, in the calls that touched the pages" same_faults $trace
    check "$way: a delayed control, with its status and time" sh -c \
      "grep NV_ERR_NOT_SUPPORTED $trace | grep -qE '\"duration_us\":([3-9]|[1-9][0-9])[0-9]{3}\\.'"
    check "$way: each operation of mode setting" same_as_counted $trace nvidia-modeset
    driver_lines $trace >/tmp/driver_lines.$way
    # What does not depend on the kind of modules is checked only once.
    case $checked in *$way*) continue ;; esac
    checked="$checked $way"
    control_driver "$held_up"
    # shellcheck disable=SC2086 # words
    check "$way: many threads inside at once are traced" trace_run $flags -- ./fake_calls "$crowd"
    check "$way: no operation has the end of another" same_crowd $trace
    if [ $way = driver_kprobes ]; then
      check "$way: ends that the kernel does not watch are reported" has_line $trace '"type":"lost"' '"reason":"driver_return"'
    else
      check "$way: nothing of them is lost" nothing_lost $trace
    fi
    control_driver "$held"
    # shellcheck disable=SC2086 # words
    check "$way: a process is killed inside" killed_inside $flags
    check "$way: its ioctl ends" has_line $trace '"name":"NV_ESC_SYS_PARAMS"' '"duration_us":' '"ret":-4,"error":"EINTR"'
    check "$way: nothing of that is lost" nothing_lost $trace
    control_driver forget
    # shellcheck disable=SC2086 # words
    check "$way: the whole machine" trace_machine interrupts_and_xid $flags
    [ $way = syscall_tracepoints ] || check "$way: interrupts, at once and later" same_interrupts $trace 3
    check "$way: an Xid, by the tracepoint and the log" has_line $trace '"type":"error"' '"xid":79,"meaning":"' '"bus_id":"0000:0a:00.0"' \
      '"pid":4242,"comm":"python"' '"message":"GPU has fallen off the bus."'
    check "$way: reported once" test "$(grep -c '"type":"error"' $trace)" = 1
  done
  # shellcheck disable=SC2046,SC2086 # a file each
  check 'all ways report the same' all_same $(printf '/tmp/driver_lines.%s ' $ways)
  # By the way that is quickest to load: for the log it makes no difference.
  check 'the whole machine, without the tracepoint' \
    trace_machine interrupts_and_xid --no-feature driver_fentry --no-feature driver_kprobes --no-feature xid_tracepoint
  check 'an Xid, by the log' has_line $trace '"type":"error"' '"xid":79' '"bus_id":"0000:0a:00",' '"pid":4242'

  # --- answers by rules
  control_driver 'answer nr 0x2b class 0x40 status 0x51 times 1' 'answer uvm 33 delay 20000' \
    'answer nr 0x2a control 0x20801803 status 0x56 delay 3000'
  check 'a failed allocation is out of memory' run ./fake_calls 'setup; fails 2 malloc a 4M; malloc b 4M; free b'
  check 'a status of an allocation' has_line "$truth" '"class":64' '"size":4194304' '"status":81' cuMemAlloc_v2
  check 'a status of a control' has_line "$truth" '"control":545265667' '"status":86' '"result":0'
  check 'a delayed escape' took_at_least 3000000 "$truth" '"control":545265667'
  check 'a delayed ioctl of UVM' took_at_least 20000000 "$truth" '"nr":33'
  control_driver forget 'answer nr 0xd2 errno 22'
  run ./fake_calls 'setup'
  check 'a failed system call' has_line "$truth" '"nr":210' '"result":-22'
  control_driver forget
  check 'an Xid is reported' reports_xid
  check 'the modules are unloaded' unload

  # --- a driver that is loaded while the machine is traced
  check 'loaded while traced' trace_machine load_and_run
  # shellcheck disable=SC2086 # a name each
  check 'all that comes after is traced' same_operations $trace $truth
  check 'of mode setting too' same_as_counted $trace nvidia-modeset
  check 'what may be missing is said' has_line $trace '"type":"lost"' '"reason":"late_driver"'
  check 'what is loaded late is unloaded' unload
done

finish
