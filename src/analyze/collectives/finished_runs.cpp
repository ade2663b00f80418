// How runs are put together once all of their kernels are known.
#include <algorithm>
#include <limits>
#include <optional>

#include "analyze/collectives/collective_runs.hpp"
#include "analyze/derived/graph_contents.hpp"
#include "util/disjoint_sets.hpp"
#include "util/saturating.hpp"

namespace cudabpf::analyze {

void CollectiveRuns::not_joined(const OnGpu& gpu) {
  books_.unjoined += gpu.operations;
  books_.unjoined_time = saturating_sum(books_.unjoined_time, gpu.time);
}

// In order, stream by stream. If there are more kernels than calls, or fewer, it is not known which
// belong together.
void CollectiveRuns::join_orphans() {
  struct OfStream {
    std::vector<OnGpu*> kernels;
    std::vector<Asked*> waiting;
  };
  std::map<std::pair<std::uint32_t, std::uint64_t>, OfStream> streams;  // by pid and handle
  for (Orphan& orphan : orphans_)
    streams[{orphan.pid, orphan.gpu.stream}].kernels.push_back(&orphan.gpu);
  for (auto& [id, asked] : asked_)
    if (asked.on_gpus.empty() && !asked.graph && !asked.several)
      if (auto at = streams.find({asked.pid, asked.calls.front().stream}); at != streams.end())
        at->second.waiting.push_back(&asked);
  for (auto& [key, stream] : streams) {
    bool fit = stream.kernels.size() == stream.waiting.size();
    std::ranges::sort(stream.kernels, {}, [](const OnGpu* one) { return one->begin; });
    for (std::size_t i = 0; fit && i < stream.kernels.size(); i++)
      fit = stream.kernels[i]->begin >= stream.waiting[i]->ts;
    for (std::size_t i = 0; i < stream.kernels.size(); i++)
      if (fit)
        stream.waiting[i]->on_gpus = {*stream.kernels[i]};
      else
        not_joined(*stream.kernels[i]);
  }
  orphans_.clear();
}

void CollectiveRuns::finish(const TraceFacts&) {
  settle(kept_.size());
  for (Gpu& gpu : gpus_)
    gpu.hidden.until(std::numeric_limits<std::uint64_t>::max(),
                     [this](const Owner& owner, std::uint64_t ns) { hide(owner, ns); });
  join_orphans();
  communicators_.work_out_ranks();
  while (!asked_.empty()) finish_first();
}

void CollectiveRuns::finish_first() {
  if (asked_.empty()) return;
  auto first = asked_.extract(asked_.begin());
  asked_calls_ -= first.mapped().calls.size();
  first.mapped().graph ? finish_launch(first.mapped()) : finish(first.mapped());
}

namespace {

// Which of a group's calls ran together: those of a communicator, and those of one stream.
class Together {
 public:
  explicit Together(const std::vector<CollectiveCall>& calls) {
    for (const CollectiveCall& call : calls)
      sets_.join(place_in(of_communicator_, call.communicator),
                 place_in(of_stream_, {call.stream, call.device}));
  }
  std::size_t of(const CollectiveCall& call) {
    return sets_.root(of_communicator_.at(call.communicator));
  }
  // Calls' devices may not be known.
  std::optional<std::size_t> of(const OnGpu& on) {
    for (std::int64_t device : {on.device, std::int64_t{-1}})
      if (auto at = of_stream_.find({on.stream, device}); at != of_stream_.end())
        return sets_.root(at->second);
    return std::nullopt;
  }

 private:
  template <typename Places>
  std::size_t place_in(Places& places, const typename Places::key_type& key) {
    auto [at, is_new] = places.try_emplace(key);
    if (is_new) at->second = sets_.add();
    return at->second;
  }

  DisjointSets sets_;
  std::map<std::uint64_t, std::size_t> of_communicator_;
  std::map<std::pair<std::uint64_t, std::int64_t>, std::size_t> of_stream_;
};

}  // namespace

CollectiveRun CollectiveRuns::empty_run(const Asked& asked) {
  CollectiveRun run;
  run.process = asked.process;
  run.pid = asked.pid;
  run.launch = asked.launch;
  run.ts = asked.ts;
  run.end = asked.end;
  run.wanted = asked.wanted;
  return run;
}

void CollectiveRuns::finish(Asked& asked) {
  CollectiveRun whole = empty_run(asked);
  if (!asked.several) {
    whole.calls = std::move(asked.calls);
    for (const OnGpu& on : asked.on_gpus) whole.gpu.add(on);
    return pass_on(whole);
  }
  Together together(asked.calls);
  std::map<std::size_t, CollectiveRun> runs;
  for (CollectiveCall& call : asked.calls)
    runs.try_emplace(together.of(call), whole).first->second.calls.push_back(call);
  for (const OnGpu& on : asked.on_gpus) {
    auto place = runs.size() == 1 ? runs.begin()->first : together.of(on);
    if (place)
      runs.at(*place).gpu.add(on);
    else
      not_joined(on);
  }
  for (const auto& [place, run] : runs) pass_on(run);
}

// A communicator's kernels run one after the other. So where all collectives of a graph are of one,
// and each call and each group has one kernel, they belong together in order; else all of the
// launch stays together.
void CollectiveRuns::finish_launch(Asked& asked) {
  std::vector<CollectiveRun> runs;
  CollectiveRun empty = empty_run(asked);
  launched_ += asked.graph->collectives.size();
  bool known = launched_ <= bounds_.launched, several = false;
  for (std::uint64_t id : asked.graph->collectives) {
    auto call = captured_.find(id);
    known &= call != captured_.end();
    if (!known) break;
    const CollectiveCall* last = runs.empty() ? nullptr : &runs.back().calls.back();
    several |= last && last->communicator != call->second.communicator;
    bool with_last = last && last->group && last->group == call->second.group;
    if (!with_last) runs.push_back(empty);
    runs.back().calls.push_back(call->second);
  }
  auto& kernels = asked.on_gpus;
  std::ranges::sort(kernels, {}, [](const OnGpu& one) { return one.begin; });
  if (!known) {
    for (const OnGpu& kernel : kernels) not_joined(kernel);
    books_.left_out++;
    return;
  }
  bool in_order = !several && runs.size() == kernels.size();
  for (std::size_t i = 0; !in_order && i < runs.size(); i++)
    if (i) runs[0].calls.insert(runs[0].calls.end(), runs[i].calls.begin(), runs[i].calls.end());
  if (!in_order) runs.resize(1);
  for (std::size_t i = 0; i < kernels.size(); i++) runs[in_order ? i : 0].gpu.add(kernels[i]);
  kernels_of_graphs_ -= std::min(kernels_of_graphs_, kernels.size());
  for (const CollectiveRun& run : runs) pass_on(run);
}

void CollectiveRuns::pass_on(const CollectiveRun& run) {
  if (!run.wanted || !part_.has(run.ts)) return;
  books_.without_kernel += measured_ && !run.measured();
  take_(run);
}

std::vector<const CollectiveRuns::OfGpu*> CollectiveRuns::gpus() const {
  std::vector<const OfGpu*> all;
  for (const Gpu& gpu : gpus_)
    if (gpu.figures.collectives.any()) all.push_back(&gpu.figures);
  std::ranges::sort(all, {}, [](const OfGpu* gpu) { return std::pair(gpu->pid, gpu->device); });
  return all;
}

}  // namespace cudabpf::analyze
