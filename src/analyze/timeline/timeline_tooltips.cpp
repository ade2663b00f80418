#include "analyze/timeline/timeline_tooltips.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "util/console/terminal.hpp"
#include "util/text/printable.hpp"

namespace cudabpf::analyze {

namespace {

constexpr std::size_t NAMED = 3;  // functions and kernels, of each tooltip
constexpr std::size_t NAME_WIDTH = 60;

std::string text(const Timeline& timeline, Name name) {
  return shortened(printable(std::string(timeline.names().text(name))), NAME_WIDTH);
}

std::string kernel_name(const Timeline& timeline, Name kernel) {
  return shortened(printable(std::string(timeline.short_name(kernel))), NAME_WIDTH);
}

std::string of_one(const Timeline& timeline, const Bar& bar, BarsOf of) {
  const Alike& call = bar.parts().front();
  bool kernel = of != BarsOf::driver && call.what;
  std::string tip = kernel ? kernel_name(timeline, call.what) : text(timeline, call.name);
  if (!kernel && call.what) tip += " " + text(timeline, call.what);
  tip += '\n';
  if (kernel) tip += text(timeline, call.name) + ", ";
  if (of == BarsOf::stream)
    tip += "enqueued";
  else if (call.category == Category::unfinished)
    tip += "did not return; began";
  else
    tip += call.untimed ? "duration not known; began" : human_time(call.time);
  tip += " at " + seconds(bar.begin);
  if (look_of(call.category).waits) tip += "\nwaits for the GPU";
  if (bar.inside) tip += "\n" + count_of(bar.inside, "call", "calls") + " inside it";
  return tip;
}

// Adds up the parts that have the same name.
template <typename NameOf>
std::vector<Alike> by_name(const Bar& bar, NameOf&& name_of) {
  std::vector<Alike> all;
  for (const Alike& part : bar.parts()) {
    Name name = name_of(part);
    if (!name) continue;
    auto same =
        std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
    if (same == all.end()) same = all.insert(all.end(), Alike{name, {}, part.category, 0, 0, 0, 0});
    same->add(part);
  }
  std::sort(all.begin(), all.end(), [](const Alike& a, const Alike& b) {
    return std::tie(b.time, b.count, a.name.id) < std::tie(a.time, a.count, b.name.id);
  });
  return all;
}

// "a: 3, 1.20 ms; b: 1; 5 more": the first few of them.
template <typename TextOf>
std::string list(const std::vector<Alike>& all, bool exact, TextOf&& text_of) {
  std::string tip;
  for (std::size_t i = 0; i < std::min(all.size(), NAMED); i++) {
    tip += (i ? "; " : "") + text_of(all[i].name) + ": ";
    if (!exact) tip += "at least ";
    tip += with_commas(all[i].count);
    if (all[i].time) tip += ", " + human_time(all[i].time);
  }
  if (all.size() > NAMED) tip += fmt::format("; {} more", all.size() - NAMED);
  return tip;
}

std::string of_several(const Timeline& timeline, const Bar& bar, BarsOf of) {
  Alike total = bar.total();
  bool driver = of == BarsOf::driver, gpu = of == BarsOf::gpu, exact = !bar.others()->count;
  std::string tip = driver ? count_of(total.count, "operation", "operations")
                    : gpu
                        ? count_of(total.count, "kernel, copy or fill", "kernels, copies and fills")
                        : count_of(total.count, "call", "calls");
  if (of == BarsOf::stream) tip += " put something on it";
  tip += fmt::format(", {} to {}", seconds(bar.begin), seconds(bar.end));
  std::uint64_t time = gpu ? bar.covered() : total.time;
  if (of != BarsOf::stream)
    tip += fmt::format("\n{} in them, {} of that", human_time(time), percent(time, bar.time()));
  if (total.untimed) tip += fmt::format("; {} of unknown duration", with_commas(total.untimed));
  if (bar.inside) tip += "\n" + count_of(bar.inside, "call", "calls") + " inside them";
  auto functions = by_name(bar, [](const Alike& part) { return part.name; });
  tip += "\n" + list(functions, exact, [&](Name name) { return text(timeline, name); });
  auto about = by_name(bar, [](const Alike& part) { return part.what; });
  if (about.empty()) return tip;
  tip += "\n" + list(about, exact, [&](Name name) {
           return driver ? text(timeline, name) : kernel_name(timeline, name);
         });
  return tip;
}

std::string sizes(const Dimensions& sizes) {
  return fmt::format("{}×{}×{}", sizes[0], sizes[1], sizes[2]);
}

// "all_reduce of 64.0 KiB, communicator 3, number 17 of it"
std::string collective_text(const Timeline& timeline, const AskedCollective& collective) {
  if (collective.together > 1)
    return fmt::format("{} in one group",
                       count_of(collective.together, "collective", "collectives"));
  std::string said = text(timeline, collective.op);
  if (collective.size) said += " of " + human_bytes(collective.size);
  if (collective.communicator) said += fmt::format(", communicator {}", collective.communicator);
  if (collective.seq) said += fmt::format(", number {} of it", with_commas(collective.seq));
  return said;
}

// All that is known of one thing that a GPU did.
std::string of_work(const Timeline& timeline, const QueuedOperation& work) {
  const Line& line = work.line;
  bool timed = line.has(Field::duration);
  std::string tip = shortened(printable(timeline.name_of(work)), NAME_WIDTH);
  tip += "\n" + (timed ? human_time(work.span.time()) + " on the GPU" : "duration not known");
  tip += ", began at " + seconds(work.span.begin);
  if (line.collective.op) tip += "\n" + collective_text(timeline, line.collective);
  if (work.issuer) tip += "\nqueued for " + human_time(work.issuer->queued_until(work.span.begin));
  if (line.has(Field::grid) && line.has(Field::block))
    tip += fmt::format("\ngrid {}, block {}", sizes(line.grid), sizes(line.block));
  if (line.has(Field::call)) tip += fmt::format("\ncall {}", line.call);
  if (line.has(Field::node)) tip += fmt::format(", node {} of its graph", line.node);
  if (line.unjoined) tip += "\nno call known: " + text(timeline, line.unjoined);
  return tip;
}

}  // namespace

std::string gpu_tooltip(const Timeline& timeline, const Bar& bar, std::size_t queue) {
  if (!bar.is_one()) return of_several(timeline, bar, BarsOf::gpu);
  if (const QueuedOperation* work = timeline.work_at(queue, bar)) return of_work(timeline, *work);
  const Alike& one = bar.parts().front();
  std::string tip = one.what ? kernel_name(timeline, one.what) : text(timeline, one.name);
  tip += "\n" + (one.untimed ? "duration not known" : human_time(one.time) + " on the GPU");
  return tip + ", began at " + seconds(bar.begin);
}

std::string tooltip(const Timeline& timeline, const Bar& bar, BarsOf of) {
  return bar.is_one() ? of_one(timeline, bar, of) : of_several(timeline, bar, of);
}

}  // namespace cudabpf::analyze
