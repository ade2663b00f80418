#include "sink/warnings.hpp"

#include <fmt/format.h>

#include "cudabpf/cuda_api.hpp"
#include "util/console/log.hpp"

namespace cudabpf {

bool Warnings::is_new(const std::string& reason) {
  constexpr std::size_t MAX = 16;
  return said_.size() < MAX && said_.insert(reason).second;
}

void Warnings::gpu_times(const GpuTimes& times) {
  if (!times.why_not.empty() && is_new(times.why_not))
    log::warning("process {} has no GPU times: {}", times.pid, times.why_not);
}

void Warnings::python(const PythonFound& found) {
  if (!found.why_not.empty() && is_new(found.why_not))
    log::warning("calls of process {} have no lines: {}", found.pid, found.why_not);
}

// Libraries that no figure counts are in the trace, and at the end of every answer.
void Warnings::library(const Library& library) {
  constexpr std::size_t SHOWN = 3;
  std::size_t counted = 0;
  std::string text;
  for (const std::string& one : library.unpatched) {
    const Function* function = find_function(std::string_view(one).substr(0, one.find(' ')));
    if (function && function->meaning.counted != CountedAs::none && counted++ < SHOWN)
      text += (text.empty() ? "" : ", ") + one;
  }
  if (counted > SHOWN) text += fmt::format(" and {} more", counted - SHOWN);
  if (counted && is_new(text))
    log::warning("calls of these functions cannot be recorded inside the process: {}", text);
}

}  // namespace cudabpf
