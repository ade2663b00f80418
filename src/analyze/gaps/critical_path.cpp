#include "analyze/gaps/critical_path.hpp"

#include <algorithm>
#include <unordered_map>

#include "util/keyed_rows.hpp"

namespace cudabpf::analyze {

namespace {

class Walk {
 public:
  Walk(std::span<const PathOperation> operations, std::span<const PathWait> waits,
       std::uint64_t begin, std::uint64_t end)
      : operations_(operations), waits_(waits), at_(end) {
    path_.begin = begin;
    path_.end = end;
    std::unordered_map<std::uint32_t, std::size_t> last_of_queue;
    for (std::size_t i = 0; i < operations.size(); i++) {
      auto [last, is_first] = last_of_queue.try_emplace(operations[i].queue, i);
      before_.push_back(is_first ? NONE : last->second);
      last->second = i;
      if (operations[i].end <= end) ended_.push_back(i);
      if (!operations[i].call) continue;
      auto [of_call, is_new] = by_call_.try_emplace(operations[i].call, i);
      if (!is_new && operations[i].end > operations[of_call->second].end) of_call->second = i;
    }
    std::sort(ended_.begin(), ended_.end(),
              [&](std::size_t a, std::size_t b) { return operations[a].end < operations[b].end; });
  }

  CriticalPath go() {
    std::size_t work = last_ended(path_.end, path_.begin);
    if (work != NONE) take(operations_[work].end, path_.host);
    // Each step goes back in time, so that there are no more than operations.
    for (std::size_t steps = 0; work != NONE && steps <= operations_.size(); steps++)
      work = step(work);
    take(path_.begin, path_.host);
    path_.operations = by_name_.take([](auto& a, auto& b) { return a.time > b.time; });
    return std::move(path_);
  }

 private:
  static constexpr std::size_t NONE = static_cast<std::size_t>(-1);

  // The time from `since` to where the walk is.
  void take(std::uint64_t since, std::uint64_t& sum) {
    since = std::max(since, path_.begin);
    if (since >= at_) return;
    sum += at_ - since;
    at_ = since;
  }

  // The work that ended last by `until`, but after `since`.
  std::size_t last_ended(std::uint64_t until, std::uint64_t since) const {
    auto after = std::upper_bound(
        ended_.begin(), ended_.end(), until,
        [&](std::uint64_t ts, std::size_t work) { return ts < operations_[work].end; });
    if (after == ended_.begin()) return NONE;
    std::size_t last = *std::prev(after);
    return operations_[last].end > since ? last : NONE;
  }

  void spend(std::size_t work) {
    std::uint64_t time = 0;
    take(operations_[work].begin, time);
    if (!time) return;
    path_.working += time;
    if (operations_[work].communicates) path_.communication += time;
    auto& of_name = by_name_.of(operations_[work].name.id, {operations_[work].name, 0, 0});
    of_name.time += time;
    of_name.count++;
  }

  // Returns the work that the path goes on with.
  std::size_t step(std::size_t work) {
    const PathOperation& here = operations_[work];
    spend(work);
    if (at_ <= path_.begin) return NONE;
    std::size_t cause = before_[work];
    if (auto of_call = by_call_.find(here.depends);
        here.depends && of_call != by_call_.end() && is_before(of_call->second, work) &&
        (cause == NONE || operations_[of_call->second].end > operations_[cause].end))
      cause = of_call->second;
    bool by_work = cause != NONE && (!here.issued || operations_[cause].end >= here.issued);
    if (by_work) {
      take(operations_[cause].end, path_.latency);
      return cause;
    }
    if (!here.issued) return NONE;
    take(here.issued, path_.latency);
    return before_call(here.issued);
  }

  bool is_before(std::size_t a, std::size_t b) const {
    return operations_[a].begin < operations_[b].begin;
  }

  // The host made a call: what had it waited for?
  std::size_t before_call(std::uint64_t issued) {
    for (; !waits_.empty(); waits_ = waits_.first(waits_.size() - 1)) {
      const PathWait& wait = waits_.back();
      if (wait.end > issued) continue;
      if (wait.end <= path_.begin) break;
      std::size_t last = last_ended(wait.end, wait.begin);
      if (last == NONE) continue;  // it did not have to wait
      take(operations_[last].end, path_.host);
      return last;
    }
    return NONE;
  }

  std::span<const PathOperation> operations_;
  std::span<const PathWait> waits_;  // those that the walk has not passed
  std::uint64_t at_;
  CriticalPath path_;
  KeyedRows<std::uint32_t, CriticalPath::OfName> by_name_;
  std::vector<std::size_t> before_;              // in the same queue
  std::vector<std::size_t> ended_;               // by `end`, in the order of their ends
  HashMap<std::uint64_t, std::size_t> by_call_;  // the work of each that ended last
};

}  // namespace

CriticalPath critical_path(std::span<const PathOperation> operations,
                           std::span<const PathWait> waits, std::uint64_t begin,
                           std::uint64_t end) {
  return Walk(operations, waits, begin, std::max(begin, end)).go();
}

}  // namespace cudabpf::analyze
