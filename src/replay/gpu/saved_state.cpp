#include "replay/gpu/saved_state.hpp"

#include <cstring>

namespace cudabpf::replay {

Result<bool> SavedState::prepare() {
  std::uint64_t size = size_of(memory_->layout().device);
  if (!size) return true;
  Status status = driver_->allocate.status_of(&copy_, size);
  if (status.is_out_of_memory()) return false;
  TRY(status.result());
  return true;
}

Result<> SavedState::copy(bool is_back) {
  DevicePtr at = copy_;
  for (const Range& range : memory_->layout().device) {
    TRY(driver_->copy_async(is_back ? range.begin : at, is_back ? at : range.begin, range.size(),
                            nullptr));
    at += range.size();
  }
  return driver_->synchronize();
}

Result<> SavedState::save() {
  TRY(copy(false));
  host_.clear();
  for (const Range& range : memory_->layout().host)
    host_.emplace_back(at_host(range.begin), range.size());
  variables_.clear();
  for (const GpuCode::Variable& variable : code_->variables()) {
    std::string& bytes = variables_.emplace_back(variable.captured->size, '\0');
    if (!bytes.empty()) TRY(driver_->copy_to_host(bytes.data(), variable.at, bytes.size()));
  }
  return ok();
}

Result<> SavedState::bring_back() {
  TRY(copy(true));
  for (std::size_t i = 0; i < host_.size(); i++)
    std::memcpy(at_host(memory_->layout().host[i].begin), host_[i].data(), host_[i].size());
  for (std::size_t i = 0; i < variables_.size(); i++)
    if (!variables_[i].empty())
      TRY(driver_->copy_to_device(code_->variables()[i].at, variables_[i].data(),
                                  variables_[i].size()));
  return driver_->synchronize();
}

}  // namespace cudabpf::replay
