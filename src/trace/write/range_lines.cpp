#include "trace/write/range_lines.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "util/text/json_writer.hpp"

namespace cudabpf {

namespace {

void put_payload(json::Writer& out, const NamedRange& range) {
  switch (range.payload_is) {
    case NamedRange::Payload::none:
      return;
    case NamedRange::Payload::whole:
      return out.number("payload", range.payload);
    case NamedRange::Payload::signed_whole:
      return out.signed_number("payload", static_cast<std::int64_t>(range.payload));
    case NamedRange::Payload::real: {
      auto value = std::bit_cast<double>(range.payload);
      // JSON has no infinity.
      return std::isfinite(value) ? out.raw("payload", fmt::format("{}", value))
                                  : out.null("payload");
    }
  }
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
  put_payload(out, range);
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
