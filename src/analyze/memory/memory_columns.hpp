// The columns of blocks of memory, and of sizes that are allocated over and over.
#pragma once

#include <fmt/format.h>

#include "analyze/columns.hpp"
#include "analyze/memory/memory.hpp"

namespace cudabpf::analyze {

struct HeldBlock {
  const Memory::Block& block;
  std::uint64_t age = 0;
  std::optional<Memory::Fate> fate;  // what ended it; nothing: it was held at a peak

  static HeldBlock at_peak(const Memory::Block& block, const MemoryPeak& peak) {
    return {block, peak.ts() > block.since ? peak.ts() - block.since : 0, {}};
  }
  std::string until() const {
    if (!fate) return {};
    return *fate == Memory::Fate::still_held ? "the trace's end"
                                             : fmt::format("the {}'s end", to_string(*fate));
  }
};

// An address, or a handle of memory that is mapped at several.
template <bool Mapped>
constexpr auto address_if = [](const HeldBlock& of) {
  return known_if((of.block.kind == MemoryKind::vmm) == Mapped, hexadecimal(of.block.address));
};

inline constexpr Column<HeldBlock, const Memory*> BLOCK_COLUMNS[] = {
    {{"pid"}, As::number, [](auto& of) { return of.block.pid; }, {6, "process"}},
    {{"tid"}, As::number, [](auto& of) { return of.block.tid; }},
    {{"kind"}, As::text, [](auto& of) { return to_string(of.block.kind); }, {3, "kind"}},
    {{"function"},
     As::text,
     [](auto& of, auto memory) { return memory->names().text({of.block.function}); },
     {4, "allocated by"}},
    {{"handle"}, As::text, address_if<true>},
    {{"ptr"}, As::text, address_if<false>, {1, "address"}},
    {{"size", "size"}, As::bytes, [](auto& of) { return of.block.size; }, {2, "size", BAR}},
    {{"since"}, As::moment, [](auto& of) { return of.block.since; }, {5, "since"}},
    {{nullptr, "held for"}, As::time, its<&HeldBlock::age>},
    {{"call", "call id"}, As::number, [](auto& of) { return of.block.call; }},
    {{"age_us"}, As::time, its<&HeldBlock::age>},
    {{nullptr, "process", 1},
     As::number,
     [](auto& of) { return shown_if(of.fate.has_value(), of.block.pid); }},
    {{"ended_with"},
     As::text,
     [](auto& of) {
       return known_if(of.fate.has_value(), to_string(of.fate.value_or(Memory::Fate{})));
     }},
    {{nullptr, "until"}, As::text, its<&HeldBlock::until>},
    {{"holder", "holder", 1},
     As::text,
     [](auto& of, auto memory) {
       Name holder = memory->origin_of(of.block).holder;
       return known_if(bool(holder), memory->names().text(holder));
     },
     {7, "holder"}},
};

inline constexpr Column<Memory::Churn> CHURN_COLUMNS[] = {
    {{"size"}, As::bytes, [](auto& of) { return of.size ? Json(of.size) : Json(); }},
    {{"allocations", "allocations"}, As::count, its<&Memory::Churn::allocations>},
    {{"frees", "frees", 1}, As::count, its<&Memory::Churn::frees>},
    {{"again_soon", "again soon"},
     As::figure,
     [](auto& of) { return of.size ? Json(of.again) : Json(); }},
    {{"lifetime_p50_us", "life p50"},
     As::time,
     [](auto& of) { return of.lifetimes.quantile(0.5); }},
    {{"lifetime_max_us", "life max", 1}, As::time, [](auto& of) { return of.lifetimes.max(); }},
};

}  // namespace cudabpf::analyze
