// The columns of an answer's rows, described once: a list of columns makes a row's JSON, its cells
// in a table, and what the page of `report` shows.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "analyze/analysis.hpp"
#include "util/durations.hpp"
#include "util/page/table.hpp"

namespace cudabpf::analyze {

// How a value is written.
enum class As : std::uint8_t {
  text,
  word,    // text that is aligned as figures are
  count,   // "1,204"
  figure,  // the same; nothing for 0
  number,  // without commas, as pids are
  time,    // ns; µs in JSON
  timed,   // the same; "-" in a table if nothing was timed
  moment,  // ns since the trace began
  begin,   // the same; µs in JSON
  bytes,
  percent,
  dimensions,  // three of them
  object,      // in JSON alone
};

struct Value {
  Json of;
  bool in_json = true, in_table = true;
};
template <typename T>
Value value_of(T&& of) {
  if constexpr (std::is_same_v<std::remove_cvref_t<T>, Value>)
    return std::forward<T>(of);
  else
    return {Json(std::forward<T>(of))};
}
// Left out where it is not known; left out of the table alone.
template <typename T>
Value known_if(bool known, T&& value) {
  return {Json(std::forward<T>(value)), known, known};
}
template <typename T>
Value shown_if(bool shown, T&& value) {
  return {Json(std::forward<T>(value)), true, shown};
}
// Nothing, 0 and an empty text are unknown, or not shown.
inline constexpr auto if_any = [](const auto& of) {
  return known_if(of != std::remove_cvref_t<decltype(of)>(), of);
};
inline constexpr auto shown_if_any = [](std::uint64_t of) { return shown_if(of, of); };

inline std::uint64_t number_of(const Durations& times) { return times.count(); }
inline Value total_of(const Durations& times) { return shown_if(times.count(), times.total()); }
inline Value mean_of(const Durations& times) { return known_if(times.count(), times.mean()); }
inline Value min_of(const Durations& times) { return known_if(times.count(), times.min()); }
inline Value p50_of(const Durations& times) { return known_if(times.count(), times.quantile(0.5)); }
inline Value p95_of(const Durations& times) {
  return known_if(times.count(), times.quantile(0.95));
}
inline Value p99_of(const Durations& times) {
  return known_if(times.count(), times.quantile(0.99));
}
inline Value max_of(const Durations& times) { return known_if(times.count(), times.max()); }
// As an object; where nothing was timed, without all but its count and total.
enum class Means : std::uint8_t { none, mean, mean_and_min };
Json times_json(const Durations& times, Means means = Means::none);

// Follows the steps from a row: each takes what the one before it gives.
template <auto Step, auto... Next>
decltype(auto) step_by_step(const auto& from) {
  if constexpr (sizeof...(Next) == 0)
    return std::invoke(Step, from);
  else
    return step_by_step<Next...>(std::invoke(Step, from));
}
template <auto... Steps>
inline constexpr auto its = [](const auto& row) { return step_by_step<Steps...>(row); };

// In JSON and in a table; null: it is not there. A key with a dot, as "gpu.total_us", is within an
// object that another column gives. A table's other form may spare other columns.
struct In {
  const char* key;
  const char* title = nullptr;
  unsigned spare = 0, spare_in_other = spare;  // as in Table::Column
};
// In the page of `report`: from left to right, from 1; 0: it is not there.
struct OnPage {
  unsigned place = 0;
  const char* title = nullptr;
  unsigned looks = 0;
};
enum : unsigned { WIDE = 1, BAR = 2, IF_KNOWN = 4 };  // looks; IF_KNOWN: if any row has a value

struct NoContext {};

template <typename Row, typename Context = NoContext>
struct Column {
  // `Get` makes a value of a row, or of a row and its context, and captures nothing.
  template <typename Get>
  constexpr Column(In names, As format, Get, OnPage where = {})
      : in(names), as(format), value(&value_by<Get>), on_page(where) {}
  // For the page alone: shows what another column has in JSON.
  constexpr Column(In names, As format, OnPage where) : in(names), as(format), on_page(where) {}

  In in;
  As as;
  Value (*value)(const Row&, const Context&) = nullptr;
  OnPage on_page;

 private:
  template <typename Get>
  static Value value_by([[maybe_unused]] const Row& row, [[maybe_unused]] const Context& context) {
    if constexpr (std::is_invocable_v<Get, const Row&>)
      return value_of(Get()(row));
    else
      return value_of(Get()(row, context));
  }
};

bool is_key_of_row(const char* key);
Json in_json(As as, Value&& value);
std::string cell_of(As as, const Value& value, const Page& page);
Json page_column(const char* key, As as, const OnPage& on_page);

template <typename Row, typename Context = NoContext>
Json json_of(const Row& row, std::type_identity_t<std::span<const Column<Row, Context>>> columns,
             const Context& context = {}) {
  Json json = Json::object();
  for (const auto& column : columns)
    if (is_key_of_row(column.in.key))
      if (Value value = column.value(row, context); value.in_json)
        json[column.in.key] = in_json(column.as, std::move(value));
  return json;
}

template <typename Rows, typename Columns, typename Context = NoContext>
Json list_of(const Rows& rows, const Columns& columns, const Context& context = {}) {
  Json json = Json::array();
  for (const auto& row : rows) json.push_back(json_of(row, columns, context));
  return json;
}

template <typename Columns>
Table table_of(std::string title, const Columns& columns, std::size_t name_room = 26,
               bool in_other_form = false) {
  std::vector<Table::Column> titles;
  for (const auto& [in, as, value, on_page] : columns)
    if (in.title)
      titles.push_back({in.title, in_other_form ? in.spare_in_other : in.spare, as == As::text});
  return {std::move(title), std::move(titles), name_room};
}

// Makes the cells of a row of that table.
template <typename Row, typename Context, std::size_t N>
auto cells_in(const Column<Row, Context> (&columns)[N], const Page& page,
              const std::type_identity_t<Context>& context = {}) {
  return [&columns, &page, context](const Row& row) {
    std::vector<std::string> cells;
    for (const auto& column : columns)
      if (column.in.title) cells.push_back(cell_of(column.as, column.value(row, context), page));
    return cells;
  };
}

template <typename Columns>
Json page_columns(const Columns& columns) {
  std::map<unsigned, Json> placed;
  for (const auto& [in, as, value, on_page] : columns)
    if (on_page.place) placed[on_page.place] = page_column(in.key, as, on_page);
  Json json = Json::array();
  for (auto& [place, column] : placed) json.push_back(std::move(column));
  return json;
}

}  // namespace cudabpf::analyze
