#include "analyze/gaps/idle_by_range.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "analyze/columns.hpp"
#include "util/limited.hpp"
#include "util/saturating.hpp"

namespace cudabpf::analyze {

namespace {

using Row = IdleByRange::Figures;

// The context: the idle time of all ranges.
constexpr Column<Row, std::uint64_t> RANGE_GAP_COLUMNS[] = {
    {{"range"}, As::text, its<&Row::name>},
    {{"share", "share"}, As::percent, [](auto& of, auto all) { return share(of.time, all); }},
    {{"time_us", "time"}, As::time, its<&Row::time>},
    {{"gaps", "gaps"}, As::count, its<&Row::gaps>},
    {{"mean_us", "mean", 2},
     As::time,
     [](auto& of) { return known_if(of.gaps, of.gaps ? of.time / of.gaps : 0); }},
    {{"max_us", "longest", 1}, As::time, its<&Row::longest>},
    {{"host_us", "host late"},
     As::time,
     [](auto& of) { return known_if(of.by_cause.total(), of.by_cause.host()); }},
    {{nullptr, "mostly", 3},
     As::text,
     [](auto& of) {
       return known_if(of.by_cause.total(), std::string(info_of(of.by_cause.main()).text));
     }},
    {{"by_cause_us"},
     As::object,
     [](auto& of) { return known_if(of.by_cause.total(), causes_json(of.by_cause)); }},
};

std::uint64_t time_of(const std::vector<Row>& rows) {
  std::uint64_t all = 0;
  for (const Row& row : rows) all = saturating_sum(all, row.time);
  return all;
}

}  // namespace

Json causes_json(const IdleTimes& times) {
  Json json = Json::object();
  for (std::size_t i = 0; i < IDLE_CAUSES; i++)
    json[std::string(IDLE_CAUSE_INFOS[i].id)] = microseconds(times.of[i]);
  return json;
}

void IdleByRange::Figures::add(const Figures& other) {
  gaps += other.gaps;
  time = saturating_sum(time, other.time);
  longest = std::max(longest, other.longest);
  by_cause.add(other.by_cause);
}

void IdleByRange::add(std::uint64_t process, const RangePlace* place, std::uint64_t time,
                      const IdleTimes& by_cause) {
  Key key{process, place};
  Figures& figures = has_room_for(kept_, key, MAX_KEPT) ? kept_[key] : others_;
  figures.add({{}, 1, time, time, by_cause});
}

std::vector<Row> IdleByRange::rows(const Names& names,
                                   const std::function<bool(std::uint64_t)>& is_wanted) const {
  ShownRanges ranges(names);
  for (const auto& [key, figures] : kept_) ranges.add(key.place);
  ranges.settle();
  std::map<std::string, Figures> by_name;
  for (const auto& [key, figures] : kept_)
    if (is_wanted(key.process)) by_name[ranges.text(key.place)].add(figures);
  if (others_.gaps) by_name["(others)"].add(others_);
  std::vector<Row> rows;
  for (auto& [name, figures] : by_name) {
    rows.push_back(figures);
    rows.back().name = name;
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.time > b.time; });
  return rows;
}

std::string word_of(GapsBy by) { return by == GapsBy::line ? "line" : "range"; }

Json idle_by_range_json(const std::vector<Row>& rows, GapsBy by) {
  Json json = Json::array();
  for (const Row& row : rows) {
    Json one = {{word_of(by), row.name}};
    one.update(json_of(row, std::span(RANGE_GAP_COLUMNS).subspan(1), time_of(rows)));
    json.push_back(std::move(one));
  }
  return json;
}

void add_idle_by_range(Page& page, std::string_view title, const std::vector<Row>& rows,
                       std::size_t at_most, GapsBy by) {
  constexpr std::size_t NAME_ROOM = 48;
  std::string word = word_of(by);
  Table table = table_of(fmt::format(fmt::runtime(title), word), RANGE_GAP_COLUMNS, NAME_ROOM);
  add_rows(table, rows, at_most, word + "s", cells_in(RANGE_GAP_COLUMNS, page, time_of(rows)));
  if (!table.empty()) table.add_to(page);
}

}  // namespace cudabpf::analyze
