// An analysis sees every line of a trace once, and has an answer afterwards. Lines come in the
// order in which calls ended; memory must not grow with their number.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <initializer_list>

#include "analyze/trace_reader.hpp"
#include "cudabpf/event.hpp"
#include "trace/read/line.hpp"
#include "util/page/page.hpp"

namespace cudabpf::analyze {

using Json = nlohmann::ordered_json;

class Analysis {
 public:
  virtual ~Analysis() = default;
  virtual void line(const Line& line) = 0;
  // A line outside of the part that is wanted. It is in no figure, but says how things stand in the
  // part: what memory is held, what is pending.
  virtual void outside(const Line&) {}
  virtual void finish(const TraceFacts&) {}
};

// Shows the line to the analysis, as one of the part that is wanted or one outside of it.
inline void show(const Line& line, const Part& part, Analysis& analysis) {
  part.has(line) ? analysis.line(line) : analysis.outside(line);
}
// Shows every line to each analysis.
Result<> analyze(TraceReader& reader, std::initializer_list<Analysis*> analyses);

// What every answer says about its trace: when and where it was taken, which part of it is shown,
// whether anything is missing from it.
Json facts_json(const TraceFacts& facts);
// "2026-11-21 14:03:22 UTC on HOST, NVIDIA H200, driver 580.159.04"; after INCOMPLETE, if it is.
// "2 × NVIDIA H200"; empty: the header names none.
std::string gpus_in(const TraceHeader& header);
std::string heading_of(const TraceFacts& facts, const Moments& moments);
// That heading, then the part and, in short, what is missing.
void add_heading(Page& page, const TraceFacts& facts);
void add_facts(Page& page, const TraceFacts& facts);

// "process 657 python3"; without its name where that is not known.
std::string process_name(std::uint32_t pid, std::string_view comm);
// "0x7f2a40000000", as traces write addresses.
std::string hexadecimal(std::uint64_t number);
// Microseconds, as traces write durations.
double microseconds(std::uint64_t ns);
// "10.652314 s" since the trace began, as precise as --from takes it.
std::string seconds(std::uint64_t ns);
double share(std::uint64_t part, std::uint64_t whole);  // in percent; 0 if `whole` is 0
std::string percent(std::uint64_t part, std::uint64_t whole);

}  // namespace cudabpf::analyze
