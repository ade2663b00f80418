// Figures of an interval as `cudabpf top` writes them.
#pragma once

#include <cstdint>
#include <string>

#include "sink/top/top_model.hpp"

namespace cudabpf {

double seconds_of(const TopInterval& interval);
// "12,345", "1.20 M": a second, never longer than 7 characters.
std::string rate_text(std::uint64_t count, double seconds);
std::string brief_count(std::uint64_t count);
// The share of the time, in percent: "640.0", as the times of threads are added up.
std::string percent_text(std::uint64_t ns, double seconds);

struct CopiedBytes {
  std::uint64_t count = 0, bytes = 0;
};
CopiedBytes copied_to_gpu(const TopFigures& figures);
CopiedBytes copied_from_gpu(const TopFigures& figures);
// "3.00 MiB" of memory that it holds or held; "?": it may hold some from before it was watched.
std::string held_text(const TopProcess& process, std::uint64_t bytes);
// "pod 8f2c…", or the first 12 digits of a container's id.
std::string place_of(const TopProcess& process);

}  // namespace cudabpf
