// What a function's probes record, in the form that the kernel side reads.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cudabpf/abi.h"
#include "cudabpf/cuda_api.hpp"

namespace cudabpf {

struct Plan {
  abi::cb_plan plan{};              // what its probes carry
  std::vector<abi::cb_read> reads;  // at most CB_MAX_READS
};

// `id` is the function's index in the probe set.
Plan plan_for(const Function& function, std::uint16_t id);
// The plan for a symbol that the table does not know: its raw register arguments.
Plan plan_for_unknown(std::uint16_t id);
// Nothing is recorded but a few argument words.
bool is_plain(const Plan& made);

// The rows that the programs in the kernel follow. Row 0 says that there are none.
class ReadTable {
 public:
  explicit ReadTable(std::span<abi::cb_read> rows) : rows_(rows) {}
  // The first of these rows, which end with CB_READ_NOTHING; nothing if there is no room.
  std::optional<unsigned> place(std::span<const abi::cb_read> reads);

 private:
  std::span<abi::cb_read> rows_;
  std::size_t used_ = 1;
};

}  // namespace cudabpf
