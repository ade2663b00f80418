// What an inference engine, such as vLLM or SGLang, says of its requests on its own page of
// metrics.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cudabpf::engines {

enum class Family : std::uint8_t {
#define ENGINE_FAMILY(name, is_counter, help) name,
#include "engines/engine_metrics.def"
  count_
};
inline constexpr std::size_t FAMILIES = static_cast<std::size_t>(Family::count_);

struct FamilyInfo {
  std::string_view name;
  bool is_counter;
  std::string_view help;
};
const FamilyInfo& info(Family family);

// Ours, in the order in which they are printed.
inline constexpr std::array<std::string_view, 5> LABELS{"model", "replica", "pp_rank", "tp_rank",
                                                        "reason"};
struct Sample {
  Family family = Family::count_;
  std::string_view engine;                        // "vllm"
  std::array<std::string, LABELS.size()> labels;  // their values; empty: it has none
  double value = 0;
};

struct Figures {
  static constexpr std::size_t MAX_SAMPLES = 512;

  std::vector<Sample> samples;  // by family; no two have the same family, engine and labels
  // That ought to be here, and could not be read or found no room.
  std::size_t left_out = 0;
};

// Anybody may have written the page.
Figures figures_in(std::string_view page);

}  // namespace cudabpf::engines
