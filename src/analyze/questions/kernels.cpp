#include "analyze/questions/kernels.hpp"

#include <algorithm>
#include <tuple>

#include "analyze/circumstances/processes.hpp"
#include "analyze/work.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

Kernels::Kernels(Names& names) : names_(names), lost_(names.add("lost")), short_names_(names) {}

void Kernels::Figures::add(const Figures& other) {
  configurations += other.configurations;
  count += other.count;
  failed += other.failed;
  first = std::min(first, other.first);
  last = std::max(last, other.last);
  calls.add(other.calls);
  gaps.add(other.gaps);
}

void Kernels::OfClass::add(const OfClass& other) {
  kernels += other.kernels;
  configurations += other.configurations;
  count += other.count;
  calls.add(other.calls);
}

std::size_t Kernels::LaunchHash::operator()(const Launch& launch) const {
  std::uint64_t hash = mixed(launch.handle, launch.kernel.id);
  for (std::size_t i = 0; i < 3; i++)
    hash = mixed(hash, std::uint64_t{launch.grid[i]} << 32 | launch.block[i]);
  return mixed(hash, launch.shared);
}

void Kernels::line(const Line& line) {
  // The lost events may include a launch, so no gap may span them.
  if (line.kind == LineKind::lost && line.severity == lost_) return streams_.clear();
  if (!streams_.empty()) forget_streams(line);
  if (line.kind != LineKind::call || line.op != Op::launch) return;
  if (!is_counted(line)) {
    totals_.nested++;
    return;
  }
  short_names_.line(line);
  if (line.type == Type::kernel) launch(line);
  if (line.type == Type::graph && !line.recorded) totals_.graphs++;
}

// A stream that reuses the handle of a destroyed one has nothing to do with it.
void Kernels::forget_streams(const Line& line) {
  erase_emptied(line, streams_, [](const auto& stream) { return stream.first.process; });
  if (line.type == Type::stream && line.op == Op::destroy && !line.failed())
    streams_.erase(stream_of(line));
  if (line.context_gone)
    std::erase_if(streams_, [&](const auto& stream) {
      return stream.first.process == line.process->number &&
             stream.first.context == line.context_gone;
    });
}

void Kernels::launch(const Line& line) {
  totals_.launches++;
  if (!line.kernel) totals_.unnamed++;
  if (!line.has(Field::duration)) totals_.without_return++;
  if (line.recorded) totals_.captured++;
  std::size_t place = place_of(line);
  Figures& figures = figures_[place];
  figures.count++;
  figures.first = std::min(figures.first, line.ts);
  figures.last = std::max(figures.last, line.ts);
  if (line.has(Field::duration)) figures.calls.add(line.duration);
  if (line.failed()) {
    figures.failed++;
    totals_.failed++;
  } else if (line.has(Field::stream) && !line.recorded) {
    gap(line, place);
  }
}

std::size_t Kernels::place_of(const Line& line) {
  Launch launch{line.kernel, line.kernel ? 0 : line.handle, line.grid, line.block, line.shared};
  if (places_.size() >= MAX_CONFIGURATIONS && !places_.contains(launch)) {
    totals_.not_kept_apart++;
    launch = {};
  }
  auto [at, is_new] = places_.try_emplace(launch, figures_.size());
  if (is_new) {
    figures_.emplace_back();
    figures_.back().launch = launch;
    figures_.back().configurations = 1;
  }
  return at->second;
}

void Kernels::gap(const Line& line, std::size_t place) {
  StreamKey stream = stream_of(line);
  auto last = streams_.find(stream);
  if (last != streams_.end()) {
    std::uint64_t end = last->second.end;  // another thread's launch may have overlapped
    figures_[last->second.figures].gaps.add(line.ts > end ? line.ts - end : 0);
  }
  if (!line.has(Field::duration)) {  // it is not known when it returned
    if (last != streams_.end()) streams_.erase(last);
    return;
  }
  if (last != streams_.end()) {
    last->second = {place, line.end()};
  } else {
    if (streams_.size() >= MAX_STREAMS) streams_.clear();
    streams_[stream] = {place, line.end()};
  }
}

std::vector<Kernels::Figures> Kernels::figures(By by) const {
  std::vector<Figures> all;
  if (by == By::configuration) {
    all = figures_;
  } else {
    std::unordered_map<Launch, std::size_t, LaunchHash> places;
    for (const Figures& one : figures_) {
      Launch kernel{.kernel = one.launch.kernel, .handle = one.launch.handle};
      auto [at, is_new] = places.try_emplace(kernel, all.size());
      if (!is_new) {
        all[at->second].add(one);
        continue;
      }
      all.push_back(one);
      all.back().launch = kernel;
    }
  }

  name(all);
  std::sort(all.begin(), all.end(), [](const Figures& a, const Figures& b) {
    return std::tie(b.count, a.first, a.name) < std::tie(a.count, b.first, b.name);
  });
  return all;
}

// Fills in what follows from the name alone; it is classified once, however many configurations it
// has.
void Kernels::name(std::vector<Figures>& all) const {
  std::unordered_map<std::uint32_t, KernelClass> classes;
  for (Figures& one : all) {
    Name kernel = one.launch.kernel;
    one.full = names_.text(kernel);
    auto [known, is_new] = classes.try_emplace(kernel.id);
    if (is_new) known->second = class_of_kernel(one.full);
    one.kernel_class = known->second;
    one.name = kernel              ? short_names_.of(kernel)
               : one.launch.handle ? "(no name) " + hexadecimal(one.launch.handle)
                                   : "(not known)";
  }
}

std::vector<Kernels::OfClass> Kernels::classes() const {
  std::vector<OfClass> all(KERNEL_CLASSES);
  for (const Figures& kernel : figures(By::name)) {
    OfClass& of = all[static_cast<std::size_t>(kernel.kernel_class)];
    of.name = to_string(kernel.kernel_class);
    of.add({{}, 1, kernel.configurations, kernel.count, kernel.calls});
  }
  std::erase_if(all, [](const OfClass& of) { return !of.count; });
  std::stable_sort(all.begin(), all.end(),
                   [](const OfClass& a, const OfClass& b) { return a.count > b.count; });
  return all;
}

}  // namespace cudabpf::analyze
