#include "analyze/columns.hpp"

#include <fmt/format.h>

namespace cudabpf::analyze {

namespace {

// In the order of `As`.
constexpr std::string_view NAMES[] = {"text",    "word",       "count",  "figure", "number",
                                      "time",    "timed",      "moment", "begin",  "bytes",
                                      "percent", "dimensions", "object"};

std::string dimensions_text(const Dimensions& of) {
  if (!of[0]) return "";
  std::string text = std::to_string(of[0]);
  if (of[1] != 1 || of[2] != 1) text += fmt::format("×{}", of[1]);
  if (of[2] != 1) text += fmt::format("×{}", of[2]);
  return text;
}

}  // namespace

Json times_json(const Durations& times, Means means) {
  Json json = {{"count", times.count()}, {"total_us", microseconds(times.total())}};
  if (!times.count()) return json;
  if (means != Means::none) json["mean_us"] = microseconds(times.mean());
  if (means == Means::mean_and_min) json["min_us"] = microseconds(times.min());
  json["p50_us"] = microseconds(times.quantile(0.5));
  json["p99_us"] = microseconds(times.quantile(0.99));
  json["max_us"] = microseconds(times.max());
  return json;
}

bool is_key_of_row(const char* key) {
  return key && std::string_view(key).find('.') == std::string_view::npos;
}

Json in_json(As as, Value&& value) {
  bool is_time = as == As::time || as == As::timed || as == As::begin;
  if (is_time && value.of.is_number()) return microseconds(value.of.get<std::uint64_t>());
  return std::move(value.of);
}

std::string cell_of(As as, const Value& value, const Page& page) {
  if (!value.in_table || value.of.is_null()) return as == As::timed ? "-" : "";
  auto number = [&] { return value.of.get<std::uint64_t>(); };
  switch (as) {
    case As::text:
    case As::word:
      return value.of.get<std::string>();
    case As::count:
      return human_count(number());
    case As::figure:
      return figure_or_blank(number());
    case As::number:
      return value.of.dump();  // a device's may be negative
    case As::time:
    case As::timed:
      return human_time(number());
    case As::moment:
    case As::begin:
      return page.at(number());
    case As::bytes:
      return human_bytes(number());
    case As::percent:
      return fmt::format("{:.1f} %", value.of.get<double>());
    case As::dimensions:
      return dimensions_text(value.of.get<Dimensions>());
    case As::object:
      break;
  }
  return {};
}

Json page_column(const char* key, As as, const OnPage& on_page) {
  Json json = {{"key", key}, {"title", on_page.title}, {"as", NAMES[static_cast<std::size_t>(as)]}};
  if (on_page.looks & WIDE) json["wide"] = true;
  if (on_page.looks & BAR) json["bar"] = true;
  if (on_page.looks & IF_KNOWN) json["if_known"] = true;
  return json;
}

}  // namespace cudabpf::analyze
