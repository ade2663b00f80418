#include "taping/snapshot.hpp"

#include <algorithm>
#include <cstring>

namespace cudabpf::taping {

namespace {

constexpr std::uint64_t PAGE = bundle::PageRun::PAGE;
constexpr std::uint64_t page_of(std::uint64_t address) { return address & ~(PAGE - 1); }

std::uint64_t end_of(const bundle::Block& block) { return block.address.value + block.size; }

// Adds a page to the last run if it follows on it.
void append(std::vector<bundle::PageRun>& runs, std::uint64_t address,
            std::optional<std::uint32_t> place) {
  if (!runs.empty()) {
    bundle::PageRun& last = runs.back();
    bool next = last.address.value + last.pages * PAGE == address;
    bool same = last.first.has_value() == place.has_value() &&
                (!place || *last.first + last.pages == *place);
    if (next && same) {
      last.pages++;
      return;
    }
  }
  runs.push_back({{address}, 1, place});
}

Error failed(std::uint64_t address, std::uint64_t size, const abi::ci_reply& reply) {
  return {fmt::format("copying {} bytes at {:#x} of the program failed with {}", size, address,
                      reply.result),
          {}};
}

}  // namespace

std::uint64_t bytes_in(const Blocks& blocks) {
  std::uint64_t bytes = 0;
  for (const auto& [address, block] : blocks) bytes += block.size;
  return bytes;
}

std::uint64_t pages_of(const Blocks& blocks) {
  std::uint64_t pages = 0, counted_to = 0;
  for (const auto& [address, block] : blocks) {
    std::uint64_t from = std::max(page_of(address), counted_to);
    std::uint64_t to = page_of(end_of(block) + PAGE - 1);
    if (to > from) pages += (to - from) / PAGE;
    counted_to = std::max(counted_to, to);
  }
  return pages;
}

// Copies the parts of blocks in [from, to) into the window, whose first byte stands for `from`.
Result<> Snapshots::fill_window(StoppedThread& thread, const Blocks& blocks, std::uint64_t from,
                                std::uint64_t to) {
  std::memset(process_.window().data(), 0, to - from);
  auto at = blocks.upper_bound(from);
  if (at != blocks.begin()) --at;
  for (; at != blocks.end() && at->first < to; ++at) {
    const bundle::Block& block = at->second;
    std::uint64_t first = std::max(from, at->first), last = std::min(to, end_of(block));
    if (first >= last) continue;
    bool on_host = bundle::is_on_host(block.kind);
    auto reply = TRY(thread.order(on_host ? abi::CI_COPY_HOST : abi::CI_COPY, first, last - first,
                                  first - from));
    if (reply.result) return failed(first, last - first, reply);
  }
  return ok();
}

Result<> Snapshots::each_page(StoppedThread& thread, const Blocks& blocks, const OnPage& on_page) {
  std::uint64_t done_to = 0;
  for (const auto& [address, block] : blocks) {
    std::uint64_t end = page_of(end_of(block) + PAGE - 1);
    // The window is filled by pages that follow each other, whichever blocks they belong to.
    for (std::uint64_t from = std::max(page_of(address), done_to); from < end;) {
      std::uint64_t to = std::min(end, from + CI_WINDOW_SIZE);
      TRY(fill_window(thread, blocks, from, to));
      for (std::uint64_t page = from; page < to; page += PAGE)
        TRY(on_page(
            page, {reinterpret_cast<const char*>(process_.window().data()) + (page - from), PAGE}));
      from = to;
    }
    done_to = std::max(done_to, end);
  }
  return ok();
}

Result<std::vector<bundle::PageRun>> Snapshots::take(StoppedThread& thread, const Blocks& blocks) {
  std::vector<bundle::PageRun> runs;
  TRY(each_page(thread, blocks, [&](std::uint64_t address, std::string_view page) -> Result<> {
    auto place = TRY(folder_.add_page(page));
    taken_[address] = place;
    append(runs, address, place);
    return ok();
  }));
  return runs;
}

Result<std::vector<bundle::PageRun>> Snapshots::take_changes(StoppedThread& thread,
                                                             const Blocks& blocks) {
  std::vector<bundle::PageRun> runs;
  TRY(each_page(thread, blocks, [&](std::uint64_t address, std::string_view page) -> Result<> {
    auto before = taken_.find(address);
    if (before != taken_.end() && TRY(folder_.has_page(before->second, page))) return ok();
    append(runs, address, TRY(folder_.add_page(page)));
    return ok();
  }));
  return runs;
}

Result<std::string> Snapshots::read(StoppedThread& thread, std::uint64_t address,
                                    std::uint64_t size, bundle::BlockKind kind) {
  std::string bytes;
  bool on_host = kind != bundle::BlockKind::device;
  while (bytes.size() < size) {
    std::uint64_t here = address + bytes.size();
    std::uint64_t part = std::min<std::uint64_t>(size - bytes.size(), CI_WINDOW_SIZE);
    auto reply = TRY(thread.order(on_host ? abi::CI_COPY_HOST : abi::CI_COPY, here, part, 0));
    if (reply.result) return failed(here, part, reply);
    bytes.append(reinterpret_cast<const char*>(process_.window().data()), part);
  }
  return bytes;
}

}  // namespace cudabpf::taping
