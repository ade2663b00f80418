// Room for the nodes of graphs, which all processes share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "util/hash.hpp"

namespace cudabpf {

class KeptNodes {
 public:
  // `left_out` is called for each node that finds no room.
  KeptNodes(std::size_t most, std::function<void()> left_out)
      : most_(most), left_out_(std::move(left_out)) {}

  // False: there is none left.
  bool take() {
    if (take_if_there_is(1)) return true;
    left_out_();
    return false;
  }
  // The same for callers that can do without.
  bool take_if_there_is(std::size_t count) {
    if (count > most_ - used_) return false;
    used_ += count;
    return true;
  }
  void give_back(std::size_t count) { used_ -= count; }
  // A number that no node has had.
  std::uint64_t new_id() { return next_id_++; }

 private:
  std::size_t most_, used_ = 0;
  std::uint64_t next_id_ = 1;
  std::function<void()> left_out_;
};

// What handles stand for, while there is room.
template <typename Value>
class HandleTable {
 public:
  explicit HandleTable(KeptNodes& kept) : kept_(&kept) {}
  HandleTable(HandleTable&& other) noexcept : kept_(other.kept_) { values_.swap(other.values_); }
  HandleTable& operator=(HandleTable&&) = delete;
  ~HandleTable() { clear(); }

  Value* find(std::uint64_t handle) {
    auto at = values_.find(handle);
    return at == values_.end() ? nullptr : &at->second;
  }
  // False: there is no room for it.
  bool set(std::uint64_t handle, Value value) {
    if (!values_.contains(handle) && !kept_->take()) return false;
    values_.insert_or_assign(handle, std::move(value));
    return true;
  }
  void erase(std::uint64_t handle) { kept_->give_back(values_.erase(handle)); }
  template <typename Gone>
  void erase_if(Gone&& gone) {
    kept_->give_back(std::erase_if(values_, [&](const auto& item) { return gone(item.second); }));
  }
  void clear() {
    kept_->give_back(values_.size());
    values_.clear();
  }
  template <typename Visit>
  void each(Visit&& visit) {
    for (auto& [handle, value] : values_) visit(value);
  }
  template <typename Visit>
  void each(Visit&& visit) const {
    for (const auto& [handle, value] : values_) visit(value);
  }

 private:
  KeptNodes* kept_;
  HashMap<std::uint64_t, Value> values_;
};

}  // namespace cudabpf
