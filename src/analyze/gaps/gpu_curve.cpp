#include "analyze/gaps/gpu_curve.hpp"

#include <algorithm>

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
  auto share = static_cast<double>(part) / static_cast<double>(whole);
  return std::min(time, static_cast<std::uint64_t>(static_cast<double>(time) * share));
}

}  // namespace

void GpuCurve::Share::add(const Share& other) {
  time += other.time;
  busy += other.busy;
  kernels += other.kernels;
  idle.add(other.idle);
}

void GpuCurve::Piece::merge(const Piece& next) {
  busy_until = end = next.end;
  busy += next.busy;
  kernels += next.kernels;
  idle.add(next.idle);
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
    share.busy += in_proportion(at->busy, of_work, working);
    share.kernels += in_proportion(at->kernels, of_work, working);
    // In a piece of several, idle times lie among the work.
    bool is_one = at->busy == working;
    std::uint64_t of_idle = is_one ? overlap(at->busy_until, at->end, from, to) : of_work;
    std::uint64_t idle = is_one ? at->end - at->busy_until : working;
    for (std::size_t i = 0; i < IDLE_CAUSES; i++)
      if (at->idle.of[i]) share.idle.of[i] += in_proportion(at->idle.of[i], of_idle, idle);
  }
  if (windows_.any()) {  // more may have been submitted in them than could be done in their time
    share.busy = std::min(share.busy, share.time);
    share.kernels = std::min(share.kernels, share.busy);
  }
  return share;
}

}  // namespace cudabpf::analyze
