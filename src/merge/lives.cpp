#include "merge/lives.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace cudabpf::merge {

Lives::Lives(analyze::Names& names)
    : start_(names.add("start")), fork_(names.add("fork")), exit_(names.add("exit")) {}

bool Lives::see(const analyze::Line& line) {
  bool of_process = line.kind == analyze::LineKind::process;
  if (!of_process && !is_of_thread(line.kind) && !is_of_gpu(line.kind)) return true;
  auto close = [&] {
    if (auto life = open_.find(line.pid); life != open_.end()) {
      ended_.push_back(life->second);
      open_.erase(life);
    }
  };
  if (of_process && (line.op == start_ || line.op == fork_)) close();
  auto [at, is_new] = open_.try_emplace(line.pid, Life{line.pid, line.ts, line.end()});
  at->second.begin = std::min(at->second.begin, line.ts);
  at->second.end = std::max(at->second.end, line.end());
  if (of_process && line.op == exit_) close();
  return open_.size() + ended_.size() <= MAX;
}

std::vector<Life> Lives::take() {
  for (const auto& [pid, life] : open_) ended_.push_back(life);
  open_.clear();
  return std::exchange(ended_, {});
}

std::optional<Twice> find_twice(const std::vector<LivesOfTrace>& traces) {
  struct PlacedLife {
    std::uint32_t pid;
    std::uint64_t begin, end;
    std::size_t trace;
  };
  std::vector<PlacedLife> all;
  for (const LivesOfTrace& of : traces)
    for (const Life& life : *of.lives)
      all.push_back({life.pid, life.begin + of.offset_ns, life.end + of.offset_ns, of.trace});
  std::sort(all.begin(), all.end(), [](const PlacedLife& a, const PlacedLife& b) {
    return std::tie(a.pid, a.begin, a.trace) < std::tie(b.pid, b.begin, b.trace);
  });
  const PlacedLife* latest = nullptr;  // of those of this pid, the one that ends last
  for (const PlacedLife& one : all) {
    bool same = latest && latest->pid == one.pid;
    if (same && latest->trace != one.trace && one.begin < latest->end)
      return Twice{one.pid, latest->trace, one.trace};
    if (!same || one.end > latest->end) latest = &one;
  }
  return std::nullopt;
}

}  // namespace cudabpf::merge
