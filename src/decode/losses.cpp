#include "cudabpf/event.hpp"

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

}  // namespace cudabpf
