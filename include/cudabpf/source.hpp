// Where records come from. Two threads work with a source: one controls it, and one, the reader,
// takes what has been recorded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cudabpf/function_filter.hpp"
#include "cudabpf/sink.hpp"
#include "util/result.hpp"
#include "util/system/privileges.hpp"

namespace cudabpf {

// What is to be recorded, and of whom.
struct SourceOptions {
  FunctionFilter filter;
  std::uint64_t ring_size = 32 << 20;
  bool follow_children = true;
  bool driver = false;  // record what is asked of the NVIDIA driver
  std::vector<std::string> disabled_features;
  std::vector<std::string> libraries;  // given by --library
  std::string library_path;            // the LD_LIBRARY_PATH of what is traced
  // Nobody but these is to be traced, so nobody else is to pay; empty: it is not known who will be.
  std::vector<std::uint32_t> only_in;
};

// A folder of the unified (v2) cgroup hierarchy.
struct CgroupFolder {
  std::uint64_t id = 0;     // as the kernel side compares it
  std::uint32_t level = 0;  // how deep under the root
  std::string path;         // as /proc/PID/cgroup has it
};

// What a source has learned otherwise than by records.
struct News {
  std::vector<Library> libraries;  // that are probed now
  std::vector<LossEvent> losses;
  std::vector<GpuError> gpu_errors;     // that the kernel's log tells of
  std::optional<DriverVersion> driver;  // one that was loaded just now

  void add(News more);
};

class Source {
 public:
  using OnRecord = std::function<void(std::span<const std::byte> record)>;
  using Losses = std::array<std::uint64_t, LOSS_COUNT>;

  virtual ~Source() = default;

  // ----- by the thread that controls it

  // Fills in what a trace's header tells of it.
  virtual void describe(Session& session) const = 0;
  // From here on there is a trace, whose ts 0 is this time on CLOCK_MONOTONIC.
  virtual void begin(std::uint64_t begin_ns) = 0;
  // Makes ready for the reader. Who was selected before is recorded already.
  virtual Result<> start(OnRecord on_record) = 0;
  virtual void select_process(std::uint32_t pid) = 0;
  virtual void select_cgroup(const CgroupFolder& folder) = 0;
  virtual void select_all() = 0;
  // Descriptors that become readable when there is news.
  virtual std::vector<int> watch_fds() const = 0;
  virtual News look() = 0;
  // The last news, when the trace is about to end.
  virtual News last_look() = 0;
  // From here on nothing is recorded; what has been can still be taken.
  virtual void stop() = 0;
  virtual std::size_t libraries_attached() const = 0;
  // The capabilities that it takes from now on. The process may give up everything else.
  virtual Capabilities needs() const = 0;

  // ----- by the reader

  // Hands over every record that waits, those of one thread in the order in which they were made.
  // True if there were many.
  virtual bool poll() = 0;
  // The function that a record names by this number; null: there is none.
  virtual const Function* function(std::uint16_t number) const = 0;
  virtual DriverDevice device(std::uint32_t number) const = 0;
  // How many records the thread has lost so far, as the next one of it would say.
  virtual std::uint32_t drops(std::uint32_t tid) const = 0;
  // Some of the exits of processes may have had no record.
  virtual bool may_miss_exits() const = 0;

  // ----- by either

  // A traced process that has not ended.
  virtual bool is_alive(std::uint32_t pid) const = 0;
  // What is missing because of it, so far. Whoever polls counts what was received.
  virtual Losses losses() const = 0;
  virtual Accounts accounts() const = 0;
};

}  // namespace cudabpf
