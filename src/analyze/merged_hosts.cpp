#include "analyze/merged_hosts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "analyze/columns.hpp"
#include "util/text/printable.hpp"

namespace cudabpf::analyze {

namespace {

constexpr auto rank = [](const MergedTrace& of) {
  Json json = Json::object();
  for (const auto& [name, value] : of.rank) json[std::string(name)] = value;
  return known_if(!of.rank.empty(), std::move(json));
};
// The first of the variables that a launcher may set.
constexpr auto rank_text = [](const MergedTrace& of) {
  return of.rank.empty() ? std::string() : std::to_string(of.rank.front().second);
};

constexpr auto losses = [](const MergedTrace& of) {
  Json json = Json::object();
  for (const auto& [reason, count] : of.losses) json[reason] = count;
  return json;
};
constexpr auto losses_text = [](const MergedTrace& of) {
  std::string text;
  for (const auto& [reason, count] : of.losses)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", with_commas(count), reason);
  return text;
};

template <std::optional<std::uint64_t> MergedTrace::*Member>
constexpr auto if_known = [](const MergedTrace& of) {
  return known_if((of.*Member).has_value(), (of.*Member).value_or(0));
};
constexpr auto bound_text = [](const MergedTrace& of) -> std::string {
  if (!of.bound_ns) return "NOT KNOWN";
  return *of.bound_ns ? "± " + human_time(*of.bound_ns) : "exact";
};

constexpr auto pids_from = [](const MergedTrace& of) {
  return shown_if(of.number > 0, std::uint64_t{of.number} * PIDS_OF_HOST);
};

constexpr Column<MergedTrace> MERGED_COLUMNS[] = {
    {{"file"}, As::text, its<&MergedTrace::file>},
    {{"host", "host"}, As::text, its<&MergedTrace::host>},
    {{"rank"}, As::object, rank},
    {{nullptr, "rank"}, As::word, rank_text},
    {{"calls", "calls"}, As::count, its<&MergedTrace::calls>},
    {{"duration_us"}, As::time, its<&MergedTrace::duration_ns>},
    {{"offset_us", "begins at"}, As::begin, its<&MergedTrace::offset_ns>},
    {{"alignment", "by"}, As::word, [](auto& of) { return to_string(of.alignment); }},
    {{"error_us"}, As::time, if_known<&MergedTrace::error_ns>},
    {{"bound_us"}, As::time, if_known<&MergedTrace::bound_ns>},
    {{nullptr, "bound"}, As::word, bound_text},
    {{"why"}, As::text, [](auto& of) { return if_any(of.why_unknown); }},
    {{"pids_from", "pids from", 2}, As::number, pids_from},
    {{"losses"}, As::object, losses},
    {{nullptr, "lost", 1}, As::text, losses_text},
    {{"cut_off"}, As::object, [](auto& of) { return Json(of.cut_off); }},
    {{"missing"}, As::object, [](auto& of) { return Json(of.missing); }},
    {{"malformed"}, As::count, its<&MergedTrace::malformed>},
    {{"repeated", "repeated", 3}, As::figure, its<&MergedTrace::repeated>},
};

// A merge may name many hosts, by names of any length.
constexpr std::size_t MAX_NAMED = 4, LONGEST_NAME = 64;

// The hosts whose clocks nothing is known of, and why.
std::string unknown_text(const std::vector<MergedTrace>& merged) {
  std::string text;
  std::set<std::uint32_t> hosts;
  for (const MergedTrace& one : merged)
    if (!one.error_ns && one.alignment != Alignment::collectives &&
        hosts.insert(one.number).second && hosts.size() <= MAX_NAMED)
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", shortened(one.host, LONGEST_NAME),
                          shortened(one.why_unknown, LONGEST_NAME));
  if (hosts.size() > MAX_NAMED) text += fmt::format("; and {} more", hosts.size() - MAX_NAMED);
  return text;
}

}  // namespace

std::string hosts_text(const std::vector<MergedTrace>& merged) {
  std::vector<std::string> hosts = hosts_of(merged);
  std::size_t shown = hosts.size() <= MAX_NAMED + 1 ? hosts.size() : MAX_NAMED;
  std::string text;
  for (std::size_t i = 0; i < shown; i++) {
    bool last = i + 1 == hosts.size();
    text += (i == 0 ? "" : last ? " and " : ", ") + shortened(hosts[i], LONGEST_NAME);
  }
  if (shown < hosts.size()) text += fmt::format(" and {} more", hosts.size() - shown);
  return text;
}

std::string order_text(const std::vector<MergedTrace>& merged) {
  OrderBound bound = order_bound(merged);
  if (!bound.known)
    return fmt::format(
        "How far the hosts' clocks differ is NOT KNOWN ({}): which of two events on different "
        "hosts was first is not known, nor how far apart they were.",
        unknown_text(merged));
  if (!bound.ns) return "All were recorded on one clock: the order of events is exact.";
  return fmt::format(
      "The hosts' clocks may differ by up to {}: which of two events on different hosts was first "
      "is not known if they are closer than that.",
      human_time(bound.ns));
}

void add_merged(Page& page, const std::vector<MergedTrace>& merged) {
  Table table = table_of("merged", MERGED_COLUMNS);
  auto cells = cells_in(MERGED_COLUMNS, page);
  for (const MergedTrace& one : merged) table.row(printable(one.file), cells(one));
  table.add_to(page);
  page.blank();
  page.paragraph(order_text(merged), 2);
}

Json merged_json(const std::vector<MergedTrace>& merged) {
  OrderBound bound = order_bound(merged);
  return {{"merged", list_of(merged, MERGED_COLUMNS)},
          {"hosts", hosts_of(merged)},
          {"order_bound_us", bound.known ? Json(microseconds(bound.ns)) : Json(nullptr)},
          {"order", order_text(merged)}};
}

}  // namespace cudabpf::analyze
