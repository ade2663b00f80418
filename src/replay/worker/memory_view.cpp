#include "replay/worker/memory_view.hpp"

#include <algorithm>
#include <cstring>

#include "replay/export/granules.hpp"

namespace cudabpf::replay {

Range range_of(const GpuCode::Variable& variable) { return range_of(*variable.captured); }

Result<> MemoryView::read(const Range& range, char* to) const {
  progress_->beat();
  if (!range.size()) return ok();
  if (is_on_host(range)) {
    std::memcpy(to, at_host(range.begin), range.size());
    return ok();
  }
  return driver_->copy_to_host(to, code_->here(range.begin, range.size()), range.size());
}

Result<std::string> MemoryView::read(const Range& range) const {
  std::string bytes(range.size(), '\0');
  TRY(read(range, bytes.data()));
  return bytes;
}

Result<> MemoryView::write(const Range& range, std::string_view bytes) const {
  progress_->beat();
  if (!range.size()) return ok();
  if (is_on_host(range)) {
    std::memcpy(at_host(range.begin), bytes.data(), range.size());
    return ok();
  }
  return driver_->copy_to_device(code_->here(range.begin, range.size()), bytes.data(),
                                 range.size());
}

std::vector<Range> MemoryView::spaces() const {
  std::vector<Range> all;
  for (const GpuCode::Variable& variable : code_->variables()) all.push_back(range_of(variable));
  const Layout& layout = memory_->layout();
  all.insert(all.end(), layout.host.begin(), layout.host.end());
  all.insert(all.end(), layout.device.begin(), layout.device.end());
  return all;
}

Result<MemoryView::Fingerprints> MemoryView::fingerprints() const {
  Fingerprints all;
  std::string bytes;
  for (const Range& space : spaces()) {
    bool is_device = have(memory_->layout().device, space) && space.begin % PAGE == 0;
    for (std::uint64_t at = space.begin; at < space.end; at += PAGE) {
      Range piece{at, std::min(at + PAGE, space.end)};
      std::string_view page;
      if (is_device) {
        page = TRY(memory_->page(at));
      } else {
        bytes = TRY(read(piece));
        page = bytes;
      }
      for (std::size_t i = 0; i < piece.size(); i += GRANULE)
        all.push_back(fingerprint_of(page.substr(i, std::min(GRANULE, piece.size() - i))));
    }
  }
  return all;
}

std::vector<Range> MemoryView::changes(const Fingerprints& before,
                                       const Fingerprints& after) const {
  std::vector<Range> all;
  std::size_t number = 0;
  for (const Range& space : spaces())
    for (std::uint64_t at = space.begin; at < space.end; at += GRANULE, number++)
      if (before[number] != after[number]) all.push_back({at, std::min(at + GRANULE, space.end)});
  return merged(std::move(all));
}

}  // namespace cudabpf::replay
