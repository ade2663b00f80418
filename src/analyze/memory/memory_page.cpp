#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyze/memory/memory_columns.hpp"
#include "util/console/terminal.hpp"
#include "util/page/chart.hpp"

namespace cudabpf::analyze {

namespace {

constexpr std::size_t CURVE_ROWS = 8;
constexpr std::size_t HOLDERS_SHOWN = 12, PROCESSES_SHOWN = 4, GROUPS_SHOWN = 6, MAX_SHOWN = 5,
                      UNKNOWN_SHOWN = 5;

constexpr std::size_t index(Memory::Side side) { return static_cast<std::size_t>(side); }
constexpr auto GPU = index(Memory::Side::gpu), HOST = index(Memory::Side::host);

void add_figures(Page& page, const Memory& memory) {
  Table table("memory",
              {{"allocations", 1}, {"allocated", 2}, {"freed", 2}, {"peak"}, {"at the end"}});
  for (const auto& holder : memory.holders())
    for (std::size_t kind = 0; kind < MEMORY_KINDS; kind++) {
      const MemoryFigures& figures = holder.kinds[kind];
      if (!figures.any()) continue;
      table.row(fmt::format("{} {}", name_of(memory, holder), MEMORY_KIND_NAMES[kind]),
                cells_of(figures));
    }
  table.add_to(page);
}

std::string file_text(const Memory& memory, Name file) {
  return file ? printable(std::string(memory.names().text(file))) : "(unknown)";
}

// Whose code asked for the memory, if that is known of any.
void add_asked(Page& page, const Memory& memory) {
  if (memory.by() == Memory::By::holder) return;
  for (auto [side, title] :
       {std::pair{GPU, "GPU memory by holder"}, {HOST, "pinned host memory by holder"}}) {
    std::uint64_t whole = memory.all().peaks[side].bytes();
    if (!whole) continue;
    Table table(title, {{"at the peak"}, {"share"}, {"at the end"}, {"allocations"}});
    std::size_t shown = 0;
    for (const Memory::Asked& one : memory.asked()) {
      if (!one.allocations[side] && !one.at_peak[side] && !one.held[side]) continue;
      if (shown++ == HOLDERS_SHOWN) break;
      table.row(file_text(memory, one.holder),
                {human_bytes(one.at_peak[side]), percent(one.at_peak[side], whole),
                 human_bytes(one.held[side]), human_count(one.allocations[side])});
    }
    if (shown) table.add_to(page);
  }
}

std::size_t label_width(const Page& page) { return page.width() < 60 ? 16 : 24; }

// The curve of one side across the page, its scale on the left.
void add_curve(Page& page, const Memory& memory, const Memory::Holder& holder, std::size_t side) {
  std::uint64_t most = holder.peaks[side].bytes();
  std::size_t label = label_width(page);
  std::vector<std::uint64_t> sums;
  for (const auto& level : memory.columns(holder.curve, page.width() - label - 1))
    sums.push_back(level.sums[side]);
  auto lines = tall_spark(sums, most, CURVE_ROWS);
  for (std::size_t row = 0; row < lines.size(); row++) {
    bool marked = row == 0 || row == CURVE_ROWS / 2;
    std::string bytes = marked ? human_bytes(most * (CURVE_ROWS - row) / CURVE_ROWS) : "";
    page.line(fmt::format("{:>{}}{}{}", bytes, label - 1, marked ? "┤" : "│", lines[row]));
  }
}

void add_axis(Page& page, const Memory& memory) {
  std::size_t label = label_width(page);
  TextAxis axis = time_axis(
      {{{memory.begin(), std::max(memory.end(), memory.begin() + 1)}}, page.width() - label - 1, 0},
      page.moments());
  page.line(fmt::format("{:>{}}└{}", "0", label - 1, axis.line));
  page.line(std::string(label, ' ') + axis.labels);
}

// One line per process and kind, each scaled to its own peak.
void add_sparks(Page& page, const Memory& memory) {
  std::size_t width = label_width(page);
  for (std::size_t i = 0; i < std::min(memory.holders().size(), PROCESSES_SHOWN); i++) {
    const Memory::Holder& holder = memory.holders()[i];
    auto columns = memory.columns(holder.curve, page.width() - width - 1);
    for (std::size_t at = 0; at < MEMORY_KINDS; at++) {
      if (!holder.kinds[at].any()) continue;
      std::vector<std::uint64_t> levels;
      levels.reserve(columns.size());
      for (const auto& column : columns) levels.push_back(column.most.kinds[at]);
      std::string kind(MEMORY_KIND_NAMES[at]);
      std::string label = shortened(name_of(memory, holder), width - 4 - kind.size()) + " " + kind;
      page.line(fmt::format("  {:<{}}{}", label, width - 2, spark(levels, holder.kinds[at].peak)));
    }
  }
}

void add_curves(Page& page, const Memory& memory) {
  for (auto [side, name] : {std::pair{GPU, "GPU memory"}, {HOST, "pinned host memory"}}) {
    const MemoryPeak& peak = memory.all().peaks[side];
    if (!peak.bytes()) continue;
    page.blank();
    page.heading(fmt::format(
        "{} held{}, at most {} at {}", name,
        memory.holders().size() > 1 ? fmt::format(" by all {}", several_hold(memory)) : "",
        human_bytes(peak.bytes()), page.at(peak.ts())));
    add_curve(page, memory, memory.all(), side);
    add_axis(page, memory);
  }
  std::size_t curves = 0;
  for (const auto& holder : memory.holders())
    for (const auto& figures : holder.kinds) curves += figures.any();
  if (curves <= 1) return;
  page.blank();
  page.heading(fmt::format("each {} and kind, as tall as its own peak", what_holds(memory)));
  add_sparks(page, memory);
}

std::string block_name(const Memory& memory, const Memory::Block& block) {
  return fmt::format("{} {}", hexadecimal(block.address), memory.names().text({block.function}));
}

void add_groups(Table& table, const Memory& memory, const MemoryPeak::Holders& holders,
                std::uint64_t whole) {
  auto add = [&](const std::string& name, std::uint64_t blocks, std::uint64_t bytes) {
    table.row(name, {human_count(blocks), human_bytes(bytes), percent(bytes, whole)});
  };
  std::size_t shown =
      holders.groups.size() <= GROUPS_SHOWN + 1 ? holders.groups.size() : GROUPS_SHOWN;
  std::uint64_t blocks = holders.blocks, bytes = whole;
  for (std::size_t i = 0; i < shown; i++) {
    const MemoryPeak::Group& group = holders.groups[i];
    add(fmt::format("{}, {}", memory.names().text(group.function),
                    size_class_name(group.size_class)),
        group.blocks, group.bytes);
    blocks -= group.blocks;
    bytes -= group.bytes;
  }
  if (shown < holders.groups.size())
    add(fmt::format("{} more sizes", holders.groups.size() - shown), blocks, bytes);
}

void add_peak(Page& page, const Memory& memory, const Memory::Holder& holder, std::size_t side) {
  const MemoryPeak& peak = holder.peaks[side];
  if (!peak.bytes()) return;
  const auto& holders = holder.at_peak[side];
  page.blank();
  page.heading(fmt::format("{}{} at its peak: {} of {}, at {}", holder.pid ? "process " : "",
                           name_of(memory, holder), human_bytes(peak.bytes()),
                           side == GPU ? "GPU memory" : "pinned host memory", page.at(peak.ts())));
  Table groups("  what held it", {{"blocks"}, {"bytes"}, {"share"}});
  add_groups(groups, memory, holders, peak.bytes());
  groups.add_to(page);
  Table largest = table_of("  its largest blocks", BLOCK_COLUMNS);
  auto cells = cells_in(BLOCK_COLUMNS, page, &memory);
  for (std::size_t i = 0; i < std::min(holders.largest.size(), MAX_SHOWN); i++)
    largest.row(block_name(memory, holders.largest[i]),
                cells(HeldBlock::at_peak(holders.largest[i], peak)));
  largest.add_to(page);
}

void add_never_freed(Page& page, const Memory& memory, std::size_t at_most) {
  std::uint64_t blocks = memory.never_freed_blocks(), bytes = memory.never_freed_bytes();
  if (!blocks || memory.frees_left_out()) return;
  Table table = table_of("never freed by the program", BLOCK_COLUMNS);
  auto cells = cells_in(BLOCK_COLUMNS, page, &memory);
  for (const auto& one : memory.never_freed()) {
    if (!at_most-- && blocks > 1) break;
    table.row(block_name(memory, one.block), cells(HeldBlock{one.block, one.age, one.how}));
    blocks--;
    bytes -= one.block.size;
  }
  if (blocks) table.row(fmt::format("{} more", with_commas(blocks)), {human_bytes(bytes)});
  table.add_to(page);
}

void add_unknown_frees(Page& page, const Memory& memory) {
  std::uint64_t count = memory.unknown_free_count();
  if (!count) return;
  Table table("frees without an allocation", {{"call id"}, {"process"}});
  for (std::size_t i = 0; i < std::min(memory.unknown_frees().size(), UNKNOWN_SHOWN); i++) {
    const auto& free = memory.unknown_frees()[i];
    table.row(fmt::format("{} {}", hexadecimal(free.address), memory.names().text(free.function)),
              {std::to_string(free.call), std::to_string(free.pid)});
  }
  if (count > UNKNOWN_SHOWN)
    table.row(fmt::format("{} more", with_commas(count - UNKNOWN_SHOWN)), {});
  table.add_to(page);
  page.paragraph(
      "What they freed was allocated or imported before the trace began, or allocated by a graph; "
      "or "
      "its allocation was lost.",
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
                               : human_count(static_cast<std::uint64_t>(std::llround(rate))));
}

void add_churn(Page& page, const Memory& memory, std::size_t at_most) {
  auto sizes = memory.churn();
  if (sizes.empty()) return;
  Table table = table_of("churn: " + rate_of(memory), CHURN_COLUMNS);
  auto cells = cells_in(CHURN_COLUMNS, page);
  for (std::size_t i = 0; i < std::min(sizes.size(), at_most); i++)
    table.row(sizes[i].size ? with_commas(sizes[i].size) + " B" : "other sizes", cells(sizes[i]));
  if (sizes.size() > at_most)
    table.row(fmt::format("{} more sizes", with_commas(sizes.size() - at_most)), {});
  table.add_to(page);
  if (std::none_of(sizes.begin(), sizes.end(), [](const auto& size) { return size.again > 0; }))
    return;
  page.paragraph(fmt::format("again soon: allocated within {} after memory of that size was freed.",
                             human_time(Memory::SOON)),
                 2);
}

}  // namespace

std::string_view to_string(Memory::Fate fate) {
  constexpr std::string_view NAMES[] = {"still held", "context", "process"};
  return NAMES[static_cast<std::size_t>(fate)];
}

std::string what_holds(const Memory& memory) {
  constexpr std::string_view WORDS[] = {"process", "range", "line", "holder"};
  return std::string(WORDS[static_cast<std::size_t>(memory.by())]);
}
std::string several_hold(const Memory& memory) {
  return what_holds(memory) + (memory.by() == Memory::By::process ? "es" : "s");
}

std::string name_of(const Memory& memory, const Memory::Holder& holder) {
  if (holder.others) return fmt::format("all other {}", several_hold(memory));
  if (memory.by() == Memory::By::holder) return file_text(memory, holder.file);
  if (memory.by() != Memory::By::process)
    return holder.place ? printable(path_text(*holder.place, memory.names())) : "(no range)";
  std::string pid = std::to_string(holder.pid);
  return holder.comm ? pid + " " + printable(std::string(memory.names().text(holder.comm))) : pid;
}

void add_memory(Page& page, const Memory& memory, std::size_t at_most) {
  if (memory.holders().empty()) page.paragraph("No allocation in this trace returned memory.", 0);
  if (!memory.holders().empty()) {
    add_figures(page, memory);
    add_asked(page, memory);
    add_curves(page, memory);
  }
  std::size_t shown = std::min(memory.holders().size(), PROCESSES_SHOWN);
  for (std::size_t i = 0; i < shown; i++)
    for (std::size_t side : {GPU, HOST}) add_peak(page, memory, memory.holders()[i], side);
  if (shown < memory.holders().size()) {
    page.blank();
    page.paragraph(fmt::format("The peaks of {} are in --json.",
                               count_of(memory.holders().size() - shown,
                                        fmt::format("more {}", what_holds(memory)),
                                        fmt::format("more {}", several_hold(memory)))),
                   0);
  }
  add_driver_memory(page, memory);
  add_blocks(page, memory);
  add_never_freed(page, memory, at_most);
  if (!memory.holders().empty())
    page.paragraph("call id: the trace's line with this id allocated it.", 2);
  add_unknown_frees(page, memory);
  add_churn(page, memory, at_most);
  if (memory.left_out().any()) {
    page.blank();
    page.paragraph(text_of(memory.left_out()), 0);
  }
  if (!memory.not_returned()) return;
  page.blank();
  page.paragraph(count_of(memory.not_returned(), "allocation was", "allocations were") +
                     " not seen to return, so whether they succeeded is not known.",
                 0);
}

}  // namespace cudabpf::analyze
