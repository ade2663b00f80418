// Where the memory of a capture lay, and what was in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bundle/manifest.hpp"
#include "replay/ranges.hpp"
#include "replay/tape.hpp"

namespace cudabpf::replay {

inline constexpr std::uint64_t RESERVED_UNIT = 32 << 20;  // of addresses, as the driver gives them
inline constexpr std::uint64_t PAGE = bundle::PageRun::PAGE;

struct Layout {
  std::vector<Range> reserved;  // in whole units
  std::vector<Range> device;    // in whole pages: what is behind those addresses
  // Pinned memory between that of GPUs, where the driver often puts it: pages of `device`, too,
  // since nothing else can be mapped among reserved addresses.
  std::vector<Range> pinned;
  std::vector<Range> host;  // other pinned memory, in whole pages of the host
  // The bytes of blocks on a GPU that the program had when the iteration ended: what can be
  // compared. What it freed on the tape was gone by then, and what is on the host it may have
  // written itself.
  std::vector<Range> at_end;
  // Pages of blocks that the tape allocates or frees: what is in them after the iteration says
  // nothing about whether the tape changes them.
  std::vector<Range> unsettled;
};
Layout layout_of(const Manifest& manifest, const Tape& tape);

// What lay in the pages, by their addresses.
class PageContents {
 public:
  explicit PageContents(const std::vector<bundle::PageRun>& runs) : runs_(&runs) {}

  struct Content {
    std::optional<std::uint32_t> page;  // in the file; none: zeroes
  };
  // Nothing: it is not known.
  std::optional<Content> at(std::uint64_t address) const;

 private:
  const std::vector<bundle::PageRun>* runs_;
};

// The page's content when the iteration had ended.
std::optional<PageContents::Content> content_after(const Manifest& manifest, std::uint64_t address);

}  // namespace cudabpf::replay
