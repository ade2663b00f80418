// From where in a process an allocation was asked for: what the kernel has copied of its stack, and
// which files' code lies where, say whose code that was.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "collect/bpf/mapping_watch.hpp"
#include "collect/code_maps.hpp"
#include "collect/unwind_tables.hpp"
#include "cudabpf/caller.h"
#include "util/system/fd.hpp"
#include "util/system/privileges.hpp"

namespace cudabpf {

class Callers {
 public:
  using IsTraced = std::function<bool(std::uint32_t pid)>;
  using ReadCode = std::function<std::optional<MappingWatch::Code>()>;

  // `rights`: to read what /proc says of the traced processes.
  Callers(IsTraced is_traced, ReadCode read_code, Capabilities rights)
      : is_traced_(std::move(is_traced)), read_code_(std::move(read_code)), rights_(rights) {}

  // This process may be running, and is traced from now on. For any thread.
  void expect(std::uint32_t pid);
  // Reads what was mapped until now.
  void catch_up();
  // The record, or the one that it stands for; valid until the next call.
  std::span<const std::byte> translated(std::span<const std::byte> record);

 private:
  struct File {
    Fd fd;  // so that no other file gets its inode
    std::optional<UnwindTables> tables;
  };
  using Key = std::tuple<std::uint64_t, std::uint64_t, std::string>;
  static constexpr std::size_t MAX_FILES = 64;

  void follow(const abi::cb_process& process);
  void look_through(std::uint32_t pid);
  std::span<const std::byte> holder_record(const abi::cb_caller& caller);
  // The name of the holder's file; empty: it is not known.
  std::string_view holder_of(const abi::cb_caller& caller);
  const UnwindTables* tables_of(const MappedCode& code);

  IsTraced is_traced_;
  ReadCode read_code_;
  Capabilities rights_;
  CodeMaps maps_;
  std::uint64_t caught_up_at_ = 0;
  std::map<Key, File> files_;
  std::vector<std::uint64_t> record_;
  std::mutex mutex_;
  std::vector<std::uint32_t> expected_;
};

}  // namespace cudabpf
