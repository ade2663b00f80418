#include "analyze/collectives/collective_runs.hpp"

#include <algorithm>
#include <utility>

#include "analyze/derived/graph_contents.hpp"
#include "analyze/derived/issuing_calls.hpp"
#include "analyze/derived/processes.hpp"
#include "state/kernel_classes.hpp"
#include "util/limited.hpp"
#include "util/saturating.hpp"

namespace cudabpf::analyze {

namespace {

// The oldest make room for new ones.
template <typename Table>
void keep_at_most(Table& table, std::size_t most) {
  while (table.size() > most) table.erase(table.begin());
}

CollectiveCall call_in(const Line& line) {
  CollectiveCall call{.id = line.id,
                      .communicator = line.communicator,
                      .seq = line.seq,
                      .group = line.call_group,
                      .size = line.size,
                      .count = line.count,
                      .ts = line.ts,
                      .end = line.end(),
                      .stream = line.stream,
                      .op = line.op,
                      .datatype = line.datatype,
                      .reduction = line.reduction};
  if (line.has(Field::ordinal)) call.device = line.ordinal;
  if (line.has(Field::root)) call.root = line.root;
  if (line.has(Field::peer)) call.peer = line.peer;
  return call;
}

bool waits_for_all(Name op) {
  return op == Op::all_reduce || op == Op::all_gather || op == Op::reduce_scatter ||
         op == Op::all_to_all;
}

// Each pair counts these apart.
bool is_between_two(Name op) {
  return op == Op::send || op == Op::recv || op == Op::put_signal || op == Op::signal ||
         op == Op::wait_signal;
}

}  // namespace

bool CollectiveRun::is_counted() const {
  return std::ranges::all_of(
      calls, [](const CollectiveCall& call) { return call.seq && !is_between_two(call.op); });
}

bool CollectiveRun::is_barrier() const {
  return std::ranges::all_of(calls,
                             [](const CollectiveCall& call) { return waits_for_all(call.op); });
}

void OnGpu::add(std::uint64_t op_begin, std::uint64_t op_end) {
  if (!operations++) begin = end = op_begin;
  time += grown(std::min(op_end, begin), op_begin) + grown(op_end, std::max(op_begin, end));
  begin = std::min(begin, op_begin);
  end = std::max(end, op_end);
}

void OnGpu::add(const OnGpu& other) {
  if (!other.operations) return;
  if (!operations) {
    *this = other;
    return;
  }
  operations += other.operations;
  begin = std::min(begin, other.begin);
  end = std::max(end, other.end);
  time = saturating_sum(time, other.time);
  hidden = saturating_sum(hidden, other.hidden);
}

std::uint64_t CollectiveRun::communicator() const {
  std::uint64_t one = calls.front().communicator;
  bool same = std::ranges::all_of(calls, [&](auto& call) { return call.communicator == one; });
  return same ? one : 0;
}

CollectiveRuns::CollectiveRuns(const Names& names, Part part, Take take, Bounds bounds)
    : names_(names), part_(part), take_(std::move(take)), bounds_(bounds) {}

void CollectiveRuns::line(const Line& line) {
  if (line.kind == LineKind::call)
    call(line);
  else if (line.kind == LineKind::gpu_operation)
    operation(line);
  else if (line.kind == LineKind::communicator)
    communicators_.line(line);
}

void CollectiveRuns::call(const Line& line) {
  if (line.type == Type::collective) return collective(line);
  if (line.failed()) return;
  if (line.type == Type::group && line.op == Op::end && line.has(Field::call_group)) {
    auto first = groups_.find(line.call_group);
    if (first == groups_.end()) return;
    stands_for_[line.id] = first->second;
    if (auto asked = asked_.find(first->second); asked != asked_.end())
      asked->second.end = std::max(asked->second.end, line.end());
  } else if (line.meaning->node == NodeWork::graph && gives_work(line.work) && line.content &&
             !line.content->collectives.empty()) {
    launch(line);
  }
}

CollectiveRuns::Asked& CollectiveRuns::ask(std::uint64_t id, const Line& line) {
  if (asked_.size() >= bounds_.runs || asked_calls_ >= bounds_.calls) finish_first();
  Asked& asked = asked_[id];
  asked.process = line.process->number;
  asked.pid = line.pid;
  asked.ts = line.ts;
  asked.end = line.end();
  asked.wanted = line.wanted;
  return asked;
}

void CollectiveRuns::collective(const Line& line) {
  if (line.has(Field::parent)) {
    stands_for_[line.id] = line.parent;
    return keep_at_most(stands_for_, bounds_.runs);
  }
  if (line.failed()) {
    books_.failed++;
    return;
  }
  if (line.captured) {
    books_.captured++;
    if (has_room_for(captured_, line.id, bounds_.captured))
      captured_[line.id] = call_in(line);
    else
      books_.left_out++;
    return;
  }
  std::uint64_t id = line.id;
  if (line.has(Field::call_group)) id = groups_.try_emplace(line.call_group, id).first->second;
  keep_at_most(groups_, bounds_.runs);
  if (id != line.id) stands_for_[line.id] = id;
  keep_at_most(stands_for_, bounds_.runs);
  auto at = asked_.find(id);
  Asked& asked = at == asked_.end() ? ask(id, line) : at->second;
  if (asked_calls_ >= bounds_.calls) {
    books_.left_out++;
    return;
  }
  asked_calls_++;
  asked.calls.push_back(call_in(line));
  asked.end = std::max(asked.end, line.end());
  asked.several |= asked.calls.front().communicator != line.communicator;
}

void CollectiveRuns::launch(const Line& line) {
  Asked& asked = ask(line.id, line);
  asked.graph = line.content;
  asked.launch = ++launches_[line.graph];
}

bool CollectiveRuns::is_of_collective(Name kernel) {
  if (kernel.id >= kernels_.size()) kernels_.resize(names_.size());
  Known& known = kernels_[kernel.id];
  if (known == Known::no)
    known = class_of_kernel(names_.text(kernel)) == KernelClass::collective ? Known::collective
                                                                            : Known::other;
  return known == Known::collective;
}

void CollectiveRuns::operation(const Line& line) {
  if (!line.has(Field::duration)) return;
  measured_ = true;
  std::tuple key(line.pid, line.ordinal);
  if (!has_room_for(gpu_of_, key, bounds_.gpus)) {
    books_.left_out++;
    return;
  }
  auto [gpu, is_new] = gpu_of_.try_emplace(key, static_cast<std::uint32_t>(gpus_.size()));
  if (is_new) gpus_.push_back({{line.pid, line.ordinal, {}, {}, {}}, {}});
  Kept kept{.begin = line.ts,
            .end = line.end(),
            .stream = line.stream,
            .gpu = gpu->second,
            .pid = line.pid};
  if (line.op == Type::kernel && is_of_collective(line.kernel)) kept.does = Does::a_collective;
  if (const IssuingCall* issuer = line.issuer) {
    bool in_graph = issuer->node == NodeWork::graph;
    if (!in_graph && issuer->within && kept.does == Does::work) kept.does = Does::perhaps;
    if (kept.does != Does::work) kept.by = in_graph ? issuer->id : issuer->within;
  }
  if (kept.begin < settled_until_) {
    books_.late++;
    settle(kept);
    return;
  }
  kept_.push_back(kept);
  if (kept_.size() >= bounds_.operations) settle(kept_.size() / 2);
}

void CollectiveRuns::settle(std::size_t count) {
  std::ranges::sort(kept_, {}, [](const Kept& kept) { return std::pair(kept.begin, kept.end); });
  for (std::size_t i = 0; i < count; i++) settle(kept_[i]);
  if (count) settled_until_ = std::max(settled_until_, kept_[count - 1].begin);
  kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(count));
}

// Null: the call asked for no collective.
CollectiveRuns::Asked* CollectiveRuns::asked_by(std::uint64_t call, std::uint64_t& id) {
  constexpr int MAX_STEPS = 4;  // from a nested call over its parent to its group's first
  id = call;
  for (int i = 0; i < MAX_STEPS; i++) {
    auto at = stands_for_.find(id);
    if (at == stands_for_.end()) break;
    id = at->second;
  }
  auto at = asked_.find(id);
  return at == asked_.end() ? nullptr : &at->second;
}

void CollectiveRuns::settle(const Kept& kept) {
  Gpu& gpu = gpus_[kept.gpu];
  bool late = kept.begin < settled_until_;
  std::uint64_t id = 0;
  Asked* asked = kept.by ? asked_by(kept.by, id) : nullptr;
  bool is_collective = kept.does == Does::a_collective || asked;
  if (!late) {
    gpu.hidden.until(kept.begin, [this](const Owner& owner, std::uint64_t ns) { hide(owner, ns); });
    std::uint64_t begin = part_.clipped(kept.begin), end = part_.clipped(kept.end);
    if (begin < end) {
      (is_collective ? gpu.figures.collectives : gpu.figures.work).add(begin, end);
      gpu.figures.all.add(begin, end);
    }
    if (!is_collective) gpu.hidden.work(kept.begin, kept.end);
  }
  if (is_collective) settle_collective(kept, asked, id);
}

void CollectiveRuns::settle_collective(const Kept& kept, Asked* asked, std::uint64_t id) {
  Owner owner{id, orphans_.size(), !asked};
  std::uint64_t begin = kept.begin;
  OnGpu lost;
  OnGpu* on = &lost;
  if (asked) {
    on = &place_of(kept, *asked, owner.index);
    begin = std::max(begin, asked->graph ? asked->covered : on->end);
    asked->covered = std::max(asked->covered, kept.end);
  } else if (orphans_.size() < bounds_.orphans) {
    on = &orphans_.emplace_back(Orphan{kept.pid, {}}).gpu;
  }
  on->stream = kept.stream;
  on->device = gpus_[kept.gpu].figures.device;
  on->add(asked && asked->graph ? std::min(begin, kept.end) : kept.begin, kept.end);
  if (on == &lost) return not_joined(lost);
  if (kept.begin >= settled_until_ && begin < kept.end)
    gpus_[kept.gpu].hidden.collective(begin, kept.end, owner);
}

OnGpu& CollectiveRuns::place_of(const Kept& kept, Asked& asked, std::size_t& index) {
  auto& places = asked.on_gpus;
  std::int64_t device = gpus_[kept.gpu].figures.device;
  auto same = [&](const OnGpu& on) { return on.stream == kept.stream && on.device == device; };
  auto at = places.begin();
  if (asked.graph) {
    if (kernels_of_graphs_ < bounds_.kernels_of_graphs || places.empty()) at = places.end();
    kernels_of_graphs_ += at == places.end();
  } else if (asked.several) {
    at = std::ranges::find_if(places, same);
  }
  if (at == places.end()) at = places.insert(at, OnGpu());
  index = static_cast<std::size_t>(at - places.begin());
  return *at;
}

void CollectiveRuns::hide(const Owner& owner, std::uint64_t ns) {
  if (owner.orphan) {
    orphans_[owner.index].gpu.hidden += ns;
  } else if (auto at = asked_.find(owner.id);  // unless it had to make room
             at != asked_.end() && owner.index < at->second.on_gpus.size()) {
    at->second.on_gpus[owner.index].hidden += ns;
  }
}

}  // namespace cudabpf::analyze
