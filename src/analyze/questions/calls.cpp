#include "analyze/questions/calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "analyze/columns.hpp"
#include "analyze/derived/processes.hpp"
#include "analyze/derived/shown_ranges.hpp"

namespace cudabpf::analyze {

namespace {

bool longer(const Calls::Figures& a, const Calls::Figures& b) {
  return std::tuple(b.durations.total(), b.count, std::string_view(a.name)) <
         std::tuple(a.durations.total(), a.count, std::string_view(b.name));
}

using Counted = Calls::Figures;
constexpr auto TIMES = &Counted::durations;

constexpr Column<Counted> CALL_COLUMNS[] = {
    {{"name"}, As::text, its<&Counted::name>, {1, "function", WIDE}},
    {{"count", "count"}, As::count, its<&Counted::count>, {2, "calls"}},
    {{"errors"}, As::figure, its<&Counted::errors>, {8, "errors"}},
    {{"timed"}, As::count, its<TIMES, number_of>},
    {{"total_us", "total"}, As::timed, its<TIMES, total_of>, {3, "total", BAR}},
    {{"mean_us", "mean", 3}, As::timed, its<TIMES, mean_of>, {4, "mean"}},
    {{"p50_us", "p50", 1}, As::timed, its<TIMES, p50_of>, {5, "p50", IF_KNOWN}},
    {{"p95_us", "p95", 5}, As::timed, its<TIMES, p95_of>},
    {{"p99_us", "p99", 4}, As::timed, its<TIMES, p99_of>, {6, "p99", IF_KNOWN}},
    {{"max_us", "max", 2}, As::timed, its<TIMES, max_of>, {7, "longest"}},
    {{nullptr, "errors"}, As::figure, its<&Counted::errors>},
    {{"ioctls"}, As::count, its<&Counted::ioctls, if_any>},
};

}  // namespace

void Calls::line(const Line& line) {
  if (by_ == By::kernel) kernels_.line(line);
  if (line.kind != LineKind::call) return;
  Key key = key_of(line);
  if (!last_group_ || key != last_key_) {
    last_key_ = key;
    auto at = groups_.find(key);
    if (at == groups_.end()) {
      bool too_many = groups_.size() >= MAX_GROUPS;
      at = groups_.try_emplace(too_many ? OTHERS : key).first;
      at->second.name = too_many ? "(others)" : name_of(line);
      if (by_ == By::kernel && !too_many) at->second.kernel = line.kernel;
      if (by_ == By::range && !too_many) at->second.place = line.place;
    }
    last_group_ = &at->second.functions;
  }
  Counting& counting = counting_of(line.name);
  counting.count++;
  counting.errors += line.failed();
  counting.ioctls += line.ioctls;
  if (line.has(Field::duration)) counting.durations.add(line.duration);
}

Calls::Counting& Calls::counting_of(Name function) {
  auto at = last_group_->find(function.id);
  if (at != last_group_->end()) return at->second;
  if (counted_ >= MAX_COUNTED) return (*last_group_)[others_.id];
  counted_++;
  return (*last_group_)[function.id];
}

Calls::Key Calls::key_of(const Line& line) const {
  switch (by_) {
    case By::function:
      return {};
    case By::pid:
      return {line.process->number, 0, {}};
    case By::tid:
      return {line.process->number, line.tid, {}};
    case By::device:  // each process has its own numbering
      if (!line.has(Field::ordinal)) return {};
      return {line.process->number, static_cast<std::uint64_t>(line.ordinal), {}};
    case By::stream: {  // the default streams of all contexts count as one
      if (!line.has(Field::stream)) return {};
      Key key{0, 0, stream_of(line)};
      key.stream->context = 0;
      return key;
    }
    case By::kernel:
      return {0, line.kernel.id, {}};
    case By::range:
      return {0, line.place ? line.place->number + 1 : 0, {}};
    case By::container:
      return {line.process->known ? 0U : 1U, line.process->container.id, {}};
  }
  return {};
}

std::string Calls::name_of(const Line& line) const {
  std::string process = process_name(line.pid, names_.text(line.process->comm));
  if (line.host) process += fmt::format(" on {}", names_.text(line.host));
  switch (by_) {
    case By::function:
      return {};
    case By::pid:
      return process;
    case By::tid:
      return fmt::format("thread {} of {}", line.tid, process);
    case By::device:
      if (!line.has(Field::ordinal)) return "(device not known)";
      return fmt::format("device {} of {}", line.ordinal, process);
    case By::stream: {
      if (!line.has(Field::stream)) return "(no stream)";
      StreamKey stream = stream_of(line);
      std::string thread = stream.tid ? fmt::format(" of thread {}", stream.tid) : "";
      return fmt::format("stream {:#x}{} of {}", stream.handle, thread, process);
    }
    case By::kernel:
      return line.kernel ? std::string(names_.text(line.kernel)) : "(no kernel)";
    case By::range:
      return {};  // see groups()
    case By::container:
      if (line.process->container) return std::string(names_.text(line.process->container));
      return line.process->known ? "(no container)" : "(not known)";
  }
  return {};
}

void Calls::Group::add(const Figures& calls) {
  all.add(calls);
  for (Figures& function : functions)
    if (function.name == calls.name) return function.add(calls);
  functions.push_back(calls);
}

std::vector<Calls::Group> Calls::groups() const {
  ShownRanges ranges(names_);
  for (const auto& [key, counted] : groups_) ranges.add(counted.place);
  ranges.settle();
  std::vector<Group> groups;
  HashMap<std::string, std::size_t> of_ranges;
  for (const auto& [key, counted] : groups_) {
    bool is_range = by_ == By::range && key != OTHERS;
    std::string name = is_range ? ranges.text(counted.place) : counted.name;
    std::size_t place = groups.size();
    if (is_range) place = of_ranges.try_emplace(name, place).first->second;
    if (place == groups.size()) groups.emplace_back();
    Group& group = groups[place];
    group.name = group.all.name = group.shown = std::move(name);
    if (counted.kernel) group.shown = kernels_.of(counted.kernel);
    for (const auto& [function, counting] : counted.functions)
      group.add({std::string(names_.text({function})), counting.count, counting.errors,
                 counting.ioctls, counting.durations});
  }
  for (Group& group : groups) std::sort(group.functions.begin(), group.functions.end(), longer);
  std::sort(groups.begin(), groups.end(),
            [](const Group& a, const Group& b) { return longer(a.all, b.all); });
  return groups;
}

Json calls_json(const std::vector<Calls::Group>& groups, Calls::By by) {
  auto functions_of = [](const Calls::Group& group) {
    return list_of(group.functions, CALL_COLUMNS);
  };
  if (by == Calls::By::function)
    return groups.empty() ? Json::array() : functions_of(groups.front());
  Json json = Json::array();
  for (const Calls::Group& group : groups) {
    Json one = {{"group", group.name}};
    one.update(json_of(group.all, std::span(CALL_COLUMNS).subspan(1)));
    one["functions"] = functions_of(group);
    json.push_back(std::move(one));
  }
  return json;
}

Json calls_columns() { return page_columns(CALL_COLUMNS); }

void add_calls(Page& page, const std::vector<Calls::Group>& groups, std::size_t at_most) {
  constexpr std::size_t NAME_ROOM = 26;   // of functions
  constexpr std::size_t TITLE_ROOM = 48;  // of kernels, whose names differ at their end
  for (const Calls::Group& group : groups) {
    Table table = table_of(group.shown.empty() ? "calls" : printable(group.shown), CALL_COLUMNS,
                           group.shown == group.name ? NAME_ROOM : TITLE_ROOM);
    auto cells = cells_in(CALL_COLUMNS, page);
    add_rows(table, group.functions, at_most, "functions", cells);
    if (group.functions.size() > 1) table.row("all", cells(group.all));
    table.add_to(page);
  }
}

}  // namespace cudabpf::analyze
