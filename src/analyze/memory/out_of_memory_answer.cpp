#include <fmt/format.h>

#include "analyze/memory/memory_columns.hpp"
#include "util/console/terminal.hpp"

namespace cudabpf::analyze {

namespace {

constexpr std::size_t PARTS_SHOWN = 5;

std::uint64_t age_at(const OutOfMemory& out, const LiveMemory::Block& block) {
  return out.ts > block.since ? out.ts - block.since : 0;
}

Json parts_json(const std::vector<MemoryPart>& parts, const Names& names) {
  Json json = Json::array();
  for (const auto& part : parts) {
    Json one = {{"name", part.name ? Json(names.text(part.name)) : Json()},
                {"bytes", part.bytes},
                {"blocks", part.blocks}};
    if (part.pid) one["pid"] = part.pid;
    json.push_back(std::move(one));
  }
  return json;
}

void add_parts(Page& page, std::string_view title, const std::vector<MemoryPart>& parts,
               const OutOfMemory& out, const Names& names) {
  Table table(std::string(title), {{"blocks"}, {"bytes"}, {"share"}});
  std::uint64_t bytes = out.bytes, shown = 0;
  for (const auto& part : parts) {
    if (shown++ == PARTS_SHOWN && parts.size() > PARTS_SHOWN + 1) break;
    std::string name = part.name ? printable(std::string(names.text(part.name))) : "";
    if (part.pid) name = fmt::format("{}{}{}", part.pid, name.empty() ? "" : " ", name);
    table.row(name.empty() ? "(unknown)" : name,
              {human_count(part.blocks), human_bytes(part.bytes), percent(part.bytes, out.bytes)});
    bytes -= part.bytes;
  }
  if (bytes) table.row("others", {"", human_bytes(bytes), percent(bytes, out.bytes)});
  if (!parts.empty()) table.add_to(page);
}

}  // namespace

Json out_of_memory_json(const Memory& memory) {
  Json moments = Json::array();
  for (const OutOfMemory& out : memory.ran_out()) {
    Json largest = Json::array();
    for (const auto& block : out.largest)
      largest.push_back(json_of(HeldBlock{block, age_at(out, block), {}}, BLOCK_COLUMNS, &memory));
    moments.push_back({{"ts", out.ts},
                       {"call", out.call},
                       {"pid", out.pid},
                       {"function", memory.names().text(out.function)},
                       {"holder", out.holder ? Json(memory.names().text(out.holder)) : Json()},
                       {"device", out.gpu ? Json(*out.gpu) : Json()},
                       {"size", out.size ? Json(*out.size) : Json()},
                       {"held", out.bytes},
                       {"held_on_unknown_device", out.unknown},
                       {"driver", out.driver ? Json(out.driver) : Json()},
                       {"processes", parts_json(out.processes, memory.names())},
                       {"holders", parts_json(out.holders, memory.names())},
                       {"lines", parts_json(out.lines, memory.names())},
                       {"largest", largest}});
    if (out.blocks)
      moments.back()["blocks"] = {{"allocated", out.blocks->allocated},
                                  {"reserved", out.blocks->reserved},
                                  {"unused", out.blocks->unused()}};
  }
  return {{"count", memory.times_ran_out()}, {"first", moments}};
}

void add_out_of_memory(Page& page, const Memory& memory) {
  const Names& names = memory.names();
  if (memory.ran_out().empty()) return;
  const OutOfMemory& out = memory.ran_out().front();
  page.blank();
  page.heading(fmt::format("memory ran out at {}: process {} asked for {}{}", page.at(out.ts),
                           out.pid, out.size ? human_bytes(*out.size) : "memory",
                           out.gpu ? fmt::format(" on GPU {}", *out.gpu) : ""));
  std::string text = fmt::format(
      "{}{}, call id {}. The processes of this trace then held {}{}.", names.text(out.function),
      out.holder ? " by " + printable(std::string(names.text(out.holder))) : "", out.call,
      human_bytes(out.bytes), out.gpu ? " there" : " on all GPUs");
  if (out.unknown)
    text += fmt::format(" On which GPU they held {} more is not known.", human_bytes(out.unknown));
  if (out.driver)
    text += fmt::format(" The driver itself had taken another {}, on all GPUs.",
                        human_bytes(out.driver));
  if (out.blocks)
    text += fmt::format(
        " Process {} had reserved {} there for PyTorch's blocks, and {} of it was not allocated.",
        out.pid, human_bytes(out.blocks->reserved), human_bytes(out.blocks->unused()));
  if (std::uint64_t more = memory.times_ran_out() - 1)
    text += fmt::format(" Memory ran out {} later.",
                        more == 1 ? "once" : fmt::format("{} times", with_commas(more)));
  page.paragraph(text, 2);
  add_parts(page, "  processes", out.processes, out, names);
  add_parts(page, "  holders", out.holders, out, names);
  add_parts(page, "  lines", out.lines, out, names);
  Table largest = table_of("  the largest blocks", BLOCK_COLUMNS);
  auto cells = cells_in(BLOCK_COLUMNS, page, &memory);
  for (const auto& block : out.largest)
    largest.row(fmt::format("{} {}", hexadecimal(block.address), names.text({block.function})),
                cells(HeldBlock{block, age_at(out, block), {}}));
  if (!out.largest.empty()) largest.add_to(page);
}

}  // namespace cudabpf::analyze
