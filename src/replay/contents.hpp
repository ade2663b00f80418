// What a capture folder holds, in figures.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "replay/messages.hpp"
#include "replay/tape.hpp"

namespace cudabpf::replay {

struct Amount {
  std::uint64_t count = 0, bytes = 0;
  void add(std::uint64_t more) {
    count++;
    bytes += more;
  }
};
DESCRIBE(Amount, count, bytes)

struct Contents {
  std::uint64_t launches = 0, graph_launches = 0, waits = 0, allocations = 0, frees = 0;
  Amount to_gpu, to_host, within, fills;
  std::array<Amount, bundle::BLOCK_KINDS.size()> blocks;
  std::uint64_t pages_before = 0, pages_after = 0;  // not of zeroes alone
  std::uint64_t image_bytes = 0;
  std::vector<Skipped> refused;  // on the tape, and not on it
};
Contents contents_of(const Manifest& manifest, const Tape& tape);

// Why a GPU cannot run it, or why times there mean nothing; empty: it can.
std::vector<std::string> against(const Manifest& manifest, const Gpu& gpu);

}  // namespace cudabpf::replay
