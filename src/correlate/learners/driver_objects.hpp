// What the driver's handles stand for, known from their allocations: a free gives only the handle.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "correlate/calls/bounds.hpp"
#include "cudabpf/driver.hpp"

namespace cudabpf {

class DriverObjects {
 public:
  explicit DriverObjects(Bounds& bounds) : bounds_(bounds) {}

  // The driver has carried out this ioctl for the process.
  void follow(std::uint32_t pid, const IoctlDetails& done);
  // Adds to a free's details what it frees, if that is known.
  void describe_free(IoctlDetails& details) const;
  void process_gone(std::uint32_t pid);

 private:
  struct Object {
    std::uint32_t pid = 0;
    std::uint32_t klass = 0;
    std::string_view class_name;
    DriverGroup group = DriverGroup::other;
  };
  Bounds& bounds_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Object> objects_;  // by client and handle
};

}  // namespace cudabpf
