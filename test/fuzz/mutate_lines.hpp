// Mutates a trace as lines with fields. Random changes of bytes seldom give a line of one kind a
// field of another, or a header another type; but such lines are what breaks readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cudabpf::fuzz {

using Field = std::pair<std::string, std::string>;  // both as written, with their quotes
using Fields = std::vector<Field>;

// The fields of an object, which may be broken; none: it is not an object at all.
inline std::optional<Fields> fields_of(std::string_view line) {
  if (!line.starts_with('{')) return std::nullopt;
  Fields fields;
  std::size_t begin = 1, colon = 0;
  int depth = 0;
  bool quoted = false;
  for (std::size_t at = 1; at < line.size(); at++) {
    char c = line[at];
    if (quoted) {
      if (c == '\\') at++;
      quoted = c != '"';
      continue;
    }
    if (c == '"') quoted = true;
    if (c == '{' || c == '[') depth++;
    if (c == ':' && !depth && !colon) colon = at;
    bool ends = !depth && (c == ',' || c == '}');
    if (c == '}' || c == ']') depth--;
    if (!ends) continue;
    if (colon)
      fields.emplace_back(line.substr(begin, colon - begin),
                          line.substr(colon + 1, at - colon - 1));
    begin = at + 1;
    colon = 0;
  }
  return fields;
}

inline std::string line_of(const Fields& fields) {
  std::string line = "{";
  for (const auto& [key, value] : fields) {
    if (line.size() > 1) line += ',';
    line.append(key).append(":").append(value);
  }
  return line + "}";
}

class LineMutator {
 public:
  LineMutator(std::string_view text, unsigned seed) : random_(seed) {
    while (!text.empty()) {
      std::string_view one = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), one.size() + 1));
      lines_.emplace_back(one);
    }
  }

  std::string mutated() {
    for (std::size_t times = 1 + below(3); times && !lines_.empty(); times--) change();
    std::string text;
    for (const std::string& line : lines_) text.append(line).append("\n");
    return text;
  }

 private:
  static constexpr std::string_view KEYS[] = {
#define NAME(key, member, shown) #key,
#define NUMBER(key, member, type, read, shown) #key,
#define FLAG(key, member, shown) #key,
#include "trace/read/line_fields.def"
      // Those that only one part of the analyses reads.
      "args",        "identity", "from",           "color",  "key",   "collectives",
      "kernel_from", "format",   "format_version", "clocks", "losses"};
  static constexpr std::string_view VALUES[] = {
      "0", "1", "-1", "4294967295", "9223372036854775807", "18446744073709551615", "0.001",
      "9000000000000.000", "null", "true", "[1,1,1]", "[]", "{}", R"("")", R"("0x0")", R"("0x10")",
      R"("0xffffffffffffffff")",
      // types and ops
      R"("trace")", R"("end")", R"("process")", R"("library")", R"("lost")", R"("error")",
      R"("kernel")", R"("interrupt")", R"("launch")", R"("memory")", R"("alloc")", R"("free")",
      R"("map")", R"("unmap")", R"("context")", R"("transfer")", R"("stream")", R"("event")",
      R"("record")", R"("destroy")", R"("stream_capture")", R"("wait_event")", R"("sync")",
      R"("ioctl")", R"("start")", R"("fork")", R"("exec")", R"("exit")",
      // names that mean something
      R"("cuCtxCreate")", R"("cuCtxDestroy")", R"("cuCtxSetCurrent")",
      R"("cuDevicePrimaryCtxRetain")", R"("cuDevicePrimaryCtxReset")", R"("cuStreamBeginCapture")",
      R"("cuStreamEndCapture")", R"("cuMemImportFromShareableHandle")",
      R"("cuMemRetainAllocationHandle")", R"("vmm")", R"("device")", R"("async")",
      R"("scheduling")", R"("collective")", R"("comm")", R"("all_reduce")", R"("end")",
      R"("group")", R"("ncclDevKernel_X")", "[1,2]", R"({"pctx":"0x10","ctx":"0x10"})",
      R"({"hEvent":"0x10","handle":"0x10"})"};

  static constexpr std::pair<std::string_view, std::string_view> KINDS[] = {
      {"trace", ""},
      {"end", ""},
      {"lost", ""},
      {"library", ""},
      {"error", ""},
      {"process", "exec"},
      {"process", "exit"},
      {"process", "start"},
      {"kernel", "interrupt"},
      {"kernel", "ioctl"},
      {"kernel", "launch"},
      {"memory", "alloc"},
      {"memory", "free"},
      {"sync", "ctx"},
      {"transfer", "DtoH"},
      {"stream", "destroy"},
      {"event", "record"},
      {"collective", "comm"},
      {"collective", "all_reduce"},
      {"group", "end"},
      {"context", ""}};

  std::size_t below(std::size_t size) { return size ? random_() % size : 0; }
  template <typename List>
  auto& one_of(List& list) {
    return list[below(std::size(list))];
  }
  // Nearly always after the header: without that, nothing is read.
  std::string& line() { return lines_[below(16) ? 1 + below(lines_.size() - 1) : 0]; }

  void change() {
    if (lines_.size() < 2) lines_.push_back(lines_[0]);
    std::string& to = line();
    switch (below(10)) {
      case 0:
        return std::swap(to, line());
      case 1:
        return void(
            lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(below(lines_.size())) + 1,
                          std::string(to)));
      case 2:
        if (&to != &lines_[0]) lines_.erase(lines_.begin() + (&to - lines_.data()));
        return;
      default:
        break;
    }
    auto fields = fields_of(to), others = fields_of(line());
    if (!fields || fields->empty()) return;
    Field& field = one_of(*fields);
    auto quoted = [](std::string_view key) { return '"' + std::string(key) + '"'; };
    switch (below(8)) {
      case 0:  // a field of another line
        if (others && !others->empty()) put(*fields, one_of(*others));
        break;
      case 1:  // any field
        put(*fields, {quoted(one_of(KEYS)), std::string(one_of(VALUES))});
        break;
      case 2:
        field.second = one_of(VALUES);
        break;
      case 3:  // the value of another field
        if (others && !others->empty()) field.second = one_of(*others).second;
        break;
      case 4:
        field.first = quoted(one_of(KEYS));
        break;
      case 5:
        fields->erase(fields->begin() + (&field - fields->data()));
        break;
      default: {  // the same line, of another kind
        const auto& [type, op] = one_of(KINDS);
        auto is = [&](std::string_view key) {
          return [key = quoted(key)](const Field& other) { return other.first == key; };
        };
        std::erase_if(*fields, is("type"));
        std::erase_if(*fields, is("op"));
        if (below(2)) std::erase_if(*fields, is("id"));
        fields->insert(fields->begin(),
                       {{quoted("type"), quoted(type)}, {quoted("op"), quoted(op)}});
        break;
      }
    }
    to = line_of(*fields);
  }

  // Replaces the field of that name, or, as a broken writer would, adds another.
  void put(Fields& fields, Field field) {
    if (below(8))
      std::erase_if(fields, [&](const Field& other) { return other.first == field.first; });
    fields.insert(fields.begin() + static_cast<std::ptrdiff_t>(below(fields.size() + 1)), field);
  }

  std::minstd_rand random_;
  std::vector<std::string> lines_;
};

// For LLVMFuzzerCustomMutator, with an input that has a few bytes before its lines. 0: the result
// did not fit.
inline std::size_t mutate_lines(std::uint8_t* data, std::size_t size, std::size_t at_most,
                                std::size_t before, unsigned seed) {
  if (size <= before) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + before, size - before);
  std::string mutated = LineMutator(text, seed).mutated();
  if (before + mutated.size() > at_most) return 0;
  std::memcpy(data + before, mutated.data(), mutated.size());
  return before + mutated.size();
}

}  // namespace cudabpf::fuzz
