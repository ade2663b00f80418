#include "collect/machine.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include "util/system/clock.hpp"

namespace cudabpf {

namespace {

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

// "Model: \t\t NVIDIA H200" -> "NVIDIA H200"
std::string value_of_line(const std::string& line) {
  std::size_t at = line.find(':');
  if (at == std::string::npos) return {};
  at = line.find_first_not_of(" \t", at + 1);
  return at == std::string::npos ? std::string() : line.substr(at);
}

}  // namespace

Driver nvidia_driver(const std::string& folder) {
  std::ifstream file(folder + "/version");
  std::string line;
  std::getline(file, line);
  std::smatch match;
  if (!std::regex_search(line, match, std::regex(R"(\b(\d{3}\.\d+(\.\d+)?)\b)"))) return {};
  bool open = line.find("Open Kernel Module") != std::string::npos;
  return {match[1], open ? "open" : "proprietary"};
}

std::vector<Gpu> nvidia_gpus(const std::string& folder) {
  std::vector<Gpu> gpus;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/gpus", ignored)) {
    Gpu gpu;
    gpu.bus_id = entry.path().filename();
    std::ifstream file(entry.path() / "information");
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("Model:")) gpu.name = value_of_line(line);
      if (line.starts_with("GPU UUID:")) gpu.uuid = value_of_line(line);
      if (line.starts_with("Device Minor:")) gpu.index = std::atoi(value_of_line(line).c_str());
    }
    gpus.push_back(std::move(gpu));
  }
  std::sort(gpus.begin(), gpus.end(), [](const Gpu& a, const Gpu& b) { return a.index < b.index; });
  return gpus;
}

std::string machine_name() {
  utsname name{};
  uname(&name);
  return name.nodename;
}

void describe_machine(Session& session) {
  utsname name{};
  uname(&name);
  session.version = CUDABPF_VERSION;
  session.host = name.nodename;
  session.linux_release = name.release;
  session.boot_id = boot_id();
  session.namespace_offsets = time_offsets();
  session.clock_error = clock_error();
  session.arch = name.machine;
  session.driver = nvidia_driver().version;
  session.gpus = nvidia_gpus();
}

}  // namespace cudabpf
