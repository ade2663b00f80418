#include "analyze/memory/driver_memory.hpp"

#include <algorithm>
#include <tuple>

#include "analyze/derived/processes.hpp"
#include "analyze/gpu_samples.hpp"

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

void DriverMemory::line(const Line& line) {
  each_emptied(line, [&](std::uint64_t process) { leave(process, line.ts); });
  if (line.kind == LineKind::driver) request(line);
  if (live_.empty()) return;
  if (line.kind == LineKind::call) returned(line);
  if (line.kind == LineKind::gpu_sample) sample(line);
}

void DriverMemory::request(const Line& line) {
  bool takes = line.object_class == memory_class_ && line.name != free_ && line.has(Field::size) &&
               line.size <= MOST_BYTES;
  bool frees = line.name == free_;
  if ((!takes && !frees) || !line.process || refused(line, ok_) || !line.has(Field::client) ||
      !line.has(Field::object))
    return;
  auto live = live_.find(line.process->number);
  if (live == live_.end()) {
    if (!takes || live_.size() == MOST_PROCESSES) return;
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
  if (live.shares.size() >= MOST_SHARES && !live.share_numbers.contains({of, name.id}))
    of = Share::Of::others, name = {};
  auto [at, is_new] = live.share_numbers.try_emplace({of, name.id}, live.shares.size());
  if (is_new) live.shares.push_back({.of = of, .name = name});
  return at->second;
}

void DriverMemory::take(Live& live, const Line& line) {
  if (objects_ == MOST_OBJECTS) {
    left_out_++;
    return;
  }
  changes(live, line.end());
  Client& client = live.clients[line.client];
  auto [at, is_new] = client.objects.try_emplace(line.object);
  if (!is_new) drop(live, at->second);  // how it was freed is lost
  Object& object = at->second;
  object = {line.parent_object, line.size, share_of(live, Share::Of::own, {})};
  client.below[object.parent].insert(line.object);
  live.shares[object.share].bytes += object.bytes;
  live.shares[object.share].objects++;
  objects_++;
  if (!line.has(Field::call) || waiting_ == MOST_OBJECTS) return;
  live.open_calls[line.call].emplace_back(line.client, line.object);
  waiting_++;
}

void DriverMemory::drop(Live& live, const Object& object) {
  live.shares[object.share].bytes -= object.bytes;
  live.shares[object.share].objects--;
  objects_--;
}

// Whatever is below an object goes with it.
void DriverMemory::give_back(Live& live, const Line& line) {
  auto client = live.clients.find(line.client);
  if (client == live.clients.end()) return;
  auto& [objects, below] = client->second;
  if (line.object == line.client) {
    changes(live, line.end());
    for (const auto& [handle, object] : objects) drop(live, object);
    live.clients.erase(client);
  } else if (auto children = below.find(line.object); children != below.end()) {
    changes(live, line.end());
    for (std::uint64_t handle : children->second)
      if (auto at = objects.find(handle); at != objects.end() && at->second.parent == line.object) {
        drop(live, at->second);
        objects.erase(at);
      }
    below.erase(children);
  } else if (auto at = objects.find(line.object); at != objects.end()) {
    changes(live, line.end());
    drop(live, at->second);
    if (auto siblings = below.find(at->second.parent); siblings != below.end())
      siblings->second.erase(line.object);
    objects.erase(at);
  }
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
    Share& before = live.shares[at->second.share];
    before.bytes -= at->second.bytes;
    before.objects--;
    at->second.share = share;
    live.shares[share].bytes += at->second.bytes;
    live.shares[share].objects++;
  }
  waiting_ -= call->second.size();
  live.open_calls.erase(call);
}

void DriverMemory::sample(const Line& line) {
  if (!part_.has(line.ts)) return;
  GpuSample sample = sample_in(line);
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
  if (process && process->memory)
    live.nvml[sample.device] = *process->memory;
  else
    live.nvml.erase(sample.device);
  std::uint64_t bytes = 0;
  for (const auto& [gpu, of_gpu] : live.nvml) bytes += of_gpu;
  if (bytes && sample.ts >= live.changed + STEADY) live.found = {sample.ts, bytes};
}

void DriverMemory::leave(std::uint64_t process, std::uint64_t ts) {
  auto live = live_.find(process);
  if (live == live_.end()) return;
  settle(live->second, ts);
  for (const auto& [handle, client] : live->second.clients) objects_ -= client.objects.size();
  for (const auto& [call, objects] : live->second.open_calls) waiting_ -= objects.size();
  if (processes_.size() < MOST_PROCESSES) processes_.push_back(std::move(live->second.known));
  live_.erase(live);
}

void DriverMemory::finish() {
  while (!live_.empty()) leave(live_.begin()->first, Part::OPEN);
  std::ranges::stable_sort(processes_, [](const OfProcess& a, const OfProcess& b) {
    return std::tuple(b.most.nvml, a.pid) < std::tuple(a.most.nvml, b.pid);
  });
}

}  // namespace cudabpf::analyze
