#include "replay/contents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "replay/layout.hpp"
#include "util/console/terminal.hpp"
#include "util/demangle/demangle.hpp"
#include "util/saturating.hpp"

namespace cudabpf::replay {

namespace {

void add_copy(const bundle::Copy& copy, Contents& sums) {
  Amount& amount = !copy.to.address ? sums.to_host : !copy.from.address ? sums.to_gpu : sums.within;
  amount.add(copy.rows.width * copy.rows.height * copy.rows.depth);
}

void add_step(const Step& step, Contents& sums) {
  if (step.launch) sums.launches++;
  if (step.copy) add_copy(*step.copy, sums);
  if (step.set) sums.fills.add(step.set->rows.width * step.set->rows.height * step.set->rows.depth);
  if (step.action == Action::alloc) sums.allocations++;
  if (step.action == Action::free) sums.frees++;
  sums.waits += step.action == Action::wait || step.action == Action::await ||
                step.action == Action::sync || step.action == Action::drain;
}

std::uint64_t pages_in(const std::vector<bundle::PageRun>& runs) {
  std::uint64_t pages = 0;
  for (const bundle::PageRun& run : runs) pages += run.first ? run.pages : 0;
  return pages;
}

std::vector<Skipped> refused_in(const Manifest& manifest, const Tape& tape) {
  std::map<std::pair<std::string, std::string>, Skipped> all;
  for (const Step& step : tape.steps()) {
    std::string why = refusal_of(step, manifest);
    if (why.empty()) continue;
    std::string what = step.launch
                           ? short_name(demangle(manifest.kernels[step.launch->kernel].name))
                           : std::string(bundle::ACTIONS[static_cast<std::size_t>(step.action)]);
    Skipped& known =
        all.try_emplace({what, why}, Skipped{what, why, 0, step.operation->call}).first->second;
    known.count++;
  }
  std::vector<Skipped> list;
  list.reserve(all.size());
  for (auto& [key, one] : all) list.push_back(std::move(one));
  for (const bundle::Refused& one : manifest.refused)
    list.push_back({one.what, one.why, one.count, 0});
  return list;
}

}  // namespace

Contents contents_of(const Manifest& manifest, const Tape& tape) {
  Contents sums;
  for (const Step& step : tape.steps()) add_step(step, sums);
  sums.graph_launches = tape.graph_launches();
  for (const bundle::Block& block : manifest.blocks) {
    Amount& amount = sums.blocks[static_cast<std::size_t>(block.kind)];
    amount.count++;
    amount.bytes = saturating_sum(amount.bytes, block.size);
  }
  sums.pages_before = pages_in(manifest.before);
  sums.pages_after = pages_in(manifest.after);
  for (const bundle::Image& image : manifest.images)
    sums.image_bytes = saturating_sum(sums.image_bytes, image.size);
  sums.refused = refused_in(manifest, tape);
  return sums;
}

std::vector<std::string> against(const Manifest& manifest, const Gpu& gpu) {
  std::vector<std::string> reasons;
  const bundle::Device& captured = manifest.devices.front();
  bool has_ptx = std::any_of(manifest.images.begin(), manifest.images.end(), [](const auto& image) {
    return image.kind == bundle::ImageKind::ptx;
  });
  if (captured.major != gpu.major || captured.minor > gpu.minor)
    reasons.push_back(fmt::format(
        "its code is for compute capability {}.{}{}, and {} has {}.{}", captured.major,
        captured.minor, has_ptx ? ", but for that in PTX" : "", gpu.name, gpu.major, gpu.minor));
  std::uint64_t memory = 0;
  for (const bundle::Block& block : manifest.blocks)
    if (!bundle::is_on_host(block.kind)) memory = saturating_sum(memory, block.size);
  if (memory > gpu.memory)
    reasons.push_back(fmt::format("its memory is {}, and that of {} is {}", human_bytes(memory),
                                  gpu.name, human_bytes(gpu.memory)));
  if (reasons.empty() && captured.name != gpu.name)
    reasons.push_back(fmt::format("it runs on {}, but was captured on {}: its times mean nothing",
                                  gpu.name, captured.name));
  return reasons;
}

}  // namespace cudabpf::replay
