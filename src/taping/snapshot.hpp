// The memory of a process that stands still, page by page.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bundle/folder.hpp"
#include "cudabpf/taped_process.hpp"

namespace cudabpf::taping {

// What it holds: blocks do not overlap.
using Blocks = std::map<std::uint64_t, bundle::Block>;  // by address

// The bytes that they take, and how many pages they touch.
std::uint64_t bytes_in(const Blocks& blocks);
std::uint64_t pages_of(const Blocks& blocks);

class Snapshots {
 public:
  Snapshots(bundle::FolderWriter& folder, const TapedProcess& process)
      : folder_(folder), process_(process) {}

  // All pages, as they are now.
  Result<std::vector<bundle::PageRun>> take(StoppedThread& thread, const Blocks& blocks);
  // Those that differ from what was taken first.
  Result<std::vector<bundle::PageRun>> take_changes(StoppedThread& thread, const Blocks& blocks);
  // What lies there.
  Result<std::string> read(StoppedThread& thread, std::uint64_t address, std::uint64_t size,
                           bundle::BlockKind kind);

 private:
  using OnPage = std::function<Result<>(std::uint64_t address, std::string_view page)>;
  Result<> each_page(StoppedThread& thread, const Blocks& blocks, const OnPage& on_page);
  Result<> fill_window(StoppedThread& thread, const Blocks& blocks, std::uint64_t from,
                       std::uint64_t to);

  bundle::FolderWriter& folder_;
  const TapedProcess& process_;
  std::map<std::uint64_t, std::optional<std::uint32_t>> taken_;  // pages, by address
};

}  // namespace cudabpf::taping
