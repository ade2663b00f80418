#include "analyze/memory/driver_memory.hpp"

#include <algorithm>
#include <tuple>

#include "analyze/derived/processes.hpp"
#include "util/limited.hpp"

namespace cudabpf::analyze {

namespace {

std::uint64_t sum_of(const std::vector<DriverMemory::Share>& shares, bool asked) {
  std::uint64_t bytes = 0;
  for (const DriverMemory::Share& share : shares)
    if ((share.of == DriverMemory::Share::Of::asked) == asked) bytes += share.bytes;
  return bytes;
}

}  // namespace

std::uint64_t DriverMemory::Moment::own() const { return sum_of(shares, false); }
std::uint64_t DriverMemory::Moment::asked() const { return sum_of(shares, true); }

DriverMemory::DriverMemory(Names& names, Part part)
    : part_(part),
      memory_class_(names.add("NV01_MEMORY_LOCAL_USER")),
      free_(names.add("NV_ESC_RM_FREE")),
      ok_(names.add("NV_OK")) {}

std::uint64_t DriverMemory::own_of(Name host) const {
  std::uint64_t bytes = 0;
  for (const auto& [number, live] : live_)
    if (live.host == host) bytes += sum_of(live.shares, false);
  return bytes;
}

void DriverMemory::line(const Line& line) {
  each_emptied(line, [&](std::uint64_t process) { leave(process, line.ts); });
  if (line.kind == LineKind::driver) request(line);
  if (live_.empty()) return;
  if (line.kind == LineKind::call) returned(line);
  if (line.sample) sample(line);
}

void DriverMemory::request(const Line& line) {
  bool takes = line.object_class == memory_class_ && line.name != free_ && line.has(Field::size) &&
               line.size <= MAX_BYTES;
  bool frees = line.name == free_;
  if ((!takes && !frees) || !line.process || refused(line, ok_) || !line.has(Field::client) ||
      !line.has(Field::object))
    return;
  auto live = live_.find(line.process->number);
  if (live == live_.end()) {
    if (!takes || live_.size() == MAX_PROCESSES) return;
    seen_ = true;
    live = live_.try_emplace(line.process->number).first;
    live->second.known.pid = line.pid;
    live->second.known.from_start = line.process->seen_begin;
    live->second.host = line.process->host;
  }
  live->second.known.comm = line.process->comm;
  takes ? take(live->second, line) : give_back(live->second, line);
}

// What was found so far holds until now.
void DriverMemory::changes(Live& live, std::uint64_t ts) {
  settle(live, ts);
  live.found.reset();
  live.changed = ts;
}

void DriverMemory::settle(Live& live, std::uint64_t ts) {
  if (!live.found || ts < live.found->first + STEADY) return;
  Moment moment{live.found->first, live.found->second, live.shares};
  live.found.reset();
  std::erase_if(moment.shares, [](const Share& share) { return !share.objects; });
  std::ranges::stable_sort(moment.shares, [](const Share& a, const Share& b) {
    return std::tuple(b.bytes, a.of, a.name.id) < std::tuple(a.bytes, b.of, b.name.id);
  });
  if (moment.nvml > live.known.most.nvml) live.known.most = moment;
  live.known.last = std::move(moment);
}

std::size_t DriverMemory::share_of(Live& live, Share::Of of, Name name) {
  if (live.shares.size() >= MAX_SHARES && !live.share_numbers.contains({of, name.id}))
    of = Share::Of::others, name = {};
  auto [at, is_new] = live.share_numbers.try_emplace({of, name.id}, live.shares.size());
  if (is_new) live.shares.push_back({.of = of, .name = name});
  return at->second;
}

void DriverMemory::take(Live& live, const Line& line) {
  if (objects_ == MAX_OBJECTS) {
    left_out_++;
    return;
  }
  changes(live, line.end());
  Client& client = live.clients[line.client];
  forget(live, client, line.object);  // if it is there, how it was freed is lost
  Object& object = client.objects[line.object];
  object = {line.parent_object, line.size, share_of(live, Share::Of::own, {})};
  client.below[object.parent].insert(line.object);
  live.shares[object.share].add(object.bytes);
  objects_++;
  if (!line.has(Field::call) || waiting_ == MAX_OBJECTS) return;
  live.open_calls[line.call].emplace_back(line.client, line.object);
  waiting_++;
}

void DriverMemory::drop(Live& live, const Object& object) {
  live.shares[object.share].remove(object.bytes);
  objects_--;
}

void DriverMemory::forget(Live& live, Client& client, std::uint64_t handle) {
  auto at = client.objects.find(handle);
  if (at == client.objects.end()) return;
  drop(live, at->second);
  auto siblings = client.below.find(at->second.parent);
  if (siblings != client.below.end()) {
    siblings->second.erase(handle);
    if (siblings->second.empty()) client.below.erase(siblings);
  }
  client.objects.erase(at);
}

// Whatever is below an object goes with it.
void DriverMemory::give_back(Live& live, const Line& line) {
  auto at = live.clients.find(line.client);
  if (at == live.clients.end()) return;
  Client& client = at->second;
  auto children = client.below.find(line.object);
  bool is_client = line.object == line.client;
  if (!is_client && children == client.below.end() && !client.objects.contains(line.object)) return;
  changes(live, line.end());
  if (is_client) {
    for (const auto& [handle, object] : client.objects) drop(live, object);
    client.objects.clear();
  } else {
    if (children != client.below.end())
      for (std::uint64_t handle : HashSet<std::uint64_t>(children->second))
        forget(live, client, handle);
    forget(live, client, line.object);
  }
  if (client.objects.empty()) live.clients.erase(at);
}

// Only now it is known for what the memory was.
void DriverMemory::returned(const Line& line) {
  if (!line.process) return;
  auto of = live_.find(line.process->number);
  if (of == live_.end()) return;
  Live& live = of->second;
  auto call = live.open_calls.find(line.id);
  if (call == live.open_calls.end()) return;
  bool asked = line.meaning->memory == MemoryEffect::alloc;
  std::size_t share = asked ? share_of(live, Share::Of::asked, line.holder)
                            : share_of(live, Share::Of::own, line.name);
  for (auto [client, handle] : call->second) {
    auto known = live.clients.find(client);
    if (known == live.clients.end()) continue;
    auto at = known->second.objects.find(handle);
    if (at == known->second.objects.end()) continue;
    live.shares[at->second.share].remove(at->second.bytes);
    at->second.share = share;
    live.shares[share].add(at->second.bytes);
  }
  waiting_ -= call->second.size();
  live.open_calls.erase(call);
}

void DriverMemory::sample(const Line& line) {
  const GpuSample& sample = *line.sample;
  if (!part_.has(line.ts)) return;
  if (!sample.processes) return;  // a quick one
  for (auto& [number, live] : live_) {
    if (live.host != line.host) continue;
    auto process = std::ranges::find(*sample.processes, live.known.pid, &GpuProcess::pid);
    nvml_says(live, sample, process == sample.processes->end() ? nullptr : &*process);
  }
}

void DriverMemory::nvml_says(Live& live, const GpuSample& sample, const GpuProcess* process) {
  settle(live, sample.ts);
  live.found.reset();
  if (!process || !process->memory)
    live.nvml.erase(sample.device);
  else if (has_room_for(live.nvml, sample.device, MAX_GPUS))
    live.nvml[sample.device] = {sample.ts, *process->memory};
  std::uint64_t bytes = 0;
  bool steady = true;
  for (const auto& [gpu, said] : live.nvml) {
    steady &= said.first >= live.changed + STEADY;
    bytes += said.second;
  }
  if (bytes && steady) live.found = {sample.ts, bytes};
}

void DriverMemory::leave(std::uint64_t process, std::uint64_t ts) {
  auto live = live_.find(process);
  if (live == live_.end()) return;
  settle(live->second, ts);
  for (const auto& [handle, client] : live->second.clients) objects_ -= client.objects.size();
  for (const auto& [call, objects] : live->second.open_calls) waiting_ -= objects.size();
  if (processes_.size() < MAX_PROCESSES) processes_.push_back(std::move(live->second.known));
  live_.erase(live);
}

void DriverMemory::finish() {
  while (!live_.empty()) leave(live_.begin()->first, Part::OPEN);
  std::ranges::stable_sort(processes_, [](const OfProcess& a, const OfProcess& b) {
    return std::tuple(b.most.nvml, a.pid) < std::tuple(a.most.nvml, b.pid);
  });
}

}  // namespace cudabpf::analyze
