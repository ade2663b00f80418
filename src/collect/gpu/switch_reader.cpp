#include "collect/gpu/switch_reader.hpp"

#include <fmt/format.h>
#include <linux/capability.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <utility>

#include "cudabpf/driver.hpp"
#include "util/system/clock.hpp"
#include "util/system/copied.hpp"
#include "util/system/privileges.hpp"

namespace cudabpf {

namespace {

constexpr std::uint32_t RECORDS = 16384;
constexpr std::size_t HEADER_BYTES = 4096;
constexpr unsigned TRIED = 580;  // the driver's major version
constexpr std::uint64_t SETTLED_NS = SwitchReader::SETTLED.count();

// As NVML writes it: "00000000:3B:00.0".
std::string bus_id_of(const rm::Card& card) {
  return fmt::format("{:08X}:{:02X}:{:02X}.0", card.domain, card.bus, card.slot);
}

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

Result<> check(const LoadedDriver& driver) {
  if (driver.version.empty()) return Error{"no NVIDIA driver is loaded"};
  if (!driver.is_open || DriverVersion::parse(driver.version).major != TRIED)
    return Error{fmt::format("the driver is {}{}; only the open kernel module {} was tried",
                             driver.version, driver.is_open ? "" : ", proprietary", TRIED)};
  // Without it the driver hides other users' processes.
  if (!privileges::effective().has(CAP_SYS_ADMIN)) return Error{"this takes root (CAP_SYS_ADMIN)"};
  return ok();
}

bool is_gone(std::uint32_t pid) {
  return ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
}

ContextSwitch switch_of(const rm::Record& record) {
  ContextSwitch result{.time = record.time, .seqno = record.seqno, .context = record.context};
  if (record.type == rm::CONTEXT_SWITCH && record.tag == rm::CONTEXT_STARTS)
    result.kind = ContextSwitch::Kind::start;
  if (record.type == rm::CONTEXT_SWITCH && record.tag == rm::CONTEXT_ENDS)
    result.kind = ContextSwitch::Kind::end;
  result.pid = record.pid == rm::DRIVERS_OWN_PID ? rm::HIDDEN_PID : record.pid;
  result.of_instance =
      record.gpu_instance != rm::NO_INSTANCE || record.compute_instance != rm::NO_INSTANCE;
  return result;
}

}  // namespace

struct SwitchReader::Gpu {
  std::string bus_id;
  rm::Handle subdevice = 0, event_buffer = 0;
  rm::Memory header, records;
  std::uint32_t get = 0;  // the next record to read
  std::uint64_t reported_until = 0;
  Clock clock;  // when the driver's records were last followed
  std::optional<Residency> residency;
};

SwitchReader::~SwitchReader() { gpus_.clear(); }

Result<std::unique_ptr<SwitchReader>> SwitchReader::open(const rm::System& system,
                                                         const LoadedDriver& driver) {
  TRY(check(driver));
  std::unique_ptr<SwitchReader> reader(new SwitchReader);
  reader->client_ = TRY(rm::Client::open(system));
  for (const rm::Card& card : reader->client_->cards())
    reader->gpus_.push_back(TRY(reader->open_gpu(card)));
  return reader;
}

Result<std::unique_ptr<SwitchReader::Gpu>> SwitchReader::open_gpu(const rm::Card& card) {
  auto gpu = std::make_unique<Gpu>();
  gpu->bus_id = bus_id_of(card);
  rm::GpuIdInfo info{};
  info.gpu_id = card.gpu_id;
  TRY(client_->control("finding the GPU", rm::Control::gpu_id_info, client_->root(), info));
  rm::DeviceParameters of_device{};
  of_device.instance = info.device_instance;
  of_device.share = client_->root();
  rm::Handle device =
      TRY(client_->create("opening the GPU", rm::Class::device, client_->root(), of_device));
  gpu->subdevice = TRY(client_->create("opening the subdevice", rm::Class::subdevice, device,
                                       rm::SubdeviceParameters{info.subdevice_instance}));
  gpu->header = TRY(client_->memory("making the ring's header", HEADER_BYTES));
  gpu->records = TRY(client_->memory("making the ring", RECORDS * sizeof(rm::Record)));
  rm::EventBufferParameters of_buffer{};
  of_buffer.record_size = sizeof(rm::Record);
  of_buffer.record_count = RECORDS;
  of_buffer.subdevice = gpu->subdevice;
  of_buffer.header = gpu->header.handle();
  of_buffer.records = gpu->records.handle();
  gpu->event_buffer = TRY(client_->create("making the event buffer", rm::Class::event_buffer,
                                          client_->root(), of_buffer));
  rm::EnableEvents enable{.enable = 1, .padding = {}, .flags = rm::KEEP_OLDEST};
  TRY(client_->control("enabling events", rm::Control::enable_events, gpu->event_buffer, enable));
  gpu->get = copied<rm::RingHeader>(gpu->header.data()).put;
  rm::BindSwitches bind{};
  bind.event_buffer = gpu->event_buffer;
  bind.record_size = sizeof(rm::Record) - rm::RECORD_HEAD;
  bind.detail = rm::STARTS_AND_ENDS;
  bind.all_users = 1;
  TRY(client_->control("asking for context switches", rm::Control::bind_switches, gpu->subdevice,
                       bind));
  gpu->clock = TRY(clock_of(*gpu));
  gpu->reported_until = gpu->clock.monotonic;
  gpu->residency.emplace(gpu->clock.gpu);
  return gpu;
}

// The driver reads both clocks one after the other. Its own clock of the CPU is not the trace's:
// over a short time, the two drift apart by less than is measured here.
Result<SwitchReader::Clock> SwitchReader::clock_of(const Gpu& gpu) {
  std::uint64_t before = now_ns(CLOCK_MONOTONIC_RAW);
  rm::TimeCorrelation times{};
  times.clock = rm::MONOTONIC_RAW;
  times.count = 1;
  TRY(client_->control("reading the GPU's clock", rm::Control::time_correlation, gpu.subdevice,
                       times));
  std::uint64_t raw = now_ns(CLOCK_MONOTONIC_RAW), monotonic = now_ns(CLOCK_MONOTONIC);
  std::uint64_t cpu = times.samples[0].cpu, time = times.samples[0].gpu;
  if (cpu < before || cpu > raw || time < gpu.clock.gpu)
    return Error{"reading the GPU's clock failed (the driver has other clocks)"};
  return Clock{time, monotonic - (raw - cpu)};
}

Result<> SwitchReader::follow(bool own_pids) {
  auto has_ended = [&](std::uint32_t pid) { return pid && !own_pids && is_gone(pid); };
  for (auto& gpu : gpus_) gpu->clock = TRY(clock_of(*gpu));
  // One of the event buffers stands for all: the driver moves what all GPUs have recorded.
  TRY(client_->control("asking for what was recorded", rm::Control::flush,
                       gpus_.front()->event_buffer));
  for (auto& gpu : gpus_) {
    TRY(drain(*gpu));
    gpu->residency->advance(gpu->clock.gpu - std::min(gpu->clock.gpu, SETTLED_NS), has_ended);
  }
  return ok();
}

Result<> SwitchReader::drain(Gpu& gpu) {
  auto header = copied<rm::RingHeader>(gpu.header.data());
  std::atomic_thread_fence(std::memory_order_acquire);
  if (header.put >= RECORDS || gpu.get >= RECORDS)
    return Error{fmt::format("reading the ring failed (it has no place {})", header.put)};
  if (header.put == gpu.get && !header.dropped) return ok();
  while (gpu.get != header.put) {
    gpu.residency->add(
        switch_of(copied<rm::Record>(gpu.records.data() + gpu.get * sizeof(rm::Record))));
    gpu.get = (gpu.get + 1) % RECORDS;
  }
  if (header.dropped) gpu.residency->dropped(header.dropped);
  rm::UpdateGet update{.records = gpu.get, .variable = 0};
  return client_->control("giving records back", rm::Control::update_get, gpu.event_buffer, update);
}

std::optional<SwitchReader::Taken> SwitchReader::take(std::string_view bus_id) {
  auto found = std::find_if(gpus_.begin(), gpus_.end(),
                            [id = upper(bus_id)](const auto& gpu) { return gpu->bus_id == id; });
  if (found == gpus_.end()) return std::nullopt;
  Gpu& gpu = **found;
  Residency::Window window = gpu.residency->take();
  std::uint64_t until = gpu.clock.monotonic - (gpu.clock.gpu - window.to);
  Taken taken;
  taken.missing = gpu.residency->take_missing();
  taken.residents.from = std::exchange(gpu.reported_until, std::max(gpu.reported_until, until));
  taken.residents.to = gpu.reported_until;
  taken.residents.unknown_ns = window.unknown_ns;
  for (const auto& [pid, ns] : window.by_pid) taken.residents.processes.push_back({pid, ns});
  return taken;
}

}  // namespace cudabpf
