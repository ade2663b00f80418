#include "analyze/energy/sampled_gpus.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace cudabpf::analyze {

Json SampledGpus::json() const {
  Json json = Json::array();
  for (const auto& [device, gpu] : figures_.gpus())
    if (auto active = gpu.sm_active.mean())
      json.push_back({{"device", device}, {"sm_active", *active}});
  return json;
}

void SampledGpus::add_to(Page& page) const {
  constexpr std::size_t MAX = 8;
  std::string shown;
  std::size_t count = 0;
  for (const auto& [device, gpu] : figures_.gpus())
    if (auto active = gpu.sm_active.mean(); active && count++ < MAX)
      shown += fmt::format("{}GPU {}: {:.1f} %", shown.empty() ? "" : ", ", device, *active);
  if (shown.empty()) return;
  page.blank();
  page.paragraph(fmt::format("SM activity in NVML's samples, which cover all processes: {}{}.",
                             shown, count > MAX ? ", …" : ""),
                 0);
}

}  // namespace cudabpf::analyze
