#include "analyze/gaps/gpus_at_work.hpp"

#include <algorithm>

#include "trace/header.hpp"
#include "util/limited.hpp"
#include "util/saturating.hpp"
#include "util/text/json_text.hpp"

namespace cudabpf::analyze {

namespace {

// GPUs have a curve this fine, the first few of them a finer one.
constexpr std::size_t FINE_GPUS = 8, FINE = 1 << 16, COARSE = 1 << 12;

}  // namespace

GpusAtWork::GpusAtWork(Names& names, std::size_t gaps, Part part, std::size_t most_kept)
    : names_(names),
      part_(part),
      most_kept_(std::max<std::size_t>(2, most_kept)),
      short_names_(names),
      copy_(names.add("copy")),
      fill_(names.add("fill")),
      others_(names.add("(others)")),
      longest_gaps_(gaps) {}

void GpusAtWork::line(const Line& line) {
  if (line.kind == LineKind::header) {
    takes_calls_ |= line.header->measures_gpus();
    sampled_ |= line.header->samples_gpus();
  }
  if (line.kind == LineKind::gpu_window && has_room_for(windows_, line.pid, MAX_GPUS))
    windows_[line.pid].add({line.ts, saturating_sum(line.ts, line.duration)});
  bool is_work = line.kind == LineKind::gpu_operation, to_host = line.direction == Op::DtoH;
  if (is_work || takes_calls_) short_names_.line(line);
  if (is_of_gpu(line.kind)) {
    if (line.issuer && (to_host || !is_work)) copied_to_host(line);
    if (is_work) work(line);
    return;
  }
  if (!takes_calls_) return;
  if (line.kind == LineKind::call) calls_.call(line);
  if (line.kind != LineKind::gpu_times || not_reported_.size() == MAX_NOT_REPORTED) return;
  auto said = parsed(line.text);
  if (std::string why = text_in(said, "why"); !why.empty())
    not_reported_.push_back({line.pid, why.substr(0, MAX_WHY)});
}

// A call that copies to the host may wait, even if it is called asynchronous: to memory that is not
// pinned, say. Nodes of a launched graph may just be done early.
void GpusAtWork::copied_to_host(const Line& line) {
  const IssuingCall& call = *line.issuer;
  if (line.has(Field::node) || saturating_sum(line.ts, line.duration) > call.end) return;
  if (!calls_.waited(call) || !call.is_async || !call.wanted || !part_.has(call.ts)) return;
  waited_.calls++;
  waited_.time = saturating_sum(waited_.time, call.end - call.ts);
}

void GpusAtWork::work(const Line& line) {
  Ran ran;
  seen_ = true;
  State* gpu = state_of(line, ran.gpu);
  if (!gpu) {
    left_out_++;
    return;
  }
  ran.begin = line.ts;
  ran.end = saturating_sum(line.ts, line.duration);
  ran.name = line.kernel;
  if (!ran.name)
    ran.name = line.direction       ? names_.add("copy " + std::string(names_.text(line.direction)))
               : line.op == Op::set ? fill_
                                    : line.op;
  ran.kind.op = line.op == copy_ ? GpuOp::copy : line.op == Op::set ? GpuOp::set : GpuOp::kernel;
  ran.kind.communicates = line.communicates;
  ran.is_node = line.has(Field::node);
  ran.wanted = line.wanted;
  ran.queue = line.queue;
  if (line.has(Field::call)) ran.call = line.call;
  if (const IssuingCall* call = line.issuer) {
    ran.joined = true;
    ran.issued = call->ts;
    ran.returned = call->end;
    ran.tid = call->tid;
    ran.place = call->place;
    ran.has_to_wait = call->has_to_wait;
    ran.depends = call->depends;
  }
  bool counts = ran.wanted && part_.touches(ran.begin, ran.end);
  gpu->figures.operations += counts;
  gpu->figures.unjoined += counts && !line.issuer;
  gpu->figures.graphs += counts && line.op == Type::graph;
  gpu->figures.graphs_with_collectives += counts && line.holds_collectives;
  if (gpu->any && ran.begin < gpu->settled) {
    if (!counts) return;
    count_kernel(ran);
    gpu->figures.late++;
    std::uint64_t time = part_.clipped(ran.end) - part_.clipped(ran.begin);
    gpu->figures.late_time = saturating_sum(gpu->figures.late_time, time);
    gpu->figures.busy.count(ran.kind, time);
    return;
  }
  kept_.push_back(ran);
  if (kept_.size() >= most_kept_) settle_half();
}

GpusAtWork::State* GpusAtWork::state_of(const Line& line, std::uint32_t& index) {
  std::uint64_t process = line.issuer ? line.issuer->process : calls_.process_of(line.pid);
  std::int64_t device = line.has(Field::ordinal) ? line.ordinal : 0;
  std::tuple key(process, line.pid, device);
  auto at = by_key_.find(key);
  if (at == by_key_.end()) {
    if (states_.size() == MAX_GPUS) return nullptr;
    at = by_key_.try_emplace(key, static_cast<std::uint32_t>(states_.size())).first;
    OfGpu& figures = states_.emplace_back().figures;
    figures.process = process;
    figures.pid = line.pid;
    figures.device = device;
    figures.of_ranges = part_.of_ranges;
    figures.curve = GpuCurve(states_.size() <= FINE_GPUS ? FINE : COARSE);
  }
  index = at->second;
  return &states_[index];
}

void GpusAtWork::set_name(std::uint64_t process, Name comm) {
  for (OfGpu& gpu : gpus_)
    if (gpu.process == process) gpu.comm = comm;
}

void GpusAtWork::set_waits(std::uint64_t process, std::int64_t device,
                           std::vector<WaitForRank> waits) {
  auto gpu = std::find_if(gpus_.begin(), gpus_.end(), [&](const OfGpu& one) {
    return one.process == process && one.device == device;
  });
  if (gpu != gpus_.end()) waits_left_out_ += gpu->curve.waited(std::move(waits));
}

void GpusAtWork::sort_kept() {
  std::sort(kept_.begin(), kept_.end(), [](const Ran& a, const Ran& b) {
    return std::tuple(a.begin, a.end, a.call, a.gpu) < std::tuple(b.begin, b.end, b.call, b.gpu);
  });
}

// Settles the earlier half.
void GpusAtWork::settle_half() {
  sort_kept();
  std::size_t half = kept_.size() / 2;
  for (std::size_t i = 0; i < half; i++) settle(kept_[i]);
  settled_until_ = kept_[half].begin;
  kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(half));
}

void GpusAtWork::settle(Ran ran) {
  State& gpu = states_[ran.gpu];
  OfGpu& figures = gpu.figures;
  if (const MeasuredWindows* windows = sampled_ ? windows_of(figures.pid) : nullptr) {
    auto window = windows->index_of(ran.joined ? ran.issued : ran.begin, !finishing_);
    if (!window) {
      if (ran.wanted) count_kernel(ran);
      return;
    }
    ran.window = *window;
  }
  bool is_new_window = sampled_ && (!gpu.any || ran.window != gpu.last.window);
  if (is_new_window) window_began(gpu);
  bool was_idle = gpu.whole.all().is_gap_until(ran.begin);
  bool at_once = was_idle && !is_new_window && ran.issued >= gpu.whole.all().end();
  if (was_idle) gap(ran, gpu);
  if (!gpu.any) figures.first = ran.begin;
  if (was_idle || !gpu.any) gpu.pieces.begin(ran.begin);
  gpu.pieces.cut(gpu.whole, ran.begin, figures.curve);
  gpu.any = true;
  gpu.settled = ran.begin;
  gpu.whole.add(ran.kind, ran.begin, ran.end);
  if (ran.end >= gpu.last.end) gpu.last = ran;
  if (!ran.wanted || !part_.touches(ran.begin, ran.end)) return;
  figures.busy.add(ran.kind, part_.clipped(ran.begin), part_.clipped(ran.end));
  count_kernel(ran);
  started(ran, gpu, at_once);
}

void GpusAtWork::count_kernel(const Ran& ran) {
  if (ran.kind.op != GpuOp::kernel) return;
  std::uint64_t time = part_.clipped(ran.end) - part_.clipped(ran.begin);
  bool too_many = !has_room_for(by_kernel_, ran.name.id, MAX_KERNELS);
  Kernel& kernel = by_kernel_[too_many ? others_.id : ran.name.id];
  kernel.count++;
  kernel.time = saturating_sum(kernel.time, time);
  kernel.longest = std::max(kernel.longest, time);
}

// Only the first of a graph's nodes waits for the call.
void GpusAtWork::started(const Ran& ran, State& gpu, bool at_once) {
  if (!ran.joined) return;
  if (ran.is_node) {
    if (gpu.started.size() >= MAX_GRAPHS) gpu.started.clear();
    if (!gpu.started.insert(ran.call).second) return;
  }
  std::uint64_t time = ran.begin - std::min(ran.begin, ran.issued);
  gpu.figures.to_start.add(time);
  if (at_once) gpu.figures.to_idle_start.add(time);
}

void GpusAtWork::gap(const Ran& ran, State& gpu) {
  GpuCurve::Piece piece = gpu.pieces.take(gpu.whole, gpu.whole.all().end(), gpu.figures.curve);
  bool is_known = ran.window == gpu.last.window;
  if (is_known) piece.end = ran.begin;
  if (is_known) piece.idle = causes(ran, gpu, piece.busy_until, piece.end);
  gpu.figures.curve.add(piece);
  if (is_known) in_part(ran, gpu, piece.idle);
}

// Why the GPU had nothing to do from `from` to `to`, before it began with `ran`. Every moment has
// the cause that it has in the whole gap. Leaves in `meanwhile_` what the issuing thread did then.
IdleTimes GpusAtWork::causes(const Ran& ran, const State& gpu, std::uint64_t from,
                             std::uint64_t to) {
  IdleTimes times;
  meanwhile_ = {std::move(meanwhile_.functions), 0, 0, 0, 0, false};
  meanwhile_.functions.clear();
  if (!ran.joined) {
    times[IdleCause::unknown] = to - from;
    return times;
  }
  std::uint64_t begin = gpu.whole.all().end(), end = ran.begin;
  bool follows_node = ran.is_node && gpu.last.call == ran.call;
  // From here on it was queued.
  std::uint64_t issued = follows_node ? begin : std::clamp(ran.returned, begin, end);
  if (issued > from) {
    auto look_at = [&](std::uint64_t since, std::uint64_t until) {
      calls_.look_at(gpu.figures.process, ran.tid, since, until, ran.issued, meanwhile_);
      std::uint64_t late = until - since, in_calls = std::min(late, meanwhile_.in_calls);
      return late - in_calls - std::min(late - in_calls, meanwhile_.others);
    };
    std::uint64_t outside = look_at(begin, issued);
    bool known = meanwhile_.known && !meanwhile_.untimed;
    bool pause = !meanwhile_.begun && !meanwhile_.others && outside > PAUSE;
    std::uint64_t until = std::min(issued, to);
    if (from != begin || until != issued) outside = look_at(from, until);
    times[IdleCause::calls] = std::min(until - from, meanwhile_.in_calls);
    times[IdleCause::others] = until - from - times[IdleCause::calls] - outside;
    times[!known ? IdleCause::unknown : pause ? IdleCause::pause : IdleCause::outside] += outside;
  }
  if (issued < to) {
    std::uint64_t queued = end - issued;
    IdleCause cause = queued <= LATENCY                 ? IdleCause::latency
                      : ran.has_to_wait || follows_node ? IdleCause::dependency
                                                        : IdleCause::queued;
    times[cause] += to - std::max(issued, from);
  }
  return times;
}

void GpusAtWork::in_part(const Ran& ran, State& gpu, const IdleTimes& whole) {
  OfGpu& figures = gpu.figures;
  std::uint64_t begin = gpu.whole.all().end(), end = ran.begin;
  if (!ran.wanted || begin >= part_.to || end <= part_.from) return;
  GpuGap gap;
  gap.begin = part_.clipped(begin);
  gap.end = part_.clipped(end);
  bool cut = gap.begin != begin || gap.end != end;
  gap.times = cut ? causes(ran, gpu, gap.begin, gap.end) : whole;
  figures.idle.add(gap.time());
  figures.by_cause.add(gap.times);
  figures.gaps[static_cast<std::size_t>(gap.times.main())]++;
  idle_by_range_.add(figures.process, ran.place, gap.time(), gap.times);
  for (const ThreadTime::InFunction& one : meanwhile_.functions) {
    bool too_many = !has_room_for(figures.meanwhile, one.name.id, MAX_FUNCTIONS);
    figures.meanwhile[too_many ? others_.id : one.name.id] += one.time;
  }
  const GpuGap* least = longest_gaps_.least();
  if (least && gap.time() < least->time()) return;
  gap.pid = figures.pid;
  gap.device = figures.device;
  gap.tid = ran.tid;
  gap.before = gpu.last.name;
  gap.before_call = gpu.last.call;
  gap.after = ran.name;
  gap.after_call = ran.call;
  gap.meanwhile = meanwhile_;
  longest_gaps_.add(std::move(gap));
}

const MeasuredWindows* GpusAtWork::windows_of(std::uint32_t pid) const {
  auto at = windows_.find(pid);
  return at == windows_.end() ? nullptr : &at->second;
}

void GpusAtWork::window_began(State& gpu) {
  std::uint64_t until_now = gpu.figures.busy.all().total();
  if (gpu.any) gpu.by_window[gpu.last.window] = until_now - gpu.before_window;
  gpu.before_window = until_now;
}

// What was submitted in the windows, against their time: this is right on average also where it ran
// on after them, and what still ran at their beginnings is unknown.
void GpusAtWork::take_windows(State& gpu) {
  OfGpu& figures = gpu.figures;
  const MeasuredWindows& windows = windows_[figures.pid];
  gpu.by_window[gpu.last.window] = figures.busy.all().total() - gpu.before_window;
  std::size_t i = 0;
  for (const MeasuredWindows::Window& window : windows.all()) {
    std::uint64_t time = part_.clipped(window.end) - part_.clipped(window.begin);
    auto at_work = gpu.by_window.find(i++);
    figures.in_windows += time;
    figures.by_window.add(at_work == gpu.by_window.end() ? 0 : at_work->second, time);
  }
  std::uint64_t idle = figures.idle_time(), explained = figures.by_cause.total();
  if (idle > explained) figures.by_cause[IdleCause::unknown] += idle - explained;
  figures.curve.only_in(windows);
}

void GpusAtWork::close(State& gpu) {
  OfGpu& figures = gpu.figures;
  if (!gpu.any) return;
  std::uint64_t end = gpu.whole.all().end();
  figures.curve.add(gpu.pieces.take(gpu.whole, end, figures.curve));
  if (!part_.touches(figures.first, end)) return;
  figures.first = part_.clipped(figures.first);
  figures.last = part_.clipped(end);
  if (sampled_) take_windows(gpu);
  gpus_.push_back(std::move(figures));
}

// Missing operations may have kept a GPU busy unseen.
void GpusAtWork::take_facts(const TraceFacts& facts) {
  whole_graphs_ = facts.header.measures_whole_graphs();
  if (!facts.end || !facts.end->gpu_operations) return;
  const GpuOperationCounts& counts = *facts.end->gpu_operations;
  auto invalid = static_cast<double>(counts.invalid),
       operations = static_cast<double>(counts.operations),
       calls = static_cast<double>(counts.calls),
       missing =
           static_cast<double>(counts.unjoined[static_cast<std::size_t>(Unjoined::not_reported)]);
  double of_calls = calls > 0 ? missing / calls : 0;
  double of_operations = invalid > 0 ? invalid / (operations + invalid) : 0;
  missing_share_ = std::min(100.0, 100 * std::max(of_calls, of_operations));
}

void GpusAtWork::finish(const TraceFacts& facts) {
  finishing_ = true;
  sort_kept();
  for (const Ran& ran : kept_) settle(ran);
  for (State& gpu : states_) {
    process_of_gpu_.push_back(gpu.figures.process);
    close(gpu);
  }
  states_.clear();
  std::sort(gpus_.begin(), gpus_.end(), [](const OfGpu& a, const OfGpu& b) {
    return std::tuple(b.busy_time(), a.pid, a.device, a.process) <
           std::tuple(a.busy_time(), b.pid, b.device, b.process);
  });
  longest_ = longest_gaps_.take();
  for (const auto& [id, kernel] : by_kernel_) kernels_.emplace_back(Name{id}, kernel);
  std::sort(kernels_.begin(), kernels_.end(), [](const auto& a, const auto& b) {
    return std::tuple(b.second.time, b.second.count, a.first.id) <
           std::tuple(a.second.time, a.second.count, b.first.id);
  });
  short_names_.settle();
  take_facts(facts);
}

CriticalPath GpusAtWork::path_of(std::uint64_t process, std::uint32_t tid, std::uint64_t begin,
                                 std::uint64_t end) const {
  std::vector<PathOperation> operations;
  auto at = std::lower_bound(kept_.begin(), kept_.end(), begin,
                             [](const Ran& ran, std::uint64_t ts) { return ran.begin < ts; });
  if (begin < settled_until_) return {};
  for (; at != kept_.end() && at->begin < end; ++at)
    if (process_of_gpu_[at->gpu] == process)
      operations.push_back({at->begin, at->end, at->call, at->issued, at->depends, at->queue,
                            at->name, at->kind.communicates});
  if (operations.empty()) return {};
  return critical_path(operations, calls_.waits_of(process, tid, begin, end), begin, end);
}

bool GpusAtWork::is_measured(std::uint64_t process) const { return of_process(process); }

const GpusAtWork::OfGpu* GpusAtWork::of_process(std::uint64_t process) const {
  for (const OfGpu& gpu : gpus_)
    if (gpu.process == process) return &gpu;
  return nullptr;
}

std::string GpusAtWork::name_of(Name kernel) const { return short_names_.of(kernel); }

}  // namespace cudabpf::analyze
