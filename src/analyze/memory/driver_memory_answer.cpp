#include <fmt/format.h>

#include "analyze/columns.hpp"
#include "analyze/memory/memory.hpp"
#include "util/console/terminal.hpp"

namespace cudabpf::analyze {

namespace {

using Moment = DriverMemory::Moment;
using Share = DriverMemory::Share;

constexpr std::size_t TABLES_SHOWN = 4, SHARES_SHOWN = 12;

Json share_json(const Memory& memory, const Share& share) {
  if (share.of == Share::Of::others)
    return {{"others", true}, {"bytes", share.bytes}, {"objects", share.objects}};
  return {{share.of == Share::Of::asked ? "holder" : "function",
           share.name ? Json(memory.names().text(share.name)) : Json()},
          {"bytes", share.bytes},
          {"objects", share.objects}};
}

Json moment_json(const Memory& memory, const Moment& moment) {
  if (!moment.nvml) return {};
  Json shares = Json::array();
  for (const Share& share : moment.shares) shares.push_back(share_json(memory, share));
  return {{"ts", moment.ts},
          {"nvml", moment.nvml},
          {"asked_for", moment.asked()},
          {"driver", moment.own()},
          {"unexplained",
           static_cast<std::int64_t>(moment.nvml) - static_cast<std::int64_t>(moment.taken())},
          {"shares", shares}};
}

std::string share_text(const Memory& memory, const Share& share) {
  std::string name = printable(std::string(memory.names().text(share.name)));
  if (share.of == Share::Of::others) return "all others";
  if (share.of == Share::Of::asked) return share.name ? name : "allocations, of an unknown holder";
  return "the driver, in " + (share.name ? name : "calls that are not in the trace");
}

void add_balance(Page& page, const Memory& memory, const DriverMemory::OfProcess& one) {
  const Moment& moment = one.most;
  Table table(fmt::format("GPU memory of {}, at {}",
                          process_name(one.pid, memory.names().text(one.comm)), page.at(moment.ts)),
              {{"bytes"}, {"share"}});
  auto row = [&](const std::string& name, std::uint64_t bytes) {
    table.row(name, {human_bytes(bytes), percent(bytes, moment.nvml)});
  };
  std::uint64_t rest = moment.taken();
  for (std::size_t i = 0; i < std::min(moment.shares.size(), SHARES_SHOWN); i++) {
    row(share_text(memory, moment.shares[i]), moment.shares[i].bytes);
    rest -= moment.shares[i].bytes;
  }
  if (rest) row(fmt::format("{} more", moment.shares.size() - SHARES_SHOWN), rest);
  if (moment.taken() > moment.nvml)
    row("more than NVML says", moment.taken() - moment.nvml);
  else
    row("unexplained", moment.nvml - moment.taken());
  row("all, as NVML says", moment.nvml);
  table.add_to(page);
  if (!one.from_start)
    page.paragraph("What this process had before the trace began is unexplained.", 2);
}

}  // namespace

Json driver_memory_json(const Memory& memory) {
  Json processes = Json::array();
  for (const DriverMemory::OfProcess& one : memory.driver().processes())
    processes.push_back({{"pid", one.pid},
                         {"comm", memory.names().text(one.comm)},
                         {"from_start", one.from_start},
                         {"most", moment_json(memory, one.most)},
                         {"last", moment_json(memory, one.last)}});
  return {{"processes", processes}, {"not_followed", memory.driver().left_out()}};
}

void add_driver_memory(Page& page, const Memory& memory) {
  const DriverMemory& driver = memory.driver();
  if (!driver.any() || memory.is_by_place()) return;
  std::size_t balanced = 0;
  for (const DriverMemory::OfProcess& one : driver.processes())
    if (one.most.nvml && balanced++ < TABLES_SHOWN) add_balance(page, memory, one);
  if (balanced > TABLES_SHOWN)
    page.paragraph(
        count_of(balanced - TABLES_SHOWN, "more process is", "more processes are") + " in --json.",
        2);
  if (std::size_t without = driver.processes().size() - balanced)
    page.paragraph(
        fmt::format("What the driver took is not shown for {}: NVML gave no figure while {} GPU "
                    "memory stayed the same.",
                    count_of(without, "process", "processes"), without == 1 ? "its" : "their"),
        2);
  if (driver.left_out())
    page.paragraph(count_of(driver.left_out(), "piece of memory was", "pieces of memory were") +
                       " not followed: there are too many at once.",
                   2);
}

}  // namespace cudabpf::analyze
