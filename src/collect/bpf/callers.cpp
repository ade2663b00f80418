#include "collect/bpf/callers.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "collect/libraries.hpp"
#include "cudabpf/holders.h"
#include "util/system/clock.hpp"

namespace cudabpf {

void Callers::expect(std::uint32_t pid) {
  std::lock_guard lock(mutex_);
  expected_.push_back(pid);
}

void Callers::catch_up() {
  std::uint64_t now = now_ns(CLOCK_MONOTONIC);
  auto code = read_code_();
  if (!code) return;
  if (code->lost) maps_.lost(now_ns(CLOCK_MONOTONIC));
  for (MappedCode& one : code->mapped)
    if (one.pid && is_traced_(one.pid)) maps_.mapped(std::move(one));
  caught_up_at_ = now;
  std::vector<std::uint32_t> expected;
  {
    std::lock_guard lock(mutex_);
    expected = std::exchange(expected_, {});
  }
  for (std::uint32_t pid : expected) look_through(pid);
}

void Callers::look_through(std::uint32_t pid) {
  privileges::Raised rights(rights_);
  std::uint64_t now = now_ns(CLOCK_MONOTONIC);
  maps_.looked_through(pid, Procfs().maps(static_cast<pid_t>(pid)), now);
}

void Callers::follow(const abi::cb_process& process) {
  std::uint32_t pid = process.head.pid;
  switch (process.head.kind) {
    case abi::CB_START:
      return look_through(pid);
    case abi::CB_FORK:
      return maps_.forked(process.ppid, pid, process.head.ts);
    case abi::CB_EXEC:
      return maps_.executed(pid, process.head.ts);
    default:
      return maps_.ended(pid);
  }
}

std::span<const std::byte> Callers::translated(std::span<const std::byte> record) {
  if (record.size() < sizeof(abi::cb_head)) return record;
  const auto& head = *reinterpret_cast<const abi::cb_head*>(record.data());
  if (head.kind == abi::CB_CALLER && record.size() >= sizeof(abi::cb_caller))
    return holder_record(*reinterpret_cast<const abi::cb_caller*>(record.data()));
  if (head.kind >= abi::CB_START && head.kind <= abi::CB_EXIT &&
      record.size() >= sizeof(abi::cb_process))
    follow(*reinterpret_cast<const abi::cb_process*>(record.data()));
  return record;
}

std::span<const std::byte> Callers::holder_record(const abi::cb_caller& caller) {
  constexpr std::size_t MAX_NAME = 255;
  std::string_view file = holder_of(caller).substr(0, MAX_NAME);
  std::size_t size = sizeof(abi::cb_head) + file.size() + 1;
  record_.assign((size + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t), 0);
  abi::cb_head head = caller.head;
  head.kind = abi::CB_HOLDER;
  head.nargs = head.struct_size = 0;
  head.string_size = static_cast<std::uint16_t>(file.size() + 1);
  std::memcpy(record_.data(), &head, sizeof(head));
  std::memcpy(reinterpret_cast<char*>(record_.data()) + sizeof(head), file.data(), file.size());
  return std::as_bytes(std::span(record_)).first(size);
}

std::string_view Callers::holder_of(const abi::cb_caller& caller) {
  const abi::cb_head& head = caller.head;
  if (head.ts >= caught_up_at_) catch_up();
  if (!maps_.knows(head.pid)) look_through(head.pid);  // for its later calls
  unwind::cu_memory stack{caller.stack, caller.sp,
                          std::min<std::uint64_t>(caller.size, CB_CALLER_STACK)};
  unwind::cu_frame frame{caller.ip, caller.sp, caller.bp, true};
  for (int i = 0; i < CU_MOST_FRAMES; i++) {
    const MappedCode* code = maps_.at(head.pid, frame.ip - 1, head.ts);
    if (!code || !code->path.starts_with('/') || code->path.starts_with("//")) return {};
    const char* file = unwind::cu_file_of(code->path.c_str());
    if (!unwind::cu_passes_on(file)) return file;
    const UnwindTables* tables = tables_of(*code);
    if (!tables || !tables->step(frame.ip - 1 - code->from + code->offset, stack, frame)) return {};
  }
  return {};
}

const UnwindTables* Callers::tables_of(const MappedCode& code) {
  Key key(code.device, code.inode, code.path);
  auto known = files_.find(key);
  if (known == files_.end()) {
    if (files_.size() == MAX_FILES) files_.clear();
    File& file = files_[key];
    privileges::Raised rights(rights_);
    auto opened = open_mapped_or_gone(Procfs(), {.pid = code.pid,
                                                 .address = code.from,
                                                 .length = code.to - code.from,
                                                 .device = code.device,
                                                 .inode = code.inode,
                                                 .path = code.path,
                                                 .api = &api(ApiId::cuda)});
    if (opened && opened->id.is_mapped_as(code.device, code.inode)) {
      file.fd = std::move(opened->fd);
      file.tables = UnwindTables::read(*elf::bytes_of_file(file.fd.get(), opened->id.size));
    }
    known = files_.find(key);
  }
  return known->second.tables ? &*known->second.tables : nullptr;
}

}  // namespace cudabpf
