#include <fmt/format.h>

#include "analyze/columns.hpp"
#include "analyze/memory/memory.hpp"
#include "util/console/terminal.hpp"

namespace cudabpf::analyze {

namespace {

constexpr std::size_t ALLOCATORS_SHOWN = 4, PLACES_SHOWN = 12;

using Level = Blocks::Level;

constexpr Column<Level> LEVEL_COLUMNS[] = {
    {{"ts"}, As::moment, its<&Level::ts>},
    {{nullptr, "at", 1}, As::moment, its<&Level::ts>},
    {{"blocks", "blocks", 2}, As::count, its<&Level::blocks>},
    {{"allocated", "allocated"}, As::bytes, its<&Level::allocated>},
    {{"reserved", "reserved"}, As::bytes, its<&Level::reserved>},
    {{"unused", "not allocated"}, As::bytes, its<&Level::unused>},
    {{nullptr, "share"},
     As::word,
     [](auto& of) { return known_if(of.reserved, percent(of.unused(), of.reserved)); }},
};

Json allocator_json(const Memory& memory, const Blocks::Allocator& one) {
  const Blocks::Levels& levels = one.levels();
  return {{"pid", one.pid},
          {"comm", memory.names().text(one.comm)},
          {"device", one.gpu},
          {"reserved_by", one.asked ? "allocator" : "process"},
          {"allocations", one.allocations},
          {"frees", one.frees},
          {"most_allocated", json_of(levels.most_allocated, LEVEL_COLUMNS)},
          {"most_reserved", json_of(levels.most_reserved, LEVEL_COLUMNS)},
          {"most_unused", json_of(levels.most_unused, LEVEL_COLUMNS)},
          {"end", json_of(levels.now, LEVEL_COLUMNS)}};
}

std::string place_text(const Memory& memory, const Blocks::OfPlace& of) {
  if (of.others) return fmt::format("all other {}", several_hold(memory));
  return of.place ? path_text(*of.place, memory.names()) : "(no range)";
}

Json places_json(const Memory& memory) {
  Json json = Json::array();
  for (const Blocks::OfPlace& one : memory.blocks().places())
    json.push_back({{what_holds(memory), one.place ? Json(place_text(memory, one)) : Json()},
                    {"allocations", one.allocations},
                    {"allocated", one.allocated},
                    {"frees", one.frees},
                    {"peak", one.peak},
                    {"held", one.held}});
  return json;
}

void add_allocator(Page& page, const Memory& memory, const Blocks::Allocator& one) {
  const Blocks::Levels& levels = one.levels();
  std::string comm = one.comm ? " " + printable(std::string(memory.names().text(one.comm))) : "";
  Table table = table_of(
      fmt::format("PyTorch's blocks: process {}{}, GPU {}", one.pid, comm, one.gpu), LEVEL_COLUMNS);
  auto cells = cells_in(LEVEL_COLUMNS, page);
  table.row("most allocated", cells(levels.most_allocated));
  table.row("most reserved", cells(levels.most_reserved));
  table.row("most not allocated", cells(levels.most_unused));
  table.row("at the end", cells(levels.now));
  table.add_to(page);
  page.paragraph(
      one.asked ? "allocated: as tensors asked for it, before it is rounded up. reserved: what the "
                  "allocator asked the driver for."
                : "allocated: as tensors asked for it, before it is rounded up. reserved: all GPU "
                  "memory of the process; whose code asked for it is not known.",
      2);
}

void add_places(Page& page, const Memory& memory) {
  const auto& places = memory.blocks().places();
  if (places.empty()) return;
  Table table(fmt::format("PyTorch's blocks by {}", what_holds(memory)),
              {{"allocations", 1}, {"allocated", 2}, {"peak"}, {"at the end"}});
  for (std::size_t i = 0; i < std::min(places.size(), PLACES_SHOWN); i++)
    table.row(printable(place_text(memory, places[i])),
              {human_count(places[i].allocations), human_bytes(places[i].allocated),
               human_bytes(places[i].peak), human_bytes(places[i].held)});
  if (places.size() > PLACES_SHOWN)
    table.row(fmt::format("{} more", with_commas(places.size() - PLACES_SHOWN)), {});
  table.add_to(page);
}

}  // namespace

Json blocks_json(const Memory& memory) {
  const Blocks& blocks = memory.blocks();
  Json allocators = Json::array();
  for (const Blocks::Allocator& one : blocks.allocators())
    allocators.push_back(allocator_json(memory, one));
  Json json = {{"allocators", allocators},
               {"frees_without_allocation", blocks.unknown_frees()},
               {"replaced", blocks.replaced()},
               {"not_followed", blocks.left_out()}};
  if (memory.is_by_place()) json[several_hold(memory)] = places_json(memory);
  return json;
}

void add_blocks(Page& page, const Memory& memory) {
  const Blocks& blocks = memory.blocks();
  if (!blocks.any()) return;
  std::size_t shown = 0;
  for (const Blocks::Allocator& one : blocks.allocators())
    if (shown++ < ALLOCATORS_SHOWN) add_allocator(page, memory, one);
  if (shown > ALLOCATORS_SHOWN)
    page.paragraph(fmt::format("Blocks of {} are in --json.",
                               count_of(shown - ALLOCATORS_SHOWN, "more process and GPU",
                                        "more processes and GPUs")),
                   2);
  add_places(page, memory);
  if (blocks.unknown_frees())
    page.paragraph(count_of(blocks.unknown_frees(), "block was freed that was",
                            "blocks were freed that were") +
                       " allocated before the trace began, or whose allocation was lost.",
                   2);
  if (blocks.left_out())
    page.paragraph(count_of(blocks.left_out(), "block was", "blocks were") +
                       " not followed: there are too many at once.",
                   2);
}

}  // namespace cudabpf::analyze
