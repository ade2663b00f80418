// Lists of CPUs as /sys/devices/system/cpu/online has them: "0-3,8".
#pragma once

#include <string_view>
#include <vector>

namespace cudabpf {

std::vector<int> parse_cpu_list(std::string_view text);  // up to where it stops making sense
std::vector<int> online_cpus();

}  // namespace cudabpf
