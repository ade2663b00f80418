#include "correlate/allocations.hpp"

#include <algorithm>

namespace cudabpf {

namespace {

bool adds(const Function& function) {
  return function.op == "alloc" || function.op == "map" || function.op == "register";
}

bool removes(const Function& function) {
  return function.op == "free" || function.op == "unmap" || function.op == "unregister";
}

bool returns_handle(const Function& function) {
  const auto& arguments = function.arguments;
  return std::any_of(arguments.begin(), arguments.end(),
                     [](const Argument& a) { return a.out && a.role == Role::mem_handle; });
}

// It gives memory that another call, or another process, has made an address here.
bool opens(const Function& function) {
  return function.type == "ipc" || function.type == "graphics";
}

// No program has so many handles; one that only makes them must not take all memory.
constexpr std::size_t MAX_HANDLES = 1 << 16;

}  // namespace

bool Allocations::follows(const Function& function) {
  if (function.type == "memory")
    return adds(function) || removes(function) || returns_handle(function);
  return opens(function) || (function.type == "context" && function.names == NamesEffect::forget);
}

void Allocations::add(OfProcess& process, const Function& function, const Details& details) {
  // What lay here before is gone, even if that was not seen.
  erase_overlapping(process.ranges, *details.ptr, details.size.value_or(1));
  if (!details.size.value_or(0)) return;
  Range range{.size = *details.size, .losses = process.losses};
  if (function.kind == "host") {
    range.side = Side::host;
  } else if (function.kind == "managed") {
    range.side = Side::either;
  } else if (details.device) {
    range.device = details.device;
  } else if (details.handle) {
    auto device = process.device_of_handle.find(*details.handle);
    if (device != process.device_of_handle.end()) range.device = device->second;
  }
  process.ranges.insert_or_assign(*details.ptr, range);
}

void Allocations::follow_handle(OfProcess& process, const Function& function,
                                const Details& details) {
  auto& devices = process.device_of_handle;
  if (adds(function) || removes(function) || returns_handle(function))
    devices.erase(*details.handle);
  if (!adds(function) || !details.device) return;
  if (devices.size() >= MAX_HANDLES) devices.clear();
  devices[*details.handle] = *details.device;
}

void Allocations::follow(std::uint32_t pid, const Function& function, Details& details) {
  if (!details.ptr) {
    if (details.handle) follow_handle(processes_[pid], function, details);
    return;
  }
  if (adds(function)) {
    add(processes_[pid], function, details);
  } else if (removes(function)) {
    auto process = processes_.find(pid);
    if (process == processes_.end()) return;
    Ranges& ranges = process->second.ranges;
    auto range = ranges.find(*details.ptr);
    if (details.size) {  // an unmap: it says how much, and may end several mappings at once
      erase_overlapping(ranges, *details.ptr, *details.size);
    } else if (range != ranges.end()) {
      details.size = range->second.size;
      ranges.erase(range);
    }
  }
}

void Allocations::follow_addresses(std::uint32_t pid, const Function& function,
                                   std::span<const std::uint64_t> outs) {
  const auto& arguments = function.arguments;
  if (opens(function) && returns_handle(function)) processes_[pid].device_of_handle.erase(outs[0]);
  auto returns_address = [](const Argument& a) { return a.out && is_address(a.role); };
  if (std::none_of(arguments.begin(), arguments.end(), returns_address)) return;
  OfProcess& process = processes_[pid];
  // Address and size, as cuModuleGetGlobal returns them. cuLibraryGetManaged's may be on either
  // side; of any other address it is not known how far the memory behind it reaches.
  bool sized = outs.size() == 2 && arguments.size() >= 2 && returns_address(arguments[0]) &&
               arguments[1].out && arguments[0].role != Role::hptr;
  if (!sized) {
    process.all_seen = false;
    if (opens(function)) erase_overlapping(process.ranges, outs[0], 1);
  } else if (function.type == "query" &&
             range_at(process.ranges, outs[0]) != process.ranges.end()) {
    return;  // it tells of what is known
  } else if (outs[0] && outs[1]) {
    bool managed = function.name == "cuLibraryGetManaged";
    erase_overlapping(process.ranges, outs[0], outs[1]);
    process.ranges[outs[0]] = Range{.size = outs[1], .side = managed ? Side::either : Side::device};
  }
}

Allocations::Ranges::const_iterator Allocations::range_at(const Ranges& ranges,
                                                          std::uint64_t address) {
  auto after = ranges.upper_bound(address);
  if (after == ranges.begin()) return ranges.end();
  auto range = std::prev(after);
  return address - range->first < range->second.size ? range : ranges.end();
}

void Allocations::erase_overlapping(Ranges& ranges, std::uint64_t address, std::uint64_t size) {
  if (auto around = range_at(ranges, address); around != ranges.end()) ranges.erase(around);
  auto at = ranges.lower_bound(address);
  while (at != ranges.end() && at->first - address < size) at = ranges.erase(at);
}

std::optional<Allocations::Side> Allocations::side_of(const OfProcess& process,
                                                      std::uint64_t address) {
  auto range = range_at(process.ranges, address);
  if (range == process.ranges.end())
    return process.all_seen ? std::optional(Side::host) : std::nullopt;
  if (range->second.doubtful) return std::nullopt;
  return range->second.side;
}

void Allocations::infer_direction(std::uint32_t pid, Details& details) const {
  auto process = processes_.find(pid);
  if (process == processes_.end() || !details.dst || !details.src) return;
  const Ranges& ranges = process->second.ranges;
  if (range_at(ranges, *details.dst) == ranges.end() &&
      range_at(ranges, *details.src) == ranges.end())
    return;  // it may be memory that a graph allocated, which no call returns
  auto to = side_of(process->second, *details.dst);
  auto from = side_of(process->second, *details.src);
  if (!to || !from || *to == Side::either || *from == Side::either) return;
  bool to_device = *to == Side::device;
  bool from_device = *from == Side::device;
  details.op = to_device ? (from_device ? "DtoD" : "HtoD") : (from_device ? "DtoH" : "HtoH");
  details.inferred_op = true;
}

std::optional<std::int32_t> Allocations::device_of(const OfProcess& process, std::uint64_t address,
                                                   std::uint64_t size) {
  auto range = range_at(process.ranges, address);
  if (range == process.ranges.end()) return {};
  auto device = range->second.device;
  while (!range->second.doubtful && range->second.losses == process.losses &&
         range->second.device == device) {
    std::uint64_t end = range->first + range->second.size;
    if (size <= end - address) return device;
    range++;  // mappings may stand side by side, each of other memory
    if (range == process.ranges.end() || range->first != end) break;
  }
  return {};
}

void Allocations::find_devices(std::uint32_t pid, const Function& function,
                               Details& details) const {
  if (!details.dst || !details.src || !details.size) return;
  if (function.size.kind == SizeRule::Kind::none) return;
  auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  auto to = device_of(process->second, *details.dst, *details.size);
  if (!to) return;
  auto from = device_of(process->second, *details.src, *details.size);
  if (!from || (function.op != "peer" && to == from)) return;
  details.dst_device = to;
  details.src_device = from;
}

void Allocations::calls_lost(std::uint32_t pid) {
  processes_[pid].all_seen = false;
  processes_[pid].losses++;
  processes_[pid].device_of_handle.clear();
}

void Allocations::context_destroyed(std::uint32_t pid) {
  auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  for (auto& [address, range] : process->second.ranges) range.doubtful = true;
}

void Allocations::perhaps_freed(std::uint32_t pid, const Function& function,
                                const Details& details) {
  auto process = processes_.find(pid);
  if (process == processes_.end() || !details.ptr || !removes(function)) return;
  auto range = process->second.ranges.find(*details.ptr);
  if (range != process->second.ranges.end()) range->second.doubtful = true;
}

}  // namespace cudabpf
