#include "collect/driver_devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

namespace cudabpf {

namespace {

// How the kernel numbers devices internally.
constexpr unsigned MINOR_BITS = 20;
constexpr std::uint32_t MINOR_MASK = (1u << MINOR_BITS) - 1;
constexpr std::uint32_t ALL_MINORS = ~MINOR_MASK;
constexpr std::uint32_t ONE_DEVICE = ~0u;

constexpr std::uint32_t NVIDIA_MAJOR = 195;
constexpr std::uint32_t CTL_MINOR = 255, MODESET_MINOR = 254;

std::uint32_t number_of(std::uint32_t major, std::uint32_t minor) {
  return major << MINOR_BITS | minor;
}

DriverNode node_named(std::string_view name) {
  if (name == "nvidiactl") return DriverNode::ctl;
  if (name == "nvidia-uvm") return DriverNode::uvm;
  if (name == "nvidia-uvm-tools") return DriverNode::uvm_tools;
  if (name == "nvidia-modeset") return DriverNode::modeset;
  if (name.starts_with("nvidia-caps")) return DriverNode::caps;
  if (name.starts_with("nvidia") && name.size() > 6 && name[6] >= '0' && name[6] <= '9')
    return DriverNode::gpu;
  return DriverNode::other;
}

abi::cb_driver_node kernel_side_node(DriverNode node) {
  switch (node) {
    case DriverNode::ctl:
    case DriverNode::gpu:
      return abi::CB_NODE_RM;
    case DriverNode::uvm:
    case DriverNode::uvm_tools:
      return abi::CB_NODE_UVM;
    default:
      return abi::CB_NODE_OTHER;
  }
}

}  // namespace

DriverDevices DriverDevices::parse(std::string_view proc_devices, std::string_view others) {
  DriverDevices devices;
  auto add_one = [&](std::uint32_t device, std::string name) {
    devices.entries_.push_back({device, ONE_DEVICE, node_named(name), std::move(name)});
  };
  while (!others.empty()) {
    std::string_view item = others.substr(0, others.find(','));
    others.remove_prefix(std::min(item.size() + 1, others.size()));
    unsigned major = 0, minor = 0;
    std::size_t equals = item.find('=');
    if (equals == std::string_view::npos ||
        std::sscanf(std::string(item.substr(0, equals)).c_str(), "%u:%u", &major, &minor) != 2)
      continue;
    add_one(number_of(major, minor), std::string(item.substr(equals + 1)));
  }
  add_one(number_of(NVIDIA_MAJOR, CTL_MINOR), "nvidiactl");
  add_one(number_of(NVIDIA_MAJOR, MODESET_MINOR), "nvidia-modeset");
  devices.entries_.push_back({number_of(NVIDIA_MAJOR, 0), ALL_MINORS, DriverNode::gpu, {}});
  std::istringstream lines{std::string(proc_devices)};
  for (std::string line; std::getline(lines, line) && line != "Block devices:";) {
    unsigned major = 0;
    char name[64];
    if (std::sscanf(line.c_str(), "%u %63s", &major, name) != 2 || major == NVIDIA_MAJOR) continue;
    std::string_view text = name;
    if (text == "nvidia-uvm") {
      add_one(number_of(major, 0), "nvidia-uvm");
      add_one(number_of(major, 1), "nvidia-uvm-tools");
    } else if (text.starts_with("nvidia")) {
      devices.entries_.push_back({number_of(major, 0), ALL_MINORS, node_named(text), name});
    }
  }
  constexpr std::size_t ROOM = CB_DRIVER_DEVICES - 1;
  if (devices.entries_.size() > ROOM) devices.entries_.resize(ROOM);
  return devices;
}

const DriverDevices::Entry* DriverDevices::find(std::uint32_t device) const {
  auto at = std::find_if(entries_.begin(), entries_.end(),
                         [&](const Entry& e) { return (device & e.mask) == e.device; });
  return at == entries_.end() ? nullptr : &*at;
}

DriverNode DriverDevices::node(std::uint32_t device) const {
  const Entry* entry = find(device);
  return entry ? entry->node : DriverNode::other;
}

std::string DriverDevices::name(std::uint32_t device) const {
  const Entry* entry = find(device);
  if (!entry) return {};
  if (entry->mask == ONE_DEVICE) return entry->name;
  std::uint32_t minor = device & MINOR_MASK;
  return entry->name.empty() ? fmt::format("nvidia{}", minor)
                             : fmt::format("{}/{}", entry->name, minor);
}

std::vector<abi::cb_driver_device> DriverDevices::for_kernel_side() const {
  std::vector<abi::cb_driver_device> list;
  list.reserve(entries_.size() + 1);
  for (const Entry& e : entries_)
    list.push_back({e.device, e.mask, static_cast<std::uint32_t>(kernel_side_node(e.node))});
  list.push_back({});
  return list;
}

}  // namespace cudabpf
