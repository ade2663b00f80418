// Traces come from other machines, and the names in them from any program: no file may make the
// reader crash, hang, use too much memory, lose a line silently, or report what is not there.
//
// The input: a byte that says what to do with the rest. 0: give each line alone to the parser; 1:
// files of a rotated trace, with a byte 0x1e between them; 2: lines after a header, which must read
// the same plain and compressed; 3: likewise, across the end of a block.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/trace_reader.hpp"
#include "memory_file.hpp"
#include "mutate_lines.hpp"
#include "trace/files/frames.hpp"
#include "trace/read/line_parser.hpp"
#include "util/saturating.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

constexpr std::size_t BLOCK = std::size_t{1} << 20;  // as TraceSource reads them

void require(bool holds) {
  if (!holds) abort();
}

// If JSON without escapes has a value for a field, the line must have the same.
void check_values(const Line& line) {
  if (line.text.find('\\') != line.text.npos) return;
  auto json = nlohmann::json::parse(line.text, nullptr, false);
  if (!json.is_object()) return;
  auto same = [&](const char* key, Field field, std::uint64_t value) {
    auto at = json.find(key);
    if (at == json.end()) {
      require(!line.has(field));
    } else if (at->is_number_unsigned()) {
      require(line.has(field) && *at == value);
    }
  };
  same("id", Field::id, line.id);
  same("ts", Field::ts, line.ts);
  if (line.kind != LineKind::interrupt) same("pid", Field::pid, line.pid);
  same("size", Field::size, line.size);
  auto args = json.find("args");
  if (args != json.end() && args->is_object())
    require(nlohmann::json::parse(line.args, nullptr, false) == *args);
}

void check(const Line& line, const Names& names) {
  if (!line.args.empty()) {
    require(line.args.data() >= line.text.data() &&
            line.args.data() + line.args.size() <= line.text.data() + line.text.size());
    require(line.args.front() == '{' && line.args.back() == '}');
  }
  for (Name name : {line.type, line.op, line.name, line.symbol, line.error, line.memory,
                    line.kernel, line.device_file, line.control, line.object_class, line.group,
                    line.status, line.comm, line.reason, line.severity})
    require(name.id < names.size());
  require((line.kind == LineKind::call) == line.has(Field::id));
  bool of_process = line.kind == LineKind::call || line.kind == LineKind::driver ||
                    line.kind == LineKind::process || line.kind == LineKind::communicator;
  require(!line.process || of_process);
  require(line.kind != LineKind::interrupt || !line.pid);
  for (auto [value, field] : {std::pair{line.duration, Field::duration},
                              {line.ptr, Field::ptr},
                              {line.stream, Field::stream},
                              {line.count, Field::count}})
    require(line.has(field) || !value);
  check_values(line);
}

bool alike(const Line& a, const Line& b) {
  return a.number == b.number && a.text == b.text && a.kind == b.kind && a.name == b.name &&
         a.kernel == b.kernel && a.present == b.present && a.id == b.id && a.ts == b.ts &&
         a.duration == b.duration && a.grid == b.grid && a.args == b.args;
}

void parse_lines(std::string_view text) {
  LineParser parser;
  while (!text.empty()) {
    std::string_view one = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    // In separate memory, so that a read beyond its padding is detected. The contents of the
    // padding must not matter.
    std::vector<char> bytes(one.begin(), one.end());
    // The second time its names are known, the fourth it is compared with what it was before.
    constexpr int TIMES = 4;
    Line lines[TIMES];
    bool good[TIMES];
    for (int time = 0; time < TIMES; time++) {
      bytes.resize(one.size());
      bytes.push_back('\n');
      bytes.resize(one.size() + LineParser::PADDING, time % 2 ? '"' : '}');
      bytes.shrink_to_fit();
      good[time] = parser.parse({bytes.data(), one.size()}, lines[time]);
      if (good[time]) check(lines[time], parser.names());
      lines[time].text = lines[time].args = {};
    }
    for (int time = 1; time < TIMES; time++) {
      require(good[0] == good[time]);
      if (good[0]) require(alike(lines[0], lines[time]));
    }
  }
}

struct Read {
  bool refused = false;
  std::vector<std::uint64_t> numbers, ids;  // of the lines that could be read
  std::vector<std::string> texts;
  TraceFacts facts;
};

Read read(const std::vector<std::string>& paths) {
  Read read;
  auto reader = TraceReader::open(paths);
  while (reader) {
    auto line = (*reader)->next();
    if (!line) {  // a later file is not a trace's
      require(!line.error().message.empty() && paths.size() > 1);
      read.refused = true;
      break;
    }
    if (!*line) break;
    check(**line, (*reader)->names());
    // A trace begins with a header, which says who wrote its files.
    if (read.numbers.empty()) require((*line)->kind == LineKind::header);
    read.numbers.push_back((*line)->number);
    read.ids.push_back((*line)->id);
    read.texts.emplace_back((*line)->text);
  }
  if (!reader) {
    require(!reader.error().message.empty());
    read.refused = true;
    return read;
  }
  const TraceFacts& facts = read.facts = (*reader)->facts();
  // A merge also has what its traces lacked.
  std::uint64_t malformed_before = 0;
  std::size_t cut_off_before = 0;
  for (const MergedTrace& one : facts.header.merged) {
    malformed_before = saturating_sum(malformed_before, one.malformed);
    cut_off_before += one.cut_off.size();
  }
  require(facts.malformed >= malformed_before);
  require(facts.lines == read.texts.size() + (facts.malformed - malformed_before) ||
          facts.malformed == std::numeric_limits<std::uint64_t>::max());
  require(facts.first_malformed.size() <= facts.malformed);
  require(facts.first_malformed.empty() == (facts.malformed == 0));
  require(facts.unknown <= read.texts.size() &&
          facts.cut_off.size() <= paths.size() + cut_off_before);
  return read;
}

void read_files(std::string_view bytes) {
  std::vector<MemoryFile> files;
  std::vector<std::string> paths;
  do {
    std::string_view one = bytes.substr(0, bytes.find('\x1e'));
    bytes.remove_prefix(std::min(bytes.size(), one.size() + 1));
    files.emplace_back(one);
    paths.push_back(files.back().path());
  } while (!bytes.empty() && files.size() < 4);
  read(paths);
}

// Every line that is not empty was read or counted as bad, or is the half line that the file ends
// with.
void check_complete(const Read& read, std::string_view text) {
  std::uint64_t number = 0, lines = 0;
  std::size_t at = 0;
  bool half = false;
  while (!text.empty()) {
    number++;
    std::string_view one = text.substr(0, text.find('\n'));
    half = one.size() == text.size() && !one.empty();
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    lines += !one.empty();
    if (at < read.numbers.size() && read.numbers[at] == number) require(read.texts[at++] == one);
  }
  require(at == read.numbers.size());
  require(read.facts.lines == lines || (half && read.facts.lines == lines - 1));
  require(read.facts.lines == lines || read.facts.cut_off.size() == 1);
}

void read_alike(std::string_view bytes, bool across) {
  const std::string header = R"({"type":"trace","format":"cudabpf-trace","format_version":"2.0"})"
                             "\n";
  std::string text = std::string(header).append(bytes);
  Read plain = read({MemoryFile(text).path()});
  require(!plain.refused);
  check_complete(plain, text);

  std::string other = header;
  if (across) other += std::string(BLOCK - 64 - bytes.size() / 2, 'x') + "\n";  // a bad line
  other.append(bytes);
  Read again = read({MemoryFile(across ? other : Frames::frame_of(other)).path()});
  for (std::size_t i = 1; across && i < again.numbers.size(); i++) again.numbers[i]--;
  require(again.texts == plain.texts && again.ids == plain.ids && again.numbers == plain.numbers);
  require(again.facts.malformed == plain.facts.malformed + across);
  require(again.facts.cut_off.size() == plain.facts.cut_off.size());
}

}  // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t at_most);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t at_most,
                                          unsigned seed) {
  if (seed % 2) return LLVMFuzzerMutate(data, size, at_most);
  size_t mutated = fuzz::mutate_lines(data, size, at_most, 1, seed);
  return mutated ? mutated : LLVMFuzzerMutate(data, size, at_most);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (!size) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      parse_lines(bytes);
      break;
    case 1:
      read_files(bytes);
      break;
    default:
      read_alike(bytes, data[0] % 4 == 3);
  }
  return 0;
}
