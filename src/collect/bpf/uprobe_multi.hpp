// Links of uprobe_multi: one program on many places of a file at once.
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
};

enum class UprobeEnd : std::uint8_t { entry, at_return, both };  // both: a session

// `pid`: the link is for this process alone, and no other process gets a breakpoint; 0: for all.
// Where it fails, errno tells why.
Fd link_uprobes(int program, const std::string& path, UprobeEnd end, const UprobePlaces& places,
                std::uint32_t pid = 0);

bpf_attach_type attach_type_of(UprobeEnd end);

// Whether the kernel knows such links, found out by asking for one that cannot be.
bool kernel_links_uprobes(UprobeEnd end);

// Whether a link for this process sees the calls of each of its threads. Links for a process used
// to be for one thread of it (kernel commits 46ba0e49b642 and 900f362e2062, Linux 6.10 and 6.11).
bool links_see_all_threads();

}  // namespace cudabpf
