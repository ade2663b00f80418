#!/bin/bash
# What an administrator does with the unit, run by a container's systemd: start it, let programs
# call the driver, kill it, rotate, stop it. The results are in /check and /var/log/cudabpf.
set -u
cd /check || exit

log_folder=/var/log/cudabpf
failed() {
  echo "$*"
  systemctl status --no-pager --full cudabpf
  exit 1
}
wait_for() { # SECONDS COMMAND...
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || failed "not so in time: $*"
    sleep 0.1
  done
}
tracing() { # there are this many files, and the newest has begun
  local files=("$log_folder"/trace_*.jsonl.zst)
  ((${#files[@]} >= $1)) && [[ -s ${files[-1]} ]]
}
work() { # the record of its calls goes to /check/NAME
  mkdir "$1"
  FAKE_CUDA_COUNTS=$PWD/$1 /check/fake_calls --library /usr/local/lib/libcuda.so.1 'setup; loop 100 { sync }; sleep 100' ||
    failed "the workload failed beside the unit"
}
written() { # how often this is in the newest trace
  local files=("$log_folder"/trace_*.jsonl.zst)
  [[ $(zstd -dcq "${files[-1]}" 2>&1 | grep -c "$2") == "$1" ]]
}
pid_of() { systemctl show --property MainPID --value cudabpf; }

ldconfig
systemctl start cudabpf || failed "systemctl start failed"
wait_for 30 tracing 1
work first
wait_for 10 written 100 '"name":"cuStreamSynchronize"'

killed=$(pid_of)
kill -KILL "$killed"
wait_for 30 tracing 2
[[ $(pid_of) != "$killed" ]] || failed "not started again"
work second
grep -hE '^(Uid|CapEff|CapPrm|CapBnd|NoNewPrivs):' "/proc/$(pid_of)/status" >rights

systemctl show --property ActiveState,NRestarts cudabpf >restarted
systemctl stop cudabpf || failed "systemctl stop failed"
systemctl show --property Result,ExecMainStatus cudabpf >stopped
stat --format '%a %u' "$log_folder/" "$log_folder"/* >owners

systemctl start cudabpf-metrics || failed "systemctl start cudabpf-metrics failed"
scraped() { # the page goes to /check/page
  exec 3<>/dev/tcp/127.0.0.1/8078 || return 1
  printf 'GET /metrics HTTP/1.0\r\nHost: 127.0.0.1:8078\r\n\r\n' >&3
  cat <&3 >page
  grep -q "$1" page
} 2>/dev/null
wait_for 30 scraped cudabpf_build_info
work counted
wait_for 10 scraped 'cudabpf_calls_total{.*unit="scenario.service",program="fake_calls",function_class="wait"} 100'
systemctl stop cudabpf-metrics || failed "systemctl stop cudabpf-metrics failed"
systemctl show --property Result,ExecMainStatus cudabpf-metrics >metrics_stopped

# systemd does not retry wrong options again and again.
mkdir -p /run/systemd/system/cudabpf.service.d
printf '[Service]\nExecStart=\nExecStart=cudabpf --no-such-option\n' \
  >/run/systemd/system/cudabpf.service.d/wrong.conf
systemctl daemon-reload
systemctl start cudabpf
wait_for 10 systemctl --quiet is-failed cudabpf
systemctl show --property Result,ExecMainStatus,NRestarts cudabpf >refused
journalctl --no-pager --output cat --unit cudabpf >journal
echo yes >passed
