// What looks at every line of a trace, once, and has an answer afterwards. Lines stand in the order
// in which calls ended; memory must not grow with their number.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <initializer_list>

#include "analyze/trace/line.hpp"
#include "analyze/trace_reader.hpp"
#include "cudabpf/event.hpp"
#include "util/page/page.hpp"

namespace cudabpf::analyze {

using Json = nlohmann::ordered_json;

class Analysis {
 public:
  virtual ~Analysis() = default;
  virtual void line(const Line& line) = 0;
  virtual void finish(const TraceFacts&) {}
};

// Shows every line to each of them.
Result<> analyze(TraceReader& reader, std::initializer_list<Analysis*> analyses);

// What every answer says of the trace that it comes from: whether something is missing in it.
Json facts_json(const TraceFacts& facts);
void add_facts(Page& page, const TraceFacts& facts);

// ns, at ts 0; what the header does not tell is 0.
struct TraceClocks {
  std::uint64_t realtime = 0, monotonic = 0, boottime = 0;
};
TraceClocks clocks_in(std::string_view header);

// "0x7f2a40000000", as traces have addresses.
std::string hexadecimal(std::uint64_t number);
// Microseconds, as traces have durations.
double microseconds(std::uint64_t ns);
// "10.652314 s": since the trace began, as exact as --from takes it.
std::string seconds(std::uint64_t ns);
double share(std::uint64_t part, std::uint64_t whole);  // in percent; of nothing 0
std::string percent(std::uint64_t part, std::uint64_t whole);

}  // namespace cudabpf::analyze
