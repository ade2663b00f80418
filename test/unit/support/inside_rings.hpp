// Writes to shared memory as the library inside a process does, and what it never would.
#pragma once

#include <sys/mman.h>
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "collect/inside/shared_rings.hpp"

namespace cudabpf {

// Shared memory as the process has it, which may write anything.
class Inside {
 public:
  explicit Inside(std::uint64_t ring_size = CI_RING_SIZE)
      : owner(std::make_shared<SharedRings>(
            std::move(*SharedRings::make({}, {}, abi::CI_MONOTONIC, ring_size)))),
        shared(*owner),
        ring_size_(ring_size) {
    memory_ = static_cast<std::byte*>(mmap(nullptr, SharedRings::size(ring_size_),
                                           PROT_READ | PROT_WRITE, MAP_SHARED, shared.fd(), 0));
    REQUIRE(memory_ != MAP_FAILED);
  }
  ~Inside() { munmap(memory_, SharedRings::size(ring_size_)); }

  abi::ci_shared& head() { return *reinterpret_cast<abi::ci_shared*>(memory_); }
  abi::ci_ring& ring(std::size_t number = 0) {
    return reinterpret_cast<abi::ci_ring*>(memory_ + sizeof(abi::ci_shared))[number];
  }
  std::byte* data(std::size_t number = 0) { return memory_ + CI_RINGS_AT + number * ring_size_; }

  void take_ring(std::uint32_t tid, std::size_t number = 0) {
    ring(number).state = abi::CI_USED;
    ring(number).tid = tid;
    head().used = std::max<std::uint32_t>(head().used, static_cast<std::uint32_t>(number) + 1);
  }
  void put_slot(std::uint64_t at, abi::ci_slot slot, std::size_t number = 0) {
    std::memcpy(data(number) + at % ring_size_, &slot, sizeof(slot));
  }
  // As the library does it, without checking that there is space.
  void write(std::uint64_t ts, std::uint32_t size = sizeof(abi::cb_head), std::size_t number = 0) {
    abi::ci_ring& to = ring(number);
    std::uint64_t at = to.head % ring_size_, needed = sizeof(abi::ci_slot) + (size + 7) / 8 * 8;
    if (needed > ring_size_ - at) {
      put_slot(at, {0, 1}, number);
      to.head += ring_size_ - at;
      at = 0;
    }
    abi::cb_head record{};
    record.ts = ts;
    record.kind = abi::CB_ENTRY;
    std::memcpy(data(number) + at + sizeof(abi::ci_slot), &record, sizeof(record));
    put_slot(at, {size, 0}, number);
    to.head += needed;
    to.counters[abi::CB_ENTERED]++;
    to.counters[abi::CB_EMITTED]++;
  }

  const std::shared_ptr<SharedRings> owner;
  SharedRings& shared;

 private:
  std::uint64_t ring_size_;
  std::byte* memory_ = nullptr;
};

}  // namespace cudabpf
