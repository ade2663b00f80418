// Which processes had a GPU, from the driver's records of context switches. What they do not show
// is counted as unknown: the time before the first start; before a record that follows missing
// ones; and from any record that does not fit until the next start.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>

namespace cudabpf {

// One record: the GPU's context starts or ends to be this one.
struct ContextSwitch {
  enum class Kind : std::uint8_t { start, end, other };
  std::uint64_t time = 0;  // the GPU's clock, ns
  Kind kind = Kind::other;
  std::uint16_t seqno = 0;
  std::uint32_t pid = 0, context = 0;
  bool of_instance = false;  // of a part of the GPU (MIG): does not say which process has the GPU
};

class Residency {
 public:
  // No record can be later than what is known already by more than this.
  static constexpr std::uint64_t LATEST_NS = 1'000'000'000;

  struct Window {
    std::uint64_t from = 0, to = 0;  // the GPU's clock
    std::map<std::uint32_t, std::uint64_t> by_pid;
    std::uint64_t unknown_ns = 0;
  };

  explicit Residency(std::uint64_t now) : at_(now), window_{now, now, {}, 0} {}

  // In the order in which the driver reports them.
  void add(const ContextSwitch& record);
  // This many records, later than those added so far, were dropped.
  void dropped(std::uint64_t count);
  // Every record of what came before this time has been added. A process that has ended meanwhile
  // may have left no record of its end.
  void advance(std::uint64_t to, const std::function<bool(std::uint32_t pid)>& has_ended);
  // What happened since the last call.
  Window take();
  // How many records were missing since the last call.
  std::uint64_t take_missing();

 private:
  struct Pending {
    ContextSwitch record;
    bool after_gap = false;  // what came directly before this record is missing
    bool gap = false;        // not a record: what comes after this time is missing
  };
  enum class State : std::uint8_t { unknown, no_process, resident };

  void apply(const Pending& pending);
  void spend_until(std::uint64_t time);

  std::deque<Pending> pending_;
  State state_ = State::unknown;
  std::uint32_t pid_ = 0, context_ = 0;  // the process and context that have the GPU, if known
  std::uint64_t at_;                     // everything before this time is reported
  std::uint64_t last_time_ = 0;          // of a record
  std::optional<std::uint16_t> last_seqno_;
  std::uint64_t missing_ = 0;
  std::uint64_t counted_ = 0;  // of the missing records that the next sequence number reveals
  Window window_;
};

}  // namespace cudabpf
