#include "util/system/cpu_list.hpp"

#include <charconv>
#include <fstream>
#include <string>

namespace cudabpf {

std::vector<int> parse_cpu_list(std::string_view text) {
  constexpr int MAX = 1 << 16;
  std::vector<int> cpus;
  const char *at = text.data(), *end = at + text.size();
  auto number = [&](int& value) {
    auto [next, error] = std::from_chars(at, end, value);
    at = next;
    return error == std::errc{} && value >= 0 && value < MAX;
  };
  for (;;) {
    int first = 0, last = 0;
    if (!number(first)) return cpus;
    last = first;
    if (at != end && *at == '-' && (at++, !number(last))) return cpus;
    for (int cpu = first; cpu <= last; cpu++) cpus.push_back(cpu);
    if (at == end || *at != ',') return cpus;
    at++;
  }
}

std::vector<int> online_cpus() {
  std::ifstream file("/sys/devices/system/cpu/online");
  std::string text;
  std::getline(file, text);
  return parse_cpu_list(text);
}

}  // namespace cudabpf
