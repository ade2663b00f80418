#include "cudabpf/event.hpp"

#include <algorithm>
#include <iterator>

namespace cudabpf {

namespace {
constexpr bool lost = false, degraded = true;
constexpr LossInfo INFOS[] = {
#define LOSS(id, name, severity, advice) {name, severity, advice},
#include "cudabpf/losses.def"
#undef LOSS
};
static_assert(std::size(INFOS) == LOSS_COUNT);
}  // namespace

const LossInfo& info(Loss loss) { return INFOS[static_cast<std::size_t>(loss)]; }

const LossInfo* find_loss(std::string_view name) {
  const auto* at = std::find_if(std::begin(INFOS), std::end(INFOS),
                                [&](const LossInfo& loss) { return loss.name == name; });
  return at == std::end(INFOS) ? nullptr : at;
}

}  // namespace cudabpf
