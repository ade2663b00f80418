#include "util/system/pod_names.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace cudabpf {

namespace {

constexpr std::size_t ID_DIGITS = 64;

// Systemd's cgroups have "_" for the "-" of a uid, and static pods have none.
std::string plain(std::string_view uid) {
  std::string plain(uid);
  std::erase_if(plain, [](char c) { return c == '-' || c == '_'; });
  return plain;
}

}  // namespace

// Others may change it meanwhile.
template <typename Take>
void PodNames::read_folder(const std::string& folder, Take take) {
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error), end;
  for (; !error && entry != end; entry.increment(error)) take(entry->path().filename().string());
  if (error && error != std::errc::no_such_file_or_directory)
    unreadable_ = folder + ": " + error.message();
}

std::optional<PodNames::Named> PodNames::find(std::string_view pod_uid,
                                              std::string_view container_id) {
  std::string uid = plain(pod_uid), id(container_id);
  bool known = containers_.contains(id) || (id.empty() && pods_.contains(uid));
  if (!known) {
    if (looked_for_.size() >= MAX) looked_for_.clear();
    Clock::time_point now = Clock::now();
    bool is_new = looked_for_.emplace(uid, id).second;
    if (is_new || now - read_at_ >= std::chrono::seconds(1)) {
      read_at_ = now;
      read();
    }
  }
  if (auto container = containers_.find(id); container != containers_.end())
    return container->second;
  auto pod = pods_.find(uid);
  return pod == pods_.end() ? std::nullopt : std::optional(pod->second);
}

// No part of these names has an underscore in it.
void PodNames::read() {
  pods_.clear();
  containers_.clear();
  read_folder(logs_ + "/pods", [this](const std::string& name) {
    std::size_t pod = name.find('_'), uid = name.rfind('_');
    if (pod == name.npos || uid == pod || pods_.size() == MAX) return;
    pods_[plain(std::string_view(name).substr(uid + 1))] = {
        name.substr(0, pod), name.substr(pod + 1, uid - pod - 1), {}};
  });
  constexpr std::string_view LOG = ".log";
  read_folder(logs_ + "/containers", [this, LOG](const std::string& name) {
    std::size_t after_pod = name.find('_'), after_namespace = name.rfind('_');
    std::size_t rest = ID_DIGITS + LOG.size();
    if (!name.ends_with(LOG) || after_namespace == name.npos || after_namespace == after_pod ||
        name.size() < after_namespace + 1 + rest + 1 || containers_.size() == MAX)
      return;
    std::size_t dash = name.size() - rest - 1;
    if (name[dash] != '-' || dash <= after_namespace) return;
    containers_[name.substr(dash + 1, ID_DIGITS)] = {
        name.substr(after_pod + 1, after_namespace - after_pod - 1), name.substr(0, after_pod),
        name.substr(after_namespace + 1, dash - after_namespace - 1)};
  });
}

}  // namespace cudabpf
