#include "analyze/products/peaks.hpp"

namespace cudabpf::analyze {

namespace {

constexpr Peaks TABLE[] = {
#define PEAK(name, ...) {name, __VA_ARGS__},
#include "analyze/products/peaks.def"
#undef PEAK
};

}  // namespace

double Peaks::of(std::string_view elements, std::string_view compute) const {
  if (elements == "float16" || elements == "bfloat16") return half;
  if (elements.starts_with("float8_e")) return fp8;
  if (elements == "int8") return int8;
  if (elements == "float64" || elements == "complex128")
    return compute.starts_with("64f") && !compute.ends_with("fixedpoint") ? fp64 : 0;
  if (elements != "float32" && elements != "complex64") return 0;
  if (compute == "32f_fast_tf32") return tf32;
  if (compute == "32f_fast_16f" || compute == "32f_fast_16bf") return half;
  return compute == "32f" || compute == "32f_pedantic" ? fp32 : 0;
}

const Peaks* peaks_of(std::string_view gpu) {
  for (const Peaks& one : TABLE) {
    if (!gpu.starts_with(one.name)) continue;
    // "NVIDIA L4" is not "NVIDIA L40".
    std::string_view rest = gpu.substr(one.name.size());
    if (rest.empty() || rest.front() == ' ' || rest.front() == '-' || one.name.ends_with('-'))
      return &one;
  }
  return nullptr;
}

}  // namespace cudabpf::analyze
