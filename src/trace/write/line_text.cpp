#include "trace/write/line_text.hpp"

#include <nlohmann/json.hpp>

#include "util/text/json.hpp"

namespace cudabpf {

namespace {

// Text comes from traced programs and may be megabytes long. A line holds at most this much of one
// text, and of all texts in a list, because readers refuse lines that are too long.
constexpr std::size_t MAX_TEXT = 4096, MAX_LIST = 64 << 10;
constexpr const char* CUT = "…";

bool cut_text(std::string& text, std::size_t most) {
  if (text.size() <= most) return false;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) most--;
  text.resize(most);
  text += CUT;
  return true;
}

// True if any was cut.
bool cut_texts(LineFields& value) {
  bool cut = false;
  if (value.is_string()) return cut_text(value.get_ref<std::string&>(), MAX_TEXT);
  if (value.is_array()) {
    std::size_t size = 0;
    for (auto at = value.begin(); at != value.end(); ++at) {
      if (!at->is_string()) continue;
      size += at->get_ref<const std::string&>().size() + 1;
      if (size <= MAX_LIST) continue;
      value.erase(at, value.end());
      value.push_back(CUT);
      cut = true;
      break;
    }
  }
  if (value.is_structured())
    for (auto& part : value) cut |= cut_texts(part);
  return cut;
}

}  // namespace

// Text need not even be UTF-8.
std::string uncut_line_of(const LineFields& fields) {
  return json::without_invisible(
             fields.dump(-1, ' ', false, LineFields::error_handler_t::replace)) +
         "\n";
}

std::string line_of(LineFields fields) {
  if (cut_texts(fields)) fields["text_cut"] = true;
  return uncut_line_of(fields);
}

void set_unless_empty(LineFields& object, const char* key, const std::string& text) {
  if (!text.empty()) object[key] = text;
}

LineFields library_fields(const Library& library) {
  LineFields fields = LineFields::object();
  if (!library.api.empty()) fields["library"] = library.api;
  fields["path"] = library.path;
  set_unless_empty(fields, "build_id", library.build_id);
  fields["fs_device"] = library.device;
  fields["inode"] = library.inode;
  fields["functions"] = library.functions;
  fields["skipped"] = library.skipped;
  fields["unknown"] = library.unknown;
  if (library.left_out) fields["left_out"] = library.left_out;
  if (!library.unpatched.empty()) fields["unpatched"] = library.unpatched;
  if (library.attach_ns) fields["attach_us"] = library.attach_ns / 1000;
  set_unless_empty(fields, "error", library.error);
  return fields;
}

LineFields clock_error_fields(const ClockError& error) {
  return {{"offset_ns", error.offset_ns},
          {"max_error_us", error.max_error_us},
          {"estimated_error_us", error.estimated_error_us},
          {"status", error.status}};
}

LineFields rank_fields(const RankVariables& rank) {
  LineFields fields = LineFields::object();
  for (const auto& [name, value] : rank) fields[std::string(name)] = value;
  return fields;
}

LineFields accounts_fields(const Accounts& accounts) {
  return {{"entered", accounts.entered},
          {"emitted", accounts.emitted},
          {"dropped", accounts.dropped},
          {"received", accounts.received}};
}

}  // namespace cudabpf
