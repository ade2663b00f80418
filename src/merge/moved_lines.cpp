#include "merge/moved_lines.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "merge/one_time.hpp"
#include "trace/read/line_parser.hpp"
#include "trace/write/line_text.hpp"
#include "util/text/json_text.hpp"
#include "util/whole_number.hpp"

namespace cudabpf::merge {

namespace ondemand = simdjson::ondemand;

struct MovedLines::Json {
  ondemand::parser parser;
};

namespace {

constexpr std::uint64_t MAX_NUMBERS = std::uint64_t{1} << 52;
constexpr std::uint32_t MAX_TIDS =
    std::numeric_limits<std::uint32_t>::max() - MAX_HOSTS * PIDS_OF_HOST;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
  return text;
}

// As it is written: up to the quote that ends it, which is there, since it was read.
std::string_view key_at(const char* raw) {
  std::size_t size = 0;
  while (raw[size] != '"') size += raw[size] == '\\' ? 2 : 1;
  return {raw, size};
}

// As it is written. Empty: it is not JSON.
std::string_view text_of(ondemand::value value) {
  std::string_view text;
  ondemand::json_type type;
  if (value.type().get(type)) return {};
  if (type == ondemand::json_type::object) {
    ondemand::object object;
    if (value.get_object().get(object) || object.raw_json().get(text)) return {};
  } else if (type == ondemand::json_type::array) {
    ondemand::array array;
    if (value.get_array().get(array) || array.raw_json().get(text)) return {};
  } else {
    text = value.raw_json_token();
  }
  return trimmed(text);
}

}  // namespace

MovedLines::MovedLines(To to, std::uint64_t& given)
    : to_(std::move(to)), calls_(given), json_(std::make_unique<Json>()) {
  if (!to_.host.empty()) end_ = uncut_line_of({{"host", to_.host}}).substr(1);
}
MovedLines::~MovedLines() = default;

bool MovedLines::admits(const analyze::Line& line) {
  if (line.end() > LATEST_TS || line.pid >= PIDS_OF_HOST || line.ppid >= PIDS_OF_HOST ||
      line.tid > MAX_TIDS || line.graph > MAX_NUMBERS || line.communicator > MAX_NUMBERS ||
      line.call_group > MAX_NUMBERS || line.range > MAX_NUMBERS || line.in_range > MAX_NUMBERS ||
      line.stack > MAX_NUMBERS)
    return false;
  for (std::uint64_t id : {line.id, line.parent, line.within, line.call})
    if (!calls_.add(id)) return false;
  return admits_named_calls(line);
}

// The calls that only these lines name.
bool MovedLines::admits_named_calls(const analyze::Line& line) {
  if (line.kind != analyze::LineKind::graph && line.kind != analyze::LineKind::communicator)
    return true;
  auto json = parsed(line.text);
  if (auto id = number_in<std::uint64_t>(json, "made_by"); id && !calls_.add(*id)) return false;
  if (auto from = number_in<std::uint64_t>(json, "from"); from && *from > MAX_NUMBERS) return false;
  return std::ranges::all_of(std::array{"collectives", "products"}, [&](const char* kind) {
    const auto* list = list_in(json, kind);
    return !list || std::ranges::all_of(*list, [this](const auto& id) {
      return id.is_number_unsigned() && calls_.add(id.template get<std::uint64_t>());
    });
  });
}

// The members of lines that are about a trace's own time and numbers, or its host's.
std::optional<MovedLines::Means> MovedLines::means_of(std::string_view key) {
  static constexpr std::pair<std::string_view, Means> MOVED[] = {
      {"ts", Means::time},
      {"since", Means::time},
      {"until", Means::time},
      {"resident_from", Means::time},
      {"resident_to", Means::time},
      {"id", Means::call},
      {"parent", Means::call},
      {"within", Means::call},
      {"call", Means::call},
      {"made_by", Means::call},
      {"collectives", Means::calls},
      {"products", Means::calls},
      {"graph", Means::number},
      {"communicator", Means::number},
      {"range", Means::number},
      {"in_range", Means::number},
      {"stack", Means::number},
      {"from", Means::number},
      {"call_group", Means::number},
      {"pid", Means::process},
      {"tid", Means::process},
      {"ppid", Means::parent},
      {"device", Means::device},
      {"src_device", Means::device},
      {"dst_device", Means::device},
      {"gpu", Means::device},
      {"processes", Means::processes},
      {"residents", Means::processes},
  };
  for (const auto& [name, means] : MOVED)
    if (name == key) return means;
  return std::nullopt;
}

void MovedLines::append(const analyze::Line& line, std::string& out) {
  out += '{';
  ondemand::document document;
  ondemand::object object;
  std::size_t padded = line.text.size() + analyze::LineParser::PADDING;
  if (!json_->parser.iterate(line.text.data(), line.text.size(), padded).get(document) &&
      !document.get_object().get(object))
    for (auto result : object) {
      if (result.error()) break;  // the line was read, so this is not reached
      ondemand::field& field = result.value_unsafe();
      std::string_view key = key_at(field.key().raw());
      std::string_view value = text_of(field.value());
      if (key == "host" || value.empty()) continue;
      out.append("\"").append(key).append("\":");
      if (auto means = means_of(key))
        member(*means, value, out);
      else
        out += value;
      out += ',';
    }
  if (end_.empty() && out.back() == ',') out.pop_back();
  out += end_.empty() ? "}\n" : end_;
}

void MovedLines::member(Means means, std::string_view value, std::string& out) {
  if (means == Means::processes) return processes(value, out);
  if (means == Means::calls) return calls(value, out);
  auto number = whole_number<std::uint64_t>(value);
  if (!number || *number > LATEST_TS) {
    out += value;
    return;
  }
  switch (means) {
    case Means::time:
      *number += to_.offset_ns;
      break;
    case Means::call:
      *number = calls_.of(*number);
      break;
    case Means::number:
      *number = *number * to_.traces + to_.index;
      break;
    case Means::parent:  // 0: it has none that is visible
      if (*number) *number += std::uint64_t{to_.numbers.host} * PIDS_OF_HOST;
      break;
    case Means::process:
      *number += std::uint64_t{to_.numbers.host} * PIDS_OF_HOST;
      break;
    case Means::device:
      *number = static_cast<std::uint64_t>(to_.numbers.device(static_cast<std::int64_t>(*number)));
      break;
    case Means::calls:
    case Means::processes:
      break;
  }
  fmt::format_to(std::back_inserter(out), "{}", *number);
}

void MovedLines::calls(std::string_view list, std::string& out) {
  constexpr std::string_view DIGITS = "0123456789";
  for (std::size_t at = 0; at < list.size();) {
    std::size_t end = std::min(list.find_first_not_of(DIGITS, at), list.size());
    if (end > at)
      member(Means::call, list.substr(at, end - at), out);
    else
      out += list[end++];
    at = end;
  }
}

// The processes that a sample of a GPU names: their pids are those of its host.
void MovedLines::processes(std::string_view list, std::string& out) {
  constexpr std::string_view PID = "\"pid\"", BETWEEN = " \t\r\n:", DIGITS = "0123456789";
  if (!to_.numbers.host) {
    out += list;
    return;
  }
  std::size_t at = 0;
  for (std::size_t key = 0; (key = list.find(PID, at)) != list.npos;) {
    std::size_t begin = std::min(list.find_first_not_of(BETWEEN, key + PID.size()), list.size());
    std::size_t end = std::min(list.find_first_not_of(DIGITS, begin), list.size());
    out += list.substr(at, begin - at);
    if (begin < end) member(Means::process, list.substr(begin, end - begin), out);
    at = end;
  }
  out += list.substr(at);
}

}  // namespace cudabpf::merge
