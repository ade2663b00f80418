#include "trace/write/range_lines.hpp"

#include <fmt/format.h>

#include <cmath>
#include <concepts>

#include "util/text/json_writer.hpp"

namespace cudabpf {

namespace {

void put_payload(json::Writer& out, const decltype(NamedRange::payload)& payload) {
  std::visit(
      [&]<typename Value>(const Value& value) {
        if constexpr (std::same_as<Value, std::uint64_t>)
          out.number("payload", value);
        else if constexpr (std::same_as<Value, std::int64_t>)
          out.signed_number("payload", value);
        else if constexpr (std::same_as<Value, double>)  // JSON has no infinity
          std::isfinite(value) ? out.raw("payload", fmt::format("{}", value)) : out.null("payload");
      },
      payload);
}

}  // namespace

std::string range_line(const NamedRange& range) {
  json::Writer out;
  out.text("type", "range");
  out.text("op", to_string(range.op));
  range.name_known ? out.text("label", range.name) : out.null("label");
  out.number("ts", range.ts);
  if (range.has_end) out.microseconds("duration_us", range.duration);
  out.number("pid", range.pid);
  out.number("tid", range.tid);
  if (range.path) out.number("range", range.path->number);
  if (!range.domain.empty()) out.text("domain", range.domain);
  if (!range.category.empty()) out.text("category", range.category);
  put_payload(out, range.payload);
  if (range.color) out.text("color", fmt::format("#{:08x}", range.color));
  out.flag("unfinished", range.unfinished);
  out.flag("return_lost", range.end_lost);
  out.flag("text_cut", range.name_cut);
  return std::move(out).line();
}

std::string range_name_line(const RangePath& path, std::uint64_t ts) {
  json::Writer out;
  out.text("type", "range");
  out.text("op", "name");
  out.text("label", path.name);
  out.number("ts", ts);
  out.number("range", path.number);
  if (path.around) out.number("in_range", path.around->number);
  if (!path.domain.empty()) out.text("domain", path.domain);
  return std::move(out).line();
}

}  // namespace cudabpf
