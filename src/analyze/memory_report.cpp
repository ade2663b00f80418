#include <fmt/format.h>

#include <algorithm>

#include "analyze/memory.hpp"
#include "util/chart.hpp"
#include "util/terminal.hpp"

namespace cudabpf::analyze {

namespace {

constexpr std::size_t CURVE_ROWS = 8;
constexpr std::size_t LABEL_WIDTH = 24;
constexpr std::size_t PROCESSES_SHOWN = 4, GROUPS_SHOWN = 6, LARGEST_SHOWN = 5, UNKNOWN_SHOWN = 5;
constexpr std::size_t JSON_POINTS = 256;

constexpr std::size_t index(Memory::Side side) { return static_cast<std::size_t>(side); }
constexpr auto GPU = index(Memory::Side::gpu), HOST = index(Memory::Side::host);

std::string name_of(const Memory& memory, const Memory::Holder& holder) {
  if (!holder.pid) return "all other processes";
  std::string pid = std::to_string(holder.pid);
  return holder.comm ? pid + " " + printable(std::string(memory.names().text(holder.comm))) : pid;
}

std::string_view how_told(const Memory::NeverFreed& block) {
  if (!block.ended) return "still held";
  return block.how == Memory::Ended::with_context ? "context" : "process";
}

// --- for programs

Json block_json(const Memory& memory, const Memory::Block& block) {
  return {{"pid", block.pid},
          {"tid", block.tid},
          {"kind", to_string(block.kind)},
          {"function", memory.names().text(block.function)},
          {block.kind == MemoryKind::vmm ? "handle" : "ptr", hexadecimal(block.address)},
          {"size", block.size},
          {"since", block.since},
          {"call", block.call}};
}

Json peak_json(const Memory& memory, const Memory::Holder& holder, std::size_t side) {
  const MemoryPeak& peak = holder.peaks[side];
  Json json = {{"bytes", peak.bytes()}, {"ts", peak.ts()}};
  if (&holder == &memory.all()) return json;
  const auto& holders = holder.at_peak[side];
  json["blocks"] = holders.blocks;
  json["groups"] = Json::array();
  for (const auto& group : holders.groups)
    json["groups"].push_back({{"function", memory.names().text(group.function)},
                              {"sizes", size_class_name(group.size_class)},
                              {"bytes", group.bytes},
                              {"blocks", group.blocks}});
  json["largest"] = Json::array();
  for (const auto& block : holders.largest) {
    Json one = block_json(memory, block);
    one["age_us"] = microseconds(peak.ts() > block.since ? peak.ts() - block.since : 0);
    json["largest"].push_back(std::move(one));
  }
  return json;
}

Json holder_json(const Memory& memory, const Memory::Holder& holder) {
  Json json;
  if (holder.pid) json = {{"pid", holder.pid}, {"comm", memory.names().text(holder.comm)}};
  Json points = Json::object();
  auto columns = memory.columns(holder.curve, JSON_POINTS);
  for (std::size_t kind = 0; kind < MEMORY_KINDS; kind++) {
    const Memory::Figures& figures = holder.kinds[kind];
    if (!figures.allocations) continue;
    json["kinds"][std::string(MEMORY_KIND_NAMES[kind])] = {
        {"allocations", figures.allocations},
        {"allocated", figures.allocated},
        {"frees", figures.frees},
        {"freed", figures.freed},
        {"replaced", figures.replaced},
        {"ended_with_context", figures.with_context},
        {"ended_with_process", figures.with_process},
        {"peak", figures.peak},
        {"held", figures.held}};
    Json& levels = points[std::string(MEMORY_KIND_NAMES[kind])] = Json::array();
    for (const auto& column : columns) levels.push_back(column.most[kind]);
  }
  json["peak"] = {{"gpu", peak_json(memory, holder, GPU)},
                  {"host", peak_json(memory, holder, HOST)}};
  json["curve"] = {{"step_us", microseconds(memory.duration()) / JSON_POINTS}, {"bytes", points}};
  return json;
}

// --- for people

// A curve that many columns wide, its scale to the left.
void add_curve(Page& page, const Memory& memory, const Memory::Holder& holder, std::size_t side) {
  std::uint64_t most = holder.peaks[side].bytes();
  std::vector<std::uint64_t> sums;
  for (const auto& level : memory.columns(holder.curve, page.width() - LABEL_WIDTH - 1))
    sums.push_back(level.sums[side]);
  auto lines = tall_spark(sums, most, CURVE_ROWS);
  for (std::size_t row = 0; row < lines.size(); row++) {
    bool marked = row == 0 || row == CURVE_ROWS / 2;
    std::string label = marked ? human_bytes(most * (CURVE_ROWS - row) / CURVE_ROWS) : "";
    page.line(fmt::format("{:>{}}{}{}", label, LABEL_WIDTH - 1, marked ? "┤" : "│", lines[row]));
  }
}

void add_axis(Page& page, const Memory& memory) {
  TextAxis axis = time_axis(0, memory.duration(), page.width() - LABEL_WIDTH - 1);
  page.line(fmt::format("{:>{}}└{}", "0", LABEL_WIDTH - 1, axis.line));
  page.line(std::string(LABEL_WIDTH, ' ') + axis.labels);
}

// A line a process and kind, each as tall as its own peak.
void add_sparks(Page& page, const Memory& memory) {
  for (std::size_t i = 0; i < std::min(memory.processes().size(), PROCESSES_SHOWN); i++) {
    const Memory::Holder& holder = memory.processes()[i];
    auto columns = memory.columns(holder.curve, page.width() - LABEL_WIDTH - 1);
    for (std::size_t kind = 0; kind < MEMORY_KINDS; kind++) {
      if (!holder.kinds[kind].allocations) continue;
      std::vector<std::uint64_t> levels;
      for (const auto& column : columns) levels.push_back(column.most[kind]);
      std::string label = fmt::format("{} of {}", MEMORY_KIND_NAMES[kind], name_of(memory, holder));
      page.line(fmt::format("  {:<{}}{}", shortened(label, LABEL_WIDTH - 4), LABEL_WIDTH - 2,
                            spark(levels, holder.kinds[kind].peak)));
    }
  }
}

void add_curves(Page& page, const Memory& memory) {
  for (auto [side, name] : {std::pair{GPU, "GPU memory"}, {HOST, "pinned host memory"}}) {
    const MemoryPeak& peak = memory.all().peaks[side];
    if (!peak.bytes()) continue;
    page.heading(fmt::format("{} held{}, at most {} at {}", name,
                             memory.processes().size() > 1 ? " by all processes" : "",
                             human_bytes(peak.bytes()), human_time(peak.ts())));
    add_curve(page, memory, memory.all(), side);
    add_axis(page, memory);
  }
  std::size_t curves = 0;
  for (const auto& holder : memory.processes())
    for (const auto& figures : holder.kinds) curves += figures.allocations > 0;
  if (curves <= 1) return;
  page.heading("each process and kind, as tall as its own peak");
  add_sparks(page, memory);
}

void add_figures(Page& page, const Memory& memory) {
  page.heading("memory", {"allocations", "allocated", "freed", "peak", "at the end"});
  for (const auto& holder : memory.processes())
    for (std::size_t kind = 0; kind < MEMORY_KINDS; kind++) {
      const Memory::Figures& figures = holder.kinds[kind];
      if (!figures.allocations) continue;
      page.row(fmt::format("{} of {}", MEMORY_KIND_NAMES[kind], name_of(memory, holder)),
               {human_count(figures.allocations), human_bytes(figures.allocated),
                human_bytes(figures.freed), human_bytes(figures.peak), human_bytes(figures.held)});
    }
}

void add_peak(Page& page, const Memory& memory, const Memory::Holder& holder, std::size_t side) {
  const MemoryPeak& peak = holder.peaks[side];
  if (!peak.bytes()) return;
  const auto& holders = holder.at_peak[side];
  page.heading(
      fmt::format("{}{}: peak of {}, {}", holder.pid ? "process " : "", name_of(memory, holder),
                  side == GPU ? "GPU memory" : "pinned host memory", human_bytes(peak.bytes())),
      {"blocks", "bytes", "share"});
  for (std::size_t i = 0; i < holders.groups.size(); i++) {
    MemoryPeak::Group group = holders.groups[i];
    std::string name = fmt::format("{}, {}", memory.names().text(group.function),
                                   size_class_name(group.size_class));
    if (i == GROUPS_SHOWN && i + 1 < holders.groups.size()) {  // the rest in one row
      name = fmt::format("{} more sizes", holders.groups.size() - i);
      while (++i < holders.groups.size()) {
        group.bytes += holders.groups[i].bytes;
        group.blocks += holders.groups[i].blocks;
      }
    }
    page.row(name, {human_count(group.blocks), human_bytes(group.bytes),
                    percent(group.bytes, peak.bytes())});
  }
  page.heading(fmt::format("  its largest blocks, at {}", human_time(peak.ts())),
               {"size", "age", "call"});
  for (std::size_t i = 0; i < std::min(holders.largest.size(), LARGEST_SHOWN); i++) {
    const Memory::Block& block = holders.largest[i];
    page.row(
        fmt::format("{} {}", hexadecimal(block.address), memory.names().text(block.function)),
        {human_bytes(block.size), human_time(peak.ts() > block.since ? peak.ts() - block.since : 0),
         std::to_string(block.call)});
  }
}

void add_never_freed(Page& page, const Memory& memory, std::size_t at_most) {
  if (!memory.never_freed_blocks()) return;
  page.heading("never freed", {"size", "age", "call", "ended with"});
  std::uint64_t blocks = memory.never_freed_blocks(), bytes = memory.never_freed_bytes();
  for (const auto& one : memory.never_freed()) {
    if (!at_most-- && blocks > 1) break;
    page.row(fmt::format("{} {} of {}", hexadecimal(one.block.address),
                         memory.names().text(one.block.function), one.block.pid),
             {human_bytes(one.block.size), human_time(one.age), std::to_string(one.block.call),
              std::string(how_told(one))});
    blocks--;
    bytes -= one.block.size;
  }
  if (blocks) page.row(fmt::format("{} more", with_commas(blocks)), {human_bytes(bytes)});
}

void add_unknown_frees(Page& page, const Memory& memory) {
  std::uint64_t count = memory.unknown_free_count();
  if (!count) return;
  page.heading("frees without an allocation", {"process", "call"});
  for (std::size_t i = 0; i < std::min(memory.unknown_frees().size(), UNKNOWN_SHOWN); i++) {
    const auto& free = memory.unknown_frees()[i];
    page.row(fmt::format("{} {}", hexadecimal(free.address), memory.names().text(free.function)),
             {std::to_string(free.pid), std::to_string(free.call)});
  }
  if (count > UNKNOWN_SHOWN)
    page.line(fmt::format("  {} more", with_commas(count - UNKNOWN_SHOWN)));
  page.paragraph(
      "What they freed was allocated before the trace began, came from another process or was "
      "allocated by a graph; or its allocation was lost.",
      2);
}

// "12 allocations (0.3/s)".
std::string rate_of(const Memory& memory) {
  std::uint64_t allocations = 0;
  for (const auto& figures : memory.all().kinds) allocations += figures.allocations;
  std::string text = count_of(allocations, "allocation", "allocations");
  if (!memory.allocating_time()) return text;
  double rate =
      static_cast<double>(allocations) * 1e9 / static_cast<double>(memory.allocating_time());
  return fmt::format("{}, {}/s", text,
                     rate < 10 ? fmt::format("{:.1f}", rate)
                               : human_count(static_cast<std::uint64_t>(rate + 0.5)));
}

void add_churn(Page& page, const Memory& memory, std::size_t at_most) {
  auto sizes = memory.churn();
  if (sizes.empty()) return;
  page.heading("churn: " + rate_of(memory),
               {"allocations", "frees", "again soon", "life p50", "life max"});
  for (std::size_t i = 0; i < std::min(sizes.size(), at_most); i++) {
    const Memory::Churn& churn = sizes[i];
    page.row(
        churn.size ? human_bytes(churn.size) : "other sizes",
        {human_count(churn.allocations), human_count(churn.frees), figure_or_blank(churn.again),
         human_time(churn.lifetimes.quantile(0.5)), human_time(churn.lifetimes.max())});
  }
  if (sizes.size() > at_most)
    page.line(fmt::format("  {} more sizes", with_commas(sizes.size() - at_most)));
  page.paragraph(fmt::format("again soon: allocated within {} after memory of that size was freed.",
                             human_time(Memory::SOON)),
                 2);
}

}  // namespace

Json memory_json(const Memory& memory) {
  Json never_freed = Json::array(), unknown = Json::array(), churn = Json::array();
  for (const auto& one : memory.never_freed()) {
    Json json = block_json(memory, one.block);
    json["age_us"] = microseconds(one.age);
    json["ended_with"] = one.ended ? Json(how_told(one)) : Json();
    never_freed.push_back(std::move(json));
  }
  for (const auto& free : memory.unknown_frees())
    unknown.push_back({{"pid", free.pid},
                       {"function", memory.names().text(free.function)},
                       {"address", hexadecimal(free.address)},
                       {"ts", free.ts},
                       {"call", free.call}});
  for (const auto& size : memory.churn()) {
    churn.push_back({{"size", size.size ? Json(size.size) : Json()},
                     {"allocations", size.allocations},
                     {"frees", size.frees},
                     {"again_soon", size.again},
                     {"lifetime_p50_us", microseconds(size.lifetimes.quantile(0.5))},
                     {"lifetime_max_us", microseconds(size.lifetimes.max())}});
  }
  Json processes = Json::array();
  for (const auto& holder : memory.processes()) processes.push_back(holder_json(memory, holder));
  return {
      {"all", holder_json(memory, memory.all())},
      {"processes", processes},
      {"never_freed",
       {{"blocks", memory.never_freed_blocks()},
        {"bytes", memory.never_freed_bytes()},
        {"largest", never_freed}}},
      {"frees_without_allocation", {{"count", memory.unknown_free_count()}, {"first", unknown}}},
      {"churn", churn},
      {"allocations_not_seen_to_return", memory.not_returned()}};
}

void add_memory(Page& page, const Memory& memory, std::size_t at_most) {
  if (memory.processes().empty()) page.line("No allocation in this trace returned memory.");
  if (!memory.processes().empty()) {
    add_figures(page, memory);
    add_curves(page, memory);
  }
  for (std::size_t i = 0; i < memory.processes().size(); i++) {
    if (i == PROCESSES_SHOWN) {
      page.line(
          fmt::format("  peaks of {} are in --json",
                      count_of(memory.processes().size() - i, "more process", "more processes")));
      break;
    }
    for (std::size_t side : {GPU, HOST}) add_peak(page, memory, memory.processes()[i], side);
  }
  add_never_freed(page, memory, at_most);
  add_unknown_frees(page, memory);
  add_churn(page, memory, at_most);
  if (memory.not_returned())
    page.paragraph(count_of(memory.not_returned(), "allocation was", "allocations were") +
                       " not seen to return, so that nothing is known of what came of them.",
                   0);
}

}  // namespace cudabpf::analyze
