#include "replay/layout.hpp"

#include <algorithm>

namespace cudabpf::replay {

namespace {

constexpr std::uint64_t HOST_PAGE = 4096;

std::vector<Range> live_at_end(const Manifest& manifest, const Tape& tape) {
  std::vector<Range> live;
  for (const bundle::Block& block : manifest.blocks)
    if (!bundle::is_on_host(block.kind)) live.push_back(range_of(block));
  live = merged(std::move(live));
  std::vector<Range> made;
  for (const bundle::Operation& operation : tape.operations()) {
    if (!operation.memory || bundle::is_on_host(operation.memory->kind)) continue;
    Range range = range_of(*operation.memory);
    if (operation.action == Action::alloc) made.push_back(range);
    if (operation.action != Action::free) continue;
    live = without(live, range);
    std::erase_if(made, [&](const Range& one) { return range.has(one); });
  }
  live.insert(live.end(), made.begin(), made.end());
  return merged(std::move(live));
}

// Takes those of the ranges that have addresses in reserved units, and reserves units for all of
// them: each may bring others with it.
std::vector<Range> take_what_lies_between(std::vector<Range>& reserved,
                                          std::vector<Range>& ranges) {
  std::vector<Range> taken;
  for (std::size_t before = 1; before != 0;) {
    auto is_between = [&](const Range& range) { return !parts_in(reserved, range).empty(); };
    auto rest = std::partition(ranges.begin(), ranges.end(),
                               [&](const Range& range) { return !is_between(range); });
    before = static_cast<std::size_t>(ranges.end() - rest);
    taken.insert(taken.end(), rest, ranges.end());
    ranges.erase(rest, ranges.end());
    std::vector<Range> all = reserved;
    all.insert(all.end(), taken.begin(), taken.end());
    reserved = rounded(all, RESERVED_UNIT);
  }
  return taken;
}

}  // namespace

Layout layout_of(const Manifest& manifest, const Tape& tape) {
  std::vector<Range> device, host, unsettled;
  auto add = [&](const bundle::Block& block) {
    (bundle::is_on_host(block.kind) ? host : device).push_back(range_of(block));
  };
  for (const bundle::Block& block : manifest.blocks) add(block);
  for (const bundle::Operation& operation : tape.operations()) {
    if (!operation.memory) continue;
    if (operation.action == Action::alloc) add(*operation.memory);
    unsettled.push_back(range_of(*operation.memory));
  }
  Layout layout;
  layout.device = rounded(device, PAGE);
  layout.reserved = rounded(device, RESERVED_UNIT);
  std::vector<Range> between = take_what_lies_between(layout.reserved, host);
  for (const Range& page : rounded(between, PAGE)) {
    std::vector<Range> own{page};  // a page that has both is the GPU's
    for (const Range& taken : parts_in(layout.device, page)) own = without(own, taken);
    layout.pinned.insert(layout.pinned.end(), own.begin(), own.end());
  }
  device = layout.device;
  device.insert(device.end(), layout.pinned.begin(), layout.pinned.end());
  layout.device = merged(std::move(device));
  layout.host = rounded(host, HOST_PAGE);
  layout.at_end = live_at_end(manifest, tape);
  layout.unsettled = rounded(unsettled, PAGE);
  return layout;
}

std::optional<PageContents::Content> PageContents::at(std::uint64_t address) const {
  auto behind = std::partition_point(runs_->begin(), runs_->end(), [=](const bundle::PageRun& run) {
    return run.address.value <= address;
  });
  if (behind == runs_->begin()) return std::nullopt;
  const bundle::PageRun& run = *std::prev(behind);
  std::uint64_t number = (address - run.address.value) / PAGE;
  if (number >= run.pages) return std::nullopt;
  if (!run.first) return Content{};
  return Content{*run.first + static_cast<std::uint32_t>(number)};
}

std::optional<PageContents::Content> content_after(const Manifest& manifest,
                                                   std::uint64_t address) {
  auto after = PageContents(manifest.after).at(address);
  return after ? after : PageContents(manifest.before).at(address);
}

}  // namespace cudabpf::replay
