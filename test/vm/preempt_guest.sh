#!/bin/sh
# What is checked with the stand-ins for the NVIDIA driver's modules on a fully preemptible kernel:
# it is booted with preempt=full. busybox sh, as root, in /root; vm/CMakeLists.txt says which files
# are there.
# shellcheck source-path=SCRIPTDIR
. ./check.sh
. ./driver.sh

[ -d driver/btf ] || { echo 'SKIPPED: without BTF of the modules fentry is not tried'; exit 77; }
echo "kernel $(uname -r)"
check 'the kernel preempts itself' grep '(full)' /sys/kernel/debug/sched/preempt
check 'the modules are loaded' load btf
check 'the modules have BTF' test -s /sys/kernel/btf/nvidia
./cudabpf doctor --json >/tmp/doctor 2>&1
check 'doctor says why fentry is not taken' grep '"feature driver_fentry","verdict":"no".*this kernel preempts itself' /tmp/doctor
check 'doctor says what is' grep '"--kernel","verdict":"yes","what":"by driver_kprobes"' /tmp/doctor
askers=cuInit
check 'a program is traced' trace_run -- ./fake_calls 'open d /dev/nvidia-modeset; ioctl d 0xc0106d00; close d'
check 'by kprobes' sh -c "head -n 1 $trace | grep '\"driver_way\":\"driver_kprobes\"'"
check 'each operation is in the trace' same_as_counted "$trace" nvidia-modeset
check 'nothing is lost' nothing_lost "$trace"
check 'the modules are unloaded' unload
finish
