#include "analyze/analysis.hpp"

#include <fmt/format.h>

namespace cudabpf::analyze {

Result<> analyze(TraceReader& reader, std::initializer_list<Analysis*> analyses) {
  while (const Line* line = TRY(reader.next()))
    for (Analysis* analysis : analyses) show(*line, reader.facts().part, *analysis);
  for (Analysis* analysis : analyses) analysis->finish(reader.facts());
  return ok();
}

std::string process_name(std::uint32_t pid, std::string_view comm) {
  return fmt::format("process {}{}{}", pid, comm.empty() ? "" : " ", comm);
}

std::string hexadecimal(std::uint64_t number) { return fmt::format("{:#x}", number); }
double microseconds(std::uint64_t ns) { return static_cast<double>(ns) / 1000; }

std::string seconds(std::uint64_t ns) { return Moments().at(ns); }

double share(std::uint64_t part, std::uint64_t whole) {
  return whole ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  return fmt::format("{:.1f} %", share(part, whole));
}

}  // namespace cudabpf::analyze
