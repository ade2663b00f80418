// Traces that are merged come from several machines, and any of them may be hostile: no file may
// make the merge crash, hang, use too much memory, mix up hosts, or write a line that cannot be
// read or that no trace has.
//
// The input: traces, with a byte 0x1e between them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/trace_reader.hpp"
#include "memory_file.hpp"
#include "merge/merger.hpp"
#include "mutate_lines.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

namespace {

void require(bool holds) {
  if (!holds) abort();
}

std::string text_of(merge::Merger& merger) {
  std::string text;
  for (;;) {
    auto more = merger.next(text);
    require(static_cast<bool>(more));  // the files do not change
    if (!*more) return text;
  }
}

void check(const std::string& text, const merge::Merger& merger) {
  auto reader = TraceReader::open({MemoryFile(text).path()});
  require(static_cast<bool>(reader));
  std::map<std::string, std::uint32_t, std::less<>> hosts;
  std::uint64_t malformed = 0, calls = 0, read = 0;
  for (const MergedTrace& one : merger.traces()) {
    hosts[one.host] = one.number;
    malformed += one.malformed;
    calls += one.calls;
  }
  for (;;) {
    auto line = (*reader)->next();
    require(static_cast<bool>(line));
    if (!*line) break;
    const Line& one = **line;
    read++;
    if (one.kind == LineKind::header || one.kind == LineKind::end) continue;
    require(static_cast<bool>(one.host) == (hosts.size() > 1));
    auto host = hosts.find((*reader)->names().text(one.host));
    require(hosts.size() == 1 || host != hosts.end());
    std::uint32_t number = hosts.size() > 1 ? host->second : 0;
    require(!one.has(Field::pid) || one.pid / PIDS_OF_HOST == number);
  }
  const TraceFacts& facts = (*reader)->facts();
  // A line may be broken behind all that a reader needs of it. In the merge, its host stands there.
  require(facts.malformed >= malformed);
  std::uint64_t broken = facts.malformed - malformed;
  require(facts.lines == merger.lines() && read + broken == facts.lines);
  require(facts.calls <= calls && facts.calls + broken >= calls);
  require(facts.end && facts.end->totals.calls == calls && facts.end->lines == merger.lines());
}

}  // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t at_most);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t at_most,
                                          unsigned seed) {
  if (seed % 2) return LLVMFuzzerMutate(data, size, at_most);
  size_t mutated = fuzz::mutate_lines(data, size, at_most, 0, seed);
  return mutated ? mutated : LLVMFuzzerMutate(data, size, at_most);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::vector<MemoryFile> files;
  std::vector<merge::Files> traces;
  do {
    std::string_view one = bytes.substr(0, bytes.find('\x1e'));
    bytes.remove_prefix(std::min(bytes.size(), one.size() + 1));
    files.emplace_back(one);
    traces.push_back({files.back().path()});
  } while (!bytes.empty() && files.size() < 4);
  auto merger = merge::Merger::open(traces, [] { return TraceReader::Progress(); });
  if (!merger)
    require(!merger.error().message.empty());
  else
    check(text_of(**merger), **merger);
  return 0;
}
