#include "taping/taper.hpp"

#include <fmt/format.h>

#include <utility>

namespace cudabpf::taping {

Result<> Taper::open(std::function<bool()> settle) {
  around_.settle = std::move(settle);
  around_.make_folder = [this](std::string& path) { return make_folder(path); };
  auto made = bundle::FolderWriter::create(wanted_.folder);
  if (!made) return std::move(made.error());
  first_ = std::make_unique<bundle::FolderWriter>(std::move(*made));
  return ok();
}

Result<bundle::FolderWriter> Taper::make_folder(std::string& path) {
  std::lock_guard lock(mutex_);
  path = wanted_.folder;
  if (++folders_ == 1) return std::move(*first_);
  path += fmt::format(".{}", folders_);
  return bundle::FolderWriter::create(path);
}

void Taper::close() {
  decltype(tapers_) all;
  {
    std::lock_guard lock(mutex_);
    all = tapers_;
  }
  for (auto& [pid, taper] : all) taper->close();
}

std::vector<Captured> Taper::captured() const {
  std::vector<Captured> all;
  std::lock_guard lock(mutex_);
  for (const auto& taper : ended_) all.push_back(taper->captured());
  for (const auto& [pid, taper] : tapers_) all.push_back(taper->captured());
  return all;
}

std::shared_ptr<ProcessTaper> Taper::taper_of(std::uint32_t pid) const {
  std::lock_guard lock(mutex_);
  auto known = tapers_.find(pid);
  return known == tapers_.end() ? nullptr : known->second;
}

std::uint64_t Taper::begins(std::shared_ptr<TapedProcess> process) {
  std::uint32_t pid = process->pid();
  auto taper = std::make_shared<ProcessTaper>(wanted_, around_, std::move(process));
  std::lock_guard lock(mutex_);
  std::swap(tapers_[pid], taper);
  if (taper) ended_.push_back(std::move(taper));
  return ProcessTaper::FIRST_STOP;
}

void Taper::stopped(std::unique_ptr<StoppedThread> thread) {
  if (auto taper = taper_of(thread->pid())) taper->stopped(std::move(thread));
}

void Taper::begin(const Session& session) {
  bundle::Manifest& manifest = around_.manifest;
  manifest.cudabpf = session.version;
  manifest.host = session.host;
  manifest.unix_ns = session.realtime_ns;
  manifest.command = session.command;
  manifest.devices.emplace_back().driver = session.driver;
}

void Taper::call(const Call& call) {
  if (auto taper = taper_of(call.pid)) taper->call(call);
}

// It may concern any process.
void Taper::lost(const LossEvent& loss) {
  if (info(loss.reason).degraded) return;
  std::lock_guard lock(mutex_);
  for (auto& [pid, taper] : tapers_) taper->lost();
}

}  // namespace cudabpf::taping
