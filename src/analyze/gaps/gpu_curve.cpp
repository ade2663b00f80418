#include "analyze/gaps/gpu_curve.hpp"

#include <algorithm>
#include <tuple>

namespace cudabpf::analyze {

namespace {

std::uint64_t overlap(std::uint64_t begin, std::uint64_t end, std::uint64_t from,
                      std::uint64_t to) {
  std::uint64_t since = std::max(begin, from), until = std::min(end, to);
  return until > since ? until - since : 0;
}

// `time` in the proportion of `part` to `whole`.
std::uint64_t in_proportion(std::uint64_t time, std::uint64_t part, std::uint64_t whole) {
  if (part >= whole) return time;
  if (time == whole) return part;  // exact, where the same went on all the time
  auto share = static_cast<double>(part) / static_cast<double>(whole);
  return std::min(time, static_cast<std::uint64_t>(static_cast<double>(time) * share));
}

}  // namespace

void GpuCurve::Share::add(const Share& other) {
  time += other.time;
  add_to(*this, other);
  idle.add(other.idle);
  for (auto [rank, wait] : other.waiting) waiting[rank] += wait;
}

void GpuCurve::Piece::merge(const Piece& next) {
  busy_until = end = next.end;
  add_to(work, next.work);
  idle.add(next.idle);
}

std::uint64_t GpuCurve::waited(std::vector<WaitForRank> waits) {
  std::sort(waits.begin(), waits.end(), [](const WaitForRank& a, const WaitForRank& b) {
    return std::tie(a.begin, a.end, a.rank) < std::tie(b.begin, b.end, b.rank);
  });
  std::uint64_t until = 0, left_out = 0;
  for (WaitForRank& wait : waits) {
    wait.begin = std::max(wait.begin, until);
    if (wait.begin >= wait.end) continue;
    until = wait.end;
    if (waits_.size() == MAX_WAITS)
      left_out++;
    else if (std::uint64_t exposed = between(wait.begin, wait.end).exposed)
      waits_.push_back({wait, exposed});
  }
  return left_out;
}

GpuCurve::Share GpuCurve::between(std::uint64_t from, std::uint64_t to) const {
  Share share;
  if (to <= from) return share;
  share.time = windows_.any() ? windows_.time_in(from, to) : to - from;
  const auto& all = pieces_.items();
  auto at = std::lower_bound(all.begin(), all.end(), from,
                             [](const Piece& piece, std::uint64_t ts) { return piece.end <= ts; });
  for (; at != all.end() && at->begin < to; ++at) {
    std::uint64_t working = at->busy_until - at->begin;
    std::uint64_t of_work = overlap(at->begin, at->busy_until, from, to);
    for (auto time : WORK_TIMES) share.*time += in_proportion(at->work.*time, of_work, working);
    // In a piece of several, idle times lie among the work.
    bool is_one = at->work.busy == working;
    std::uint64_t of_idle = is_one ? overlap(at->busy_until, at->end, from, to) : of_work;
    std::uint64_t idle = is_one ? at->end - at->busy_until : working;
    for (std::size_t i = 0; i < IDLE_CAUSES; i++)
      if (at->idle.of[i]) share.idle.of[i] += in_proportion(at->idle.of[i], of_idle, idle);
  }
  auto wait = std::lower_bound(waits_.begin(), waits_.end(), from,
                               [](const Waiting& one, std::uint64_t ts) { return one.end <= ts; });
  for (; wait != waits_.end() && wait->begin < to; ++wait)
    share.waiting[wait->rank] += in_proportion(
        wait->exposed, overlap(wait->begin, wait->end, from, to), wait->end - wait->begin);
  if (windows_.any()) {  // more may have been submitted in them than could be done in their time
    static_cast<WorkTime&>(share) = cut_to(share, share.time);
  }
  return share;
}

}  // namespace cudabpf::analyze
