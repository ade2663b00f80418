// What a GPU can do at most: peaks.def.
#pragma once

#include <cstdint>
#include <string_view>

namespace cudabpf::analyze {

struct Peaks {
  std::string_view name;
  double fp64, fp32, tf32, half, fp8, int8;  // TFLOP/s
  double bandwidth;                          // GB/s

  // For products of such elements, added up so; 0: not known. Names as in traces.
  double of(std::string_view elements, std::string_view compute) const;
};

// Null: the table has no such GPU.
const Peaks* peaks_of(std::string_view gpu);

}  // namespace cudabpf::analyze
