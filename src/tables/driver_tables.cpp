#include "cudabpf/driver_tables.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace cudabpf {

namespace {

// A number with a text: a status, an Xid.
struct TextRow {
  std::uint32_t number;
  std::string_view text;
};

constexpr std::uint16_t LAST = std::numeric_limits<std::uint16_t>::max();
constexpr DriverVersion ALWAYS = {LAST, LAST, LAST};
#include "driver_tables.inc"

template <class Row>
std::span<const Row> rows_of(std::span<const Row> table, std::uint32_t number) {
  auto first = std::lower_bound(
      table.begin(), table.end(), number,
      [](const Row& row, std::uint32_t wanted) { return row.named.number < wanted; });
  auto last =
      std::find_if(first, table.end(), [&](const Row& row) { return row.named.number != number; });
  return {first, last};
}

std::string_view text_of(std::span<const TextRow> table, std::uint32_t number) {
  auto at = std::lower_bound(
      table.begin(), table.end(), number,
      [](const TextRow& row, std::uint32_t wanted) { return row.number < wanted; });
  return at != table.end() && at->number == number ? at->text : std::string_view{};
}

constexpr std::string_view GROUP_NAMES[] = {"scheduling", "channel", "memory", "event",
                                            "peer",       "query",   "power",  "other"};
static_assert(std::size(GROUP_NAMES) == DRIVER_GROUPS);

}  // namespace

DriverVersion DriverVersion::parse(std::string_view text) {
  std::uint16_t parts[3] = {};
  const char* at = text.data();
  const char* end = at + text.size();
  for (std::uint16_t& part : parts) {
    auto [next, error] = std::from_chars(at, end, part);
    if (error != std::errc{}) return {};
    at = next;
    if (at == end) return {parts[0], parts[1], parts[2]};
    if (*at++ != '.') return {};
  }
  return {};  // more parts than a version has
}

std::string_view to_string(DriverGroup group) {
  return GROUP_NAMES[static_cast<std::size_t>(group)];
}

std::span<const IoctlRow> escape_rows(std::uint32_t number) {
  return rows_of<IoctlRow>(ESCAPES, number);
}

std::span<const IoctlRow> uvm_rows(std::uint32_t number) { return rows_of<IoctlRow>(UVM, number); }

std::span<const ControlRow> control_rows(std::uint32_t number) {
  return rows_of<ControlRow>(CONTROLS, number);
}

std::span<const ClassRow> class_rows(std::uint32_t number) {
  return rows_of<ClassRow>(CLASSES, number);
}

std::string_view driver_status_name(std::uint32_t status) { return text_of(STATUS, status); }

std::string_view xid_meaning(std::uint32_t xid) { return text_of(XID, xid); }

}  // namespace cudabpf
