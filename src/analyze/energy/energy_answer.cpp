// The answer about a run's energy.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analyze/energy/energy.hpp"
#include "util/page/table.hpp"

namespace cudabpf::analyze {

namespace {

// "3.60 J ± 0.08 J": no finer than the error is known.
std::string with_error(double joules, double error) {
  int decimals =
      error > 0 ? std::clamp(1 - static_cast<int>(std::floor(std::log10(error))), 0, 6) : 2;
  if (joules >= 100) return fmt::format("{} ± {}", human_energy(joules), human_energy(error));
  return fmt::format("{:.{}f} J ± {:.{}f} J", joules, decimals, error, decimals);
}

// What an idle GPU would not have used; negative where it used less than when it was measured idle.
double above_idle(const EnergyUsed& used, const IdlePower::Found& idle) {
  return used.joules - idle.watts * used.seconds();
}

Json energy_stretch_json(const Energy::Stretch& stretch, const Energy::OfGpu& gpu) {
  Json json = {{"name", stretch.name},
               {"begin_us", microseconds(stretch.begin)},
               {"end_us", microseconds(stretch.end)}};
  const EnergyUsed& used = stretch.used;
  if (!used.known()) {
    json["why_not"] = used.why_not;
    return json;
  }
  json["window_us"] = {microseconds(used.from), microseconds(used.to)};
  json["energy_j"] = used.joules;
  json["error_j"] = used.error;
  json["mean_power_w"] = used.watts();
  if (gpu.idle) json["above_idle_j"] = above_idle(used, *gpu.idle);
  return json;
}

Json classes_json(const Energy::OfGpu& gpu) {
  if (!gpu.classes) return gpu.no_classes.empty() ? Json() : Json({{"why_not", gpu.no_classes}});
  const ModelledEnergy& model = *gpu.classes;
  Json json = {{"model", "time on the GPU x sampled power above idle"},
               {"window_us", {microseconds(model.from), microseconds(model.to)}},
               {"above_idle_j", model.above_idle()},
               {"nothing_ran_j", model.unshared},
               {"classes", Json::array()}};
  for (std::size_t i = 0; i < ENERGY_SHARERS; i++)
    if (model.shares[i].time)
      json["classes"].push_back({{"class", name_of_sharer(i)},
                                 {"gpu_time_us", microseconds(model.shares[i].time)},
                                 {"shared_time_us", microseconds(model.shares[i].shared_time)},
                                 {"energy_j", model.shares[i].joules}});
  return json;
}

Json gpu_energy_json(const Energy::OfGpu& gpu) {
  Json json = {
      {"device", gpu.device}, {"name", gpu.name}, {"all", energy_stretch_json(gpu.whole, gpu)}};
  json["phases"] = Json::array();
  for (const auto& phase : gpu.phases) json["phases"].push_back(energy_stretch_json(phase, gpu));
  json["iterations"] = nullptr;
  if (gpu.iterations) {
    Json& of = json["iterations"] = energy_stretch_json(*gpu.iterations, gpu);
    if (gpu.iterations->used.known()) {
      of["count"] = gpu.iterations->count;
      of["each_j"] = gpu.iterations->used.joules / gpu.iterations->count;
      of["each_error_j"] = gpu.iterations->used.error / gpu.iterations->count;
    }
  }
  json["idle"] = nullptr;
  if (gpu.idle)
    json["idle"] = {{"power_w", gpu.idle->watts},
                    {"window_us", {microseconds(gpu.idle->from), microseconds(gpu.idle->to)}}};
  if (gpu.pid) {
    json["process"] = energy_stretch_json(gpu.process, gpu);
    json["process"]["pid"] = *gpu.pid;
  } else {
    json["process"] = {{"why_not", gpu.no_pid}};
  }
  json["kernel_classes"] = classes_json(gpu);
  return json;
}

void add_stretch(Table& table, const Energy::Stretch& stretch, const Energy::OfGpu& gpu) {
  const EnergyUsed& used = stretch.used;
  if (!used.known()) return;
  table.row(stretch.name,
            {human_energy(used.joules), "± " + human_energy(used.error),
             fmt::format("{:.0f} W", used.watts()),
             gpu.idle ? human_energy(above_idle(used, *gpu.idle)) : "",
             human_time(used.to - used.from), human_time(stretch.end - stretch.begin)});
}

void add_energy_of_iterations(Page& page, const Energy::OfIterations& iterations) {
  if (!iterations.used.known()) return;
  double count = iterations.count;
  page.paragraph(
      fmt::format("An iteration used {}, averaged over {} iterations, pauses included; that is "
                  "joules per token if an iteration makes one token.",
                  with_error(iterations.used.joules / count, iterations.used.error / count),
                  with_commas(static_cast<std::uint64_t>(std::llround(count)))),
      2);
}

// Most phases of a run are too short: they share a sentence.
void add_why_not(Page& page, const std::vector<const Energy::Stretch*>& stretches) {
  std::string shorter;
  for (const Energy::Stretch* stretch : stretches) {
    if (stretch->used.known()) continue;
    double seconds = static_cast<double>(stretch->end - stretch->begin) / 1e9;
    if (seconds < EnergyReadings::SHORTEST_SECONDS)
      shorter += (shorter.empty() ? "" : ", ") + stretch->name;
    else
      page.paragraph(fmt::format("No figure for {}: {}.", stretch->name, stretch->used.why_not), 2);
  }
  if (!shorter.empty())
    page.paragraph(fmt::format("Shorter than 1 s, so no figure: {}.", shorter), 2);
}

void add_idle_power(Page& page, const Energy::OfGpu& gpu, bool energy_shown) {
  if (gpu.idle)
    page.paragraph(fmt::format("Idle, this GPU used {:.0f} W: the least mean of a second without "
                               "activity, at {}.",
                               gpu.idle->watts, page.at(gpu.idle->from)),
                   2);
  else
    page.paragraph(fmt::format("No second without activity was sampled, so what the GPU uses when "
                               "it is idle is not known{}.",
                               energy_shown ? "; the energy shown includes it" : ""),
                   2);
}

void add_sole_process(Page& page, const Energy::OfGpu& gpu) {
  if (!gpu.pid)
    page.paragraph(fmt::format("No figure by process: {}.", gpu.no_pid), 2);
  else if (!gpu.process.used.known())
    page.paragraph(fmt::format("Process {} alone had the GPU, but there is no figure: {}.",
                               *gpu.pid, gpu.process.used.why_not),
                   2);
  else
    page.paragraph(
        fmt::format(
            "As far as NVML shows, only process {} had the GPU; while it did, the GPU used {}.",
            *gpu.pid, human_energy(gpu.process.used.joules)),
        2);
}

void add_classes(Page& page, const Energy::OfGpu& gpu) {
  if (!gpu.no_classes.empty())
    page.paragraph(fmt::format("No figure by class of kernel: {}.", gpu.no_classes), 2);
  if (!gpu.classes) return;
  const ModelledEnergy& model = *gpu.classes;
  const double all = model.above_idle();
  auto share = [&](double joules) {
    return all > 0 ? fmt::format("{:.1f} %", 100 * joules / all) : "";
  };
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < ENERGY_SHARERS; i++)
    if (model.shares[i].time) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return model.shares[a].joules > model.shares[b].joules;
  });
  Table table("energy by class, a model", {{"energy"}, {"share"}, {"GPU time"}, {"mean power", 1}});
  for (std::size_t i : order) {
    const ModelledEnergy::Share& of = model.shares[i];
    double seconds = static_cast<double>(of.shared_time) / 1e9;
    bool is_long = seconds >= EnergyReadings::STEP_SECONDS, has_share = of.shared_time > 0;
    table.row(std::string(name_of_sharer(i)),
              {has_share ? human_energy(of.joules) : "", has_share ? share(of.joules) : "",
               human_time(of.time), is_long ? fmt::format("{:.0f} W", of.joules / seconds) : ""});
  }
  table.row("while hardly anything ran",
            {human_energy(model.unshared), share(model.unshared), "", ""});
  table.add_to(page);
  page.paragraph(
      fmt::format(
          "The model divides {} above idle, from samples of power over {}: energy used between two "
          "samples is divided among what ran then, by how long each ran, if together they took at "
          "least a twentieth of that time. No counter measures one kernel's energy.",
          human_energy(all), human_time(model.to - model.from)),
      2);
}

void add_gpu_energy(Page& page, const Energy::OfGpu& gpu) {
  std::string name = fmt::format("GPU {}{}{}", gpu.device, gpu.name.empty() ? "" : ", ", gpu.name);
  Table table(
      name,
      {{"energy"}, {"error"}, {"mean power"}, {"above idle", 1}, {"read over", 2}, {"of", 2}});
  std::vector<const Energy::Stretch*> stretches{&gpu.whole};
  for (const auto& phase : gpu.phases) stretches.push_back(&phase);
  if (gpu.iterations) stretches.push_back(&*gpu.iterations);
  for (const Energy::Stretch* stretch : stretches) add_stretch(table, *stretch, gpu);
  if (table.empty()) {
    if (!page.empty()) page.blank();
    page.heading(name);
  } else {
    table.add_to(page);
  }
  add_why_not(page, stretches);
  if (gpu.iterations) add_energy_of_iterations(page, *gpu.iterations);
  add_idle_power(page, gpu, !table.empty());
  add_sole_process(page, gpu);
  add_classes(page, gpu);
}

}  // namespace

Json energy_json(const Energy& energy) {
  Json report = Json::object();
  if (!energy.why_not().empty()) report["why_not"] = energy.why_not();
  report["step_s"] = EnergyReadings::STEP_SECONDS;
  report["shortest_window_s"] = EnergyReadings::SHORTEST_SECONDS;
  report["gpus"] = Json::array();
  for (const Energy::OfGpu& gpu : energy.gpus()) report["gpus"].push_back(gpu_energy_json(gpu));
  return {{"gpu_energy_report", report}};
}

void add_energy(Page& page, const Energy& energy) {
  if (!energy.why_not().empty())
    return page.paragraph(fmt::format("No energy data: {}.", energy.why_not()), 0);
  for (const Energy::OfGpu& gpu : energy.gpus()) add_gpu_energy(page, gpu);
}

}  // namespace cudabpf::analyze
