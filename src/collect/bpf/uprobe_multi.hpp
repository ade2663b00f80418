// uprobe_multi links: one program on many places of a file at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collect/bpf/kernel_abi.hpp"
#include "util/system/fd.hpp"

namespace cudabpf {

struct UprobePlaces {
  std::vector<unsigned long> offsets;
  std::vector<std::uint64_t> cookies;  // one for each, or none
  // Likewise; where in the file a counter is that the kernel raises for as long as it has the
  // probe.
  std::vector<unsigned long> semaphores = {};
};

enum class UprobeEnd : std::uint8_t { entry, at_return, both };  // both: a session

// `pid`: the link is for this process only, and no other process gets a breakpoint; 0: for all. On
// failure errno says why.
Fd link_uprobes(int program, const std::string& path, UprobeEnd end, const UprobePlaces& places,
                std::uint32_t pid = 0);

bpf_attach_type attach_type_of(UprobeEnd end);

// Whether the kernel knows such links, found out by asking for an impossible one.
bool kernel_links_uprobes(UprobeEnd end);

// Whether a link for this process sees the calls of all its threads. Older kernels limited it to
// one thread (kernel commits 46ba0e49b642 and 900f362e2062, Linux 6.10 and 6.11).
bool links_see_all_threads();

}  // namespace cudabpf
