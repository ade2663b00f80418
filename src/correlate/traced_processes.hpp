// The traced processes. The kernel side reports when they start, fork, exec and exit; /proc has
// more while a process lives.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "cudabpf/record.hpp"
#include "cudabpf/sink.hpp"
#include "util/system/procfs.hpp"

namespace cudabpf {

class TracedProcesses {
 public:
  using Lookup = std::function<ProcessIdentity(std::uint32_t pid)>;

  TracedProcesses(Sink& sink, Lookup lookup) : sink_(sink), lookup_(std::move(lookup)) {}

  void on_record(const Record& record, std::uint64_t ts);
  // Is there nothing new in this record? Two threads may report the same start or exit.
  bool is_repeated(const Record& record) const;
  // From now on a process is traced that the kernel side will not announce.
  void announce(std::uint32_t pid, std::uint64_t ts);
  bool known(std::uint32_t pid) const { return known_.contains(pid); }
  std::size_t alive() const { return known_.size(); }
  std::uint64_t begun() const { return begun_; }  // those traced from some moment on, too
  std::vector<std::uint32_t> pids() const;
  // The process's exit was not reported.
  void forget(std::uint32_t pid) { known_.erase(pid); }

 private:
  void emit(Process::Op op, std::uint32_t pid, std::uint64_t ts, const abi::cb_process* record);

  Sink& sink_;
  Lookup lookup_;
  // When each began, on CLOCK_BOOTTIME in ns; 0 if unknown. Distinguishes a process from an earlier
  // one with the same pid.
  std::map<std::uint32_t, std::uint64_t> known_;
  std::uint64_t begun_ = 0;
  std::uint32_t last_gone_ = 0;
  std::uint64_t last_gone_began_ = 0;
};

}  // namespace cudabpf
