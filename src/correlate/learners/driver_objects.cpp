#include "correlate/learners/driver_objects.hpp"

#include <limits>

namespace cudabpf {

namespace {

bool is_free(const IoctlDetails& details) { return details.name == "NV_ESC_RM_FREE"; }

// A client itself is an object, too.
std::pair<std::uint32_t, std::uint32_t> key_of(const IoctlDetails& details) {
  return {details.client.value_or(*details.object), *details.object};
}

}  // namespace

void DriverObjects::follow(std::uint32_t pid, const IoctlDetails& done) {
  if (!done.object) return;
  auto key = key_of(done);
  if (is_free(done)) {
    objects_.erase(key);
    if (key.first != key.second) return;
    // All of a client's objects go with it.
    constexpr auto LAST = std::numeric_limits<std::uint32_t>::max();
    objects_.erase(objects_.lower_bound({key.first, 0}), objects_.upper_bound({key.first, LAST}));
  } else if (done.klass) {
    if (!objects_.contains(key) && !bounds_.has_memory(Kept::driver_objects, objects_.size()))
      return bounds_.left_out(Kept::driver_objects);
    objects_[key] = {pid, *done.klass, done.class_name, done.group};
  }
}

void DriverObjects::describe_free(IoctlDetails& details) const {
  if (!is_free(details) || !details.object) return;
  auto object = objects_.find(key_of(details));
  if (object == objects_.end()) return;
  details.klass = object->second.klass;
  details.class_name = object->second.class_name;
  details.group = object->second.group;
}

void DriverObjects::process_gone(std::uint32_t pid) {
  std::erase_if(objects_, [pid](const auto& item) { return item.second.pid == pid; });
}

}  // namespace cudabpf
