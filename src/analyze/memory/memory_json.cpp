#include "analyze/memory/memory_columns.hpp"

namespace cudabpf::analyze {

namespace {

constexpr std::size_t CURVE_POINTS = 256;  // of a curve

Json peak_json(const Memory& memory, const Memory::Holder& holder, Memory::Side of) {
  auto side = static_cast<std::size_t>(of);
  const MemoryPeak& peak = holder.peaks[side];
  Json json = {{"bytes", peak.bytes()}, {"ts", peak.ts()}};
  const auto& holders = holder.at_peak[side];
  json["blocks"] = holders.blocks;
  json["groups"] = Json::array();
  for (const auto& group : holders.groups)
    json["groups"].push_back({{"function", memory.names().text(group.function)},
                              {"sizes", size_class_name(group.size_class)},
                              {"bytes", group.bytes},
                              {"blocks", group.blocks}});
  json["largest"] = Json::array();
  for (const auto& block : holders.largest)
    json["largest"].push_back(json_of(HeldBlock::at_peak(block, peak), BLOCK_COLUMNS, &memory));
  return json;
}

Json holder_json(const Memory& memory, const Memory::Holder& holder) {
  Json json;
  if (holder.pid) json = {{"pid", holder.pid}, {"comm", memory.names().text(holder.comm)}};
  if (memory.by() == Memory::By::holder)
    json = {{"holder", holder.file ? Json(memory.names().text(holder.file)) : Json()}};
  if (holder.place) json = {{what_holds(memory), path_text(*holder.place, memory.names())}};
  Json points = Json::object();
  auto columns = memory.columns(holder.curve, CURVE_POINTS);
  for (std::size_t kind = 0; kind < MEMORY_KINDS; kind++) {
    const MemoryFigures& figures = holder.kinds[kind];
    if (!figures.any()) continue;
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
    for (const auto& column : columns) levels.push_back(column.most.kinds[kind]);
  }
  json["peak"] = {{"gpu", peak_json(memory, holder, Memory::Side::gpu)},
                  {"host", peak_json(memory, holder, Memory::Side::host)}};
  json["curve"] = {{"from_us", microseconds(memory.begin())},
                   {"step_us", microseconds(memory.end() - memory.begin()) / CURVE_POINTS},
                   {"bytes", points}};
  if (holder.most_blocks) {
    Json& levels = json["curve"]["blocks"] = Json::array();
    for (const auto& column : columns) levels.push_back(column.most.blocks);
  }
  return json;
}

Json asked_json(const Memory& memory, Memory::Side of) {
  auto side = static_cast<std::size_t>(of);
  Json all = Json::array();
  for (const Memory::Asked& one : memory.asked())
    all.push_back({{"holder", one.holder ? Json(memory.names().text(one.holder)) : Json()},
                   {"at_peak", one.at_peak[side]},
                   {"held", one.held[side]},
                   {"allocations", one.allocations[side]}});
  return all;
}

}  // namespace

Json memory_columns() { return page_columns(BLOCK_COLUMNS); }

Json memory_json(const Memory& memory) {
  Json never_freed = Json::array(), unknown = Json::array();
  for (const auto& one : memory.never_freed())
    never_freed.push_back(json_of(HeldBlock{one.block, one.age, one.how}, BLOCK_COLUMNS, &memory));
  for (const auto& free : memory.unknown_frees())
    unknown.push_back({{"pid", free.pid},
                       {"function", memory.names().text(free.function)},
                       {"address", hexadecimal(free.address)},
                       {"ts", free.ts},
                       {"call", free.call}});
  Json holders = Json::array();
  for (const auto& holder : memory.holders()) {
    holders.push_back(holder_json(memory, holder));
    if (holder.others) holders.back()["others"] = true;
  }
  Json json = {
      {"all", holder_json(memory, memory.all())},
      {several_hold(memory), holders},
      {"asked_by",
       {{"gpu", asked_json(memory, Memory::Side::gpu)},
        {"host", asked_json(memory, Memory::Side::host)}}},
      {"never_freed", memory.frees_left_out() ? Json()
                                              : Json{{"blocks", memory.never_freed_blocks()},
                                                     {"bytes", memory.never_freed_bytes()},
                                                     {"largest", never_freed}}},
      {"frees_without_allocation", {{"count", memory.unknown_free_count()}, {"first", unknown}}},
      {"churn", list_of(memory.churn(), CHURN_COLUMNS)},
      {"not_followed",
       {{"allocations", memory.left_out().blocks},
        {"bytes", memory.left_out().bytes},
        {"mappings", memory.left_out().mappings}}},
      {"allocations_not_seen_to_return", memory.not_returned()}};
  if (memory.blocks().any()) json["blocks"] = blocks_json(memory);
  if (memory.driver().any()) json["driver"] = driver_memory_json(memory);
  return json;
}

}  // namespace cudabpf::analyze
