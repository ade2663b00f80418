#include "collect/function_numbers.hpp"

namespace cudabpf {

std::optional<FunctionNumbers::Numbered> FunctionNumbers::number(ApiId api,
                                                                 std::string_view symbol) {
  constexpr std::size_t NUMBERS = 1 << 16;
  auto table = cuda_functions();
  if (const Function* known = find_function(symbol))
    return Numbered{static_cast<std::uint16_t>(known - table.data()), known};
  std::lock_guard lock(mutex_);
  auto known = by_symbol_.find(symbol);
  if (known != by_symbol_.end())
    return Numbered{known->second, &unknown_[known->second - table.size()].function};
  std::size_t id = table.size() + unknown_.size();
  if (id >= NUMBERS) return std::nullopt;
  Unknown& added = unknown_.emplace_back();
  added.symbol = symbol;
  added.function = unknown_function(api, added.symbol);
  by_symbol_.emplace(added.symbol, static_cast<std::uint16_t>(id));
  return Numbered{static_cast<std::uint16_t>(id), &added.function};
}

const Function* FunctionNumbers::find(std::uint16_t id) const {
  auto table = cuda_functions();
  if (id < table.size()) return &table[id];
  std::lock_guard lock(mutex_);
  std::size_t at = id - table.size();
  return at < unknown_.size() ? &unknown_[at].function : nullptr;
}

}  // namespace cudabpf
