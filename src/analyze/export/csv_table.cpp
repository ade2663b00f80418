#include "analyze/export/csv_table.hpp"

#include <algorithm>
#include <charconv>
#include <string>

#include "util/page/page.hpp"

namespace cudabpf::analyze {

namespace {

// A column's name is the field's; times are in nanoseconds.
namespace column {

std::string whole(std::string_view key) { return std::string(key); }
constexpr auto address = whole, dimensions = whole;
std::string nanoseconds(std::string_view key) { return std::string(key) + "_ns"; }
std::string microseconds(std::string_view key) {
  return nanoseconds(key.substr(0, key.size() - std::string_view("_us").size()));
}

}  // namespace column

// Expands to its arguments for the fields that line_fields.def shows.
#define COLUMN_nowhere(...)
#define COLUMN_column(...) __VA_ARGS__
#define COLUMN_detail(...) __VA_ARGS__
#define COLUMN_unusual(...) __VA_ARGS__

bool is_row(LineKind kind) {
  return is_of_thread(kind) || is_of_gpu(kind) || kind == LineKind::interrupt ||
         kind == LineKind::gpu_error || kind == LineKind::gpu_sample || kind == LineKind::lost;
}

}  // namespace

CsvTable::CsvTable(const Names& names, ByteStream& out) : names_(names), out_(out) {
#define NUMBER(key, member, type, read, shown) \
  COLUMN_##shown(out_.text(column::read(#key)), next();)
#define NAME(key, member, shown) COLUMN_##shown(out_.text(#key), next();)
#define FLAG(key, member, shown) COLUMN_##shown(out_.text(#key), next();)
#define DERIVED(key, member, shown) COLUMN_##shown(out_.text(#key), next();)
#include "trace/read/line_fields.def"
  out_.text("args\n");
}

void CsvTable::line(const Line& line) {
  if (!is_row(line.kind)) return;
  if (line.kind != LineKind::lost && line.kind != LineKind::gpu_sample) return row(line);
  Line shown = line;
  if (line.kind == LineKind::lost)
    shown.name = line.reason;
  else
    shown.args = line.text;  // a column for each figure would be empty in all other rows
  row(shown);
}

void CsvTable::row(const Line& line) {
#define NUMBER(key, member, type, read, shown) \
  COLUMN_##shown(if (line.has(Field::member)) read(line.member); next();)
#define NAME(key, member, shown) COLUMN_##shown(name(line.member); next();)
#define FLAG(key, member, shown) COLUMN_##shown(if (line.member) out_.text("true"); next();)
#define DERIVED(key, member, shown) COLUMN_##shown(text(line.member()); next();)
#include "trace/read/line_fields.def"
  text(line.args);
  out_.text("\n");
}

// Control characters would break lines in two, or reach a terminal: each becomes "?".
void CsvTable::text(std::string_view text) {
  bool plain = std::all_of(text.begin(), text.end(),
                           [](char c) { return c >= ' ' && c < 0x7f && c != ',' && c != '"'; });
  if (plain) return out_.text(text);
  std::string clean = printable(std::string(text));
  char* at = out_.room(2 + 2 * clean.size());
  *at++ = '"';
  for (char c : clean) {
    if (c == '"') *at++ = '"';
    *at++ = c;
  }
  *at++ = '"';
  out_.wrote(at);
}

void CsvTable::address(std::uint64_t value) {
  out_.text("0x");
  constexpr std::size_t DIGITS = 16;
  char* at = out_.room(DIGITS);
  out_.wrote(std::to_chars(at, at + DIGITS, value, 16).ptr);
}

void CsvTable::dimensions(const Dimensions& sizes) {
  for (std::size_t i = 0; i < sizes.size(); i++) {
    if (i) out_.text("x");
    out_.number(sizes[i]);
  }
}

}  // namespace cudabpf::analyze
