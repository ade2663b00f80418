#include "replay/gpu/end_state.hpp"

#include <algorithm>
#include <utility>

namespace cudabpf::replay {

namespace {

// A quarter of the host's memory: of each page there are its bytes, and how they changed.
std::size_t most_pages_kept() { return host_memory() / 4 / (2 * PAGE); }

bool is_equal(std::string_view a, std::string_view b, std::uint64_t page,
              const std::vector<Range>& parts) {
  return std::all_of(parts.begin(), parts.end(), [&](const Range& part) {
    return a.substr(part.begin - page, part.size()) == b.substr(part.begin - page, part.size());
  });
}

}  // namespace

template <typename Work>
Result<> EndState::for_each_page(Work work) {
  const Layout& layout = memory_->layout();
  for (const Range& range : layout.device)
    for (std::uint64_t address = range.begin; address < range.end; address += PAGE) {
      auto parts = parts_in(layout.at_end, {address, address + PAGE});
      if (!parts.empty()) TRY(work(address, parts, content_after(folder_->manifest(), address)));
    }
  return ok();
}

Result<std::string> EndState::expected(const PageContents::Content& content) {
  if (!content.page) return std::string(PAGE, '\0');
  return folder_->page(*content.page);
}

Result<std::string> EndState::variable(const GpuCode::Variable& variable) {
  std::string bytes(variable.captured->before ? variable.captured->before->size : 0, '\0');
  if (!bytes.empty()) TRY(driver_->copy_to_host(bytes.data(), variable.at, bytes.size()));
  return bytes;
}

// `add(runs, bytes)` is called for what is known of the page already, and for what is not as
// expected.
template <typename Add>
Result<> EndState::add_memory(Add add) {
  PageContents before(folder_->manifest().before);
  return for_each_page([&](std::uint64_t address, const auto& parts, auto content) -> Result<> {
    if (!content) return ok();
    std::string_view left = TRY(memory_->page(address));
    if (auto known = pages_.find(address); known != pages_.end()) {
      add(known->second, left);
      return ok();
    }
    std::string wanted = TRY(expected(*content));
    if (is_equal(left, wanted, address, parts)) return ok();
    Runs runs(is_first_ ? left : wanted, before.at(address).has_value());
    add(runs, left);
    if (pages_.size() < most_pages_kept())
      pages_.emplace(address, std::move(runs));
    else if (not_kept_.insert(address).second)
      compare_page(runs, address, parts, wanted, of_not_kept_);
    return ok();
  });
}

template <typename Add>
Result<> EndState::add(Add add) {
  TRY(add_memory(add));
  for (std::size_t i = 0; i < code_->variables().size(); i++) {
    std::string bytes = TRY(variable(code_->variables()[i]));
    if (is_first_) variables_.emplace_back(bytes, true);
    add(variables_[i], bytes);
  }
  if (is_first_) received_.emplace(player_->received(), true);
  add(*received_, player_->received());
  is_first_ = false;
  return ok();
}

Result<> EndState::add_run() {
  return add([](Runs& runs, std::string_view bytes) { runs.add(bytes); });
}

Result<> EndState::judge() {
  return add([](Runs& runs, std::string_view bytes) { runs.judge(bytes); });
}

void EndState::compare_page(const Runs& runs, std::uint64_t address,
                            const std::vector<Range>& parts, std::string_view wanted,
                            Comparison& sums) const {
  for (const Range& part : parts) {
    std::size_t begin = part.begin - address;
    runs.compare(begin, wanted.substr(begin, part.size()), "memory", part.begin, sums.memory,
                 sums.differences);
  }
}

Result<> EndState::compare_memory(Comparison& sums) {
  sums = of_not_kept_;
  return for_each_page([&](std::uint64_t address, const auto& parts, auto content) -> Result<> {
    if (!content) sums.unknown += size_of(parts);
    if (!content || not_kept_.contains(address)) return ok();
    auto kept = pages_.find(address);
    if (kept != pages_.end()) {
      compare_page(kept->second, address, parts, TRY(expected(*content)), sums);
    } else {
      sums.memory.compared += size_of(parts);
      sums.memory.equal += size_of(parts);
    }
    return ok();
  });
}

void EndState::compare_variables(Comparison& sums) const {
  for (std::size_t i = 0; i < variables_.size(); i++) {
    const bundle::Variable& captured = *code_->variables()[i].captured;
    const auto& extent = captured.after ? captured.after : captured.before;
    if (captured.before && extent)
      variables_[i].compare(0, player_->data().substr(extent->offset, extent->size),
                            "variable " + captured.name, 0, sums.variables, sums.differences);
  }
}

void EndState::compare_copies(Comparison& sums) const {
  for (const Player::Received& copy : player_->copies_to_host())
    if (!player_->skipped_steps().contains(copy.step))
      received_->compare(copy.at, player_->data().substr(copy.expected.offset, copy.expected.size),
                         player_->description(copy.step), 0, sums.copies, sums.differences);
}

Result<Comparison> EndState::compare() {
  Comparison sums;
  TRY(compare_memory(sums));
  compare_variables(sums);
  compare_copies(sums);
  return sums;
}

}  // namespace cudabpf::replay
