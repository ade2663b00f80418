// The classes of calls that metrics have: few, so that each workload can have all of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cudabpf/cuda_api.hpp"

namespace cudabpf {

enum class CallClass : std::uint8_t {
  launch,
  to_device,
  to_host,
  copy,  // in another direction, or an unknown one
  set,
  wait,
  memory,
  module,
  setup,
  collective,
  other,
  count_
};
inline constexpr std::size_t CALL_CLASSES = static_cast<std::size_t>(CallClass::count_);

constexpr std::string_view to_string(CallClass which) {
  constexpr std::array<std::string_view, CALL_CLASSES> NAMES{
      "launch", "copy_to_device", "copy_to_host", "copy_other", "set",  "wait",
      "memory", "module",         "setup",        "collective", "other"};
  return NAMES[static_cast<std::size_t>(which)];
}

constexpr CallClass class_of(const Function& function) {
  if (function.type == Type::collective) return CallClass::collective;
  switch (function.meaning.work) {
    case Work::launch:
      return CallClass::launch;
    case Work::to_device:
      return CallClass::to_device;
    case Work::to_host:
      return CallClass::to_host;
    case Work::copy:
      return CallClass::copy;
    case Work::set:
      return CallClass::set;
    case Work::wait:
      return CallClass::wait;
    case Work::memory:
      return CallClass::memory;
    case Work::module:
      return CallClass::module;
    case Work::setup:
      return CallClass::setup;
    case Work::recorded:
    case Work::other:
      return CallClass::other;
  }
  return CallClass::other;
}

}  // namespace cudabpf
