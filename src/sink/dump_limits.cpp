#include "sink/dump_limits.hpp"

#include <utility>

namespace cudabpf {

DumpLimits::Answer DumpLimits::trigger(std::string why, std::uint64_t now) {
  std::lock_guard lock(mutex_);
  if (!why_.empty()) return {Verdict::on_its_way};
  if (dumps_ >= options_.most) return {Verdict::too_many};
  if (dumped_ns_ && now - dumped_ns_ < options_.between_ns)
    return {Verdict::too_soon, options_.between_ns - (now - dumped_ns_)};
  why_ = std::move(why);
  triggered_ns_ = now;
  return {Verdict::on_its_way};
}

std::string DumpLimits::due(std::uint64_t now, bool at_the_end) {
  std::lock_guard lock(mutex_);
  if (why_.empty()) return {};
  if (!at_the_end && now - triggered_ns_ < options_.after_trigger_ns) return {};
  dumped_ns_ = now;
  dumps_++;
  return std::exchange(why_, {});
}

}  // namespace cudabpf
