#include "state/gpu_figures.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "util/limited.hpp"
#include "util/page/table.hpp"

namespace cudabpf {

namespace {

void raise(std::optional<double>& most, const std::optional<double>& value) {
  if (value) most = std::max(most.value_or(*value), *value);
}

std::string cell(const std::optional<double>& value, const char* unit) {
  return value ? fmt::format("{:.0f} {}", *value, unit) : "-";
}

std::vector<std::string> cells_of(const GpuFigures& figures) {
  auto busy = figures.sm_active.mean(), energy = figures.energy();
  std::string throttled = "-";
  if (figures.throttle_read)
    throttled = fmt::format("{:.0f} %", 100.0 * static_cast<double>(figures.throttled) /
                                            static_cast<double>(figures.throttle_read));
  return {busy ? fmt::format("{:.1f} %", *busy) : "-",
          cell(figures.power.mean(), "W"),
          cell(figures.most_power, "W"),
          energy ? human_energy(*energy) : "-",
          figures.most_memory ? human_bytes(static_cast<std::uint64_t>(*figures.most_memory)) : "-",
          cell(figures.most_temperature, "°C"),
          throttled};
}

void add_residents(Table& table, const GpusFigures& figures, std::uint32_t device,
                   const GpuResidence& residence) {
  constexpr std::size_t SHOWN = 8;
  std::string prefix = figures.gpus().size() > 1 ? fmt::format("GPU {}: ", device) : "";
  auto row = [&](const std::string& name, std::uint64_t ns) {
    double share = 100.0 * static_cast<double>(ns) / static_cast<double>(residence.time());
    if (ns) table.row(prefix + name, {human_time(ns), fmt::format("{:.1f} %", share)});
  };
  auto processes = residence.processes();
  std::size_t shown = processes.size() <= SHOWN + 1 ? processes.size() : SHOWN;
  std::uint64_t rest = 0;
  for (std::size_t i = 0; i < processes.size(); i++) {
    auto [pid, ns] = processes[i];
    if (i >= shown)
      rest += ns;
    else if (pid)
      row(fmt::format("{} {}", pid, figures.name_of(pid)), ns);
    else
      row("(without a pid)", ns);
  }
  row(fmt::format("{} more processes", processes.size() - shown), rest);
  row("no process", residence.no_process());
  row("(not known)", residence.unknown());
}

}  // namespace

bool is_throttled(std::uint64_t reasons) {
  return std::any_of(THROTTLES.begin(), THROTTLES.end(), [&](const ThrottleName& throttle) {
    return reasons & static_cast<std::uint64_t>(throttle.reason);
  });
}

void GpuFigures::add(const GpuSample& sample) {
  device = sample.device;
  samples++;
  if (sample.sm_active && sample.window_ns)
    sm_active.add(*sample.sm_active, static_cast<double>(*sample.window_ns));
  if (sample.utilization) utilization.add(*sample.utilization, 1);
  if (sample.power_w) power.add(*sample.power_w, 1);
  raise(most_power, sample.power_w);
  raise(most_memory, sample.memory_used);
  raise(most_temperature, sample.temperature_c);
  if (sample.energy_j) {
    counter_went_back |= last_energy && (*sample.energy_j < last_energy->joules);
    last_energy = {sample.ts, *sample.energy_j};
    if (!first_energy) first_energy = last_energy;
  }
  throttle_read += sample.throttle.has_value();
  throttled += sample.throttle && is_throttled(*sample.throttle);
  if (sample.residents) residence.add(*sample.residents);
}

std::optional<double> GpuFigures::energy() const {
  if (!first_energy || counter_went_back || last_energy->ts <= first_energy->ts)
    return std::nullopt;
  return last_energy->joules - first_energy->joules;
}

void GpusFigures::add(const GpuSample& sample) {
  if (has_room_for(gpus_, sample.device, MAX_GPUS)) gpus_[sample.device].add(sample);
}

void GpusFigures::named(std::uint32_t pid, std::string_view comm) {
  if (has_room_for(names_, pid, MAX_NAMES)) names_[pid] = comm;
}

std::string_view GpusFigures::name_of(std::uint32_t pid) const {
  auto found = names_.find(pid);
  return found == names_.end() ? std::string_view() : found->second;
}

void add_gpus(Page& page, const GpusFigures& figures, std::size_t at_most) {
  if (figures.gpus().empty()) return;
  Table table("GPUs (NVML)", {{"SM activity"},
                              {"power"},
                              {"at most", 1},
                              {"energy"},
                              {"memory", 2},
                              {"hottest", 3},
                              {"throttled", 4}});
  std::size_t shown = 0;
  for (const auto& [device, gpu] : figures.gpus())
    if (shown++ < at_most) table.row(fmt::format("GPU {}", device), cells_of(gpu));
  table.add_to(page);
  if (shown > at_most) page.line(fmt::format("  and {} more", shown - at_most));
}

void add_residence(Page& page, const GpusFigures& figures, std::size_t at_most,
                   const std::string& why_not) {
  Table table("who had the GPU", {{"time"}, {"share"}});
  std::size_t shown = 0;
  for (const auto& [device, gpu] : figures.gpus())
    if (gpu.residence.is_known() && shown++ < at_most)
      add_residents(table, figures, device, gpu.residence);
  if (!table.empty()) table.add_to(page);
  if (why_not.empty()) return;
  page.blank();
  page.paragraph("Which processes had the GPUs was not recorded: " + why_not + ".", 0);
}

}  // namespace cudabpf
