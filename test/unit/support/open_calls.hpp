// Calls that are open, in the view of a test.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "cudabpf/sink.hpp"

class OpenNow : public cudabpf::OpenCallsNow {
 public:
  using Calls = std::vector<std::pair<const cudabpf::Call*, std::uint64_t>>;  // with their ages
  explicit OpenNow(Calls calls = {}) : calls_(std::move(calls)) {}
  void each(const Visit& visit) const override {
    for (const auto& [call, open_ns] : calls_) visit(*call, open_ns);
  }

 private:
  Calls calls_;
};
