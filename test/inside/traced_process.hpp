// The test's own process as one that is traced: with the memory that it would share with cudabpf,
// and cudabpf's reading of it. Both are in the same memory here, so that sanitizers see both.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "calling.h"
#include "collect/inside/record_clock.hpp"
#include "collect/inside/shared_rings.hpp"
#include "cudabpf/inside.h"

struct Record {
  cudabpf::abi::cb_head head;
  std::vector<std::uint64_t> words;  // what follows, filled up with zeros
};

class TracedProcess {
 public:
  explicit TracedProcess(const cudabpf::abi::ci_driver& driver = {},
                         cudabpf::abi::ci_clock clock = cudabpf::RecordClock::best())
      : file_(memfd_create("shared", MFD_CLOEXEC)), clock_(clock) {
    REQUIRE(ftruncate(file_.get(), static_cast<off_t>(SIZE)) == 0);
    void* memory =
        mmap(nullptr, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_.get(), 0);
    REQUIRE(memory != MAP_FAILED);
    memory_ = static_cast<std::byte*>(memory);
    shared().on = cudabpf::abi::CI_ALL;
    shared().clock = clock;
    std::memcpy(memory_ + CI_DRIVER_AT, &driver, sizeof(driver));
    calling_into(memory_);
  }
  ~TracedProcess() { munmap(memory_, SIZE); }
  TracedProcess(const TracedProcess&) = delete;
  TracedProcess& operator=(const TracedProcess&) = delete;

  cudabpf::abi::ci_shared& shared() { return *reinterpret_cast<cudabpf::abi::ci_shared*>(memory_); }
  cudabpf::abi::ci_ring& ring_header(std::size_t number) {
    return reinterpret_cast<cudabpf::abi::ci_ring*>(memory_ +
                                                    sizeof(cudabpf::abi::ci_shared))[number];
  }

  // Calls `each` with each record that can be read now, and the number of its ring. Rings that
  // their threads have left are free afterwards.
  template <typename Each>
  void read(Each&& each) {
    __atomic_fetch_add(&shared().reads, 1, __ATOMIC_RELAXED);
    for (std::size_t i = rings_.size(); i < __atomic_load_n(&shared().used, __ATOMIC_ACQUIRE);
         i++) {
      std::uint64_t offset = CI_RINGS_AT + i * CALLING_RING_SIZE;
      rings_.emplace_back(ring_header(i), memory_ + offset, CALLING_RING_SIZE, file_.get(), offset);
    }
    for (std::size_t i = 0; i < rings_.size(); i++) {
      cudabpf::ThreadRing& ring = rings_[i];
      ring.look();
      for (std::uint64_t now = clock_.now(); ring.next(now, now);) each(i, taken(ring));
      if (ring.was_left()) ring.free();
    }
  }
  std::vector<Record> read_all() {
    std::vector<Record> records;
    read([&](std::size_t, Record record) { records.push_back(std::move(record)); });
    return records;
  }

  // Counts of all rings, and of threads that found none.
  std::uint64_t counted(cudabpf::abi::cb_counter counter) {
    std::uint64_t sum = __atomic_load_n(&shared().counters[counter], __ATOMIC_RELAXED);
    for (std::size_t i = 0; i < shared().used; i++) sum += ring_header(i).counters[counter];
    return sum;
  }
  std::uint64_t broken() const {
    return static_cast<std::uint64_t>(std::count_if(
        rings_.begin(), rings_.end(), [](const auto& ring) { return ring.broken(); }));
  }

 private:
  static constexpr std::size_t SIZE = CI_RINGS_AT + std::size_t{CI_RINGS} * CALLING_RING_SIZE;

  Record taken(cudabpf::ThreadRing& ring) {
    std::array<std::byte, 8192> copy{};
    std::size_t size = ring.take(copy).size();
    Record record{};
    REQUIRE(size >= sizeof(record.head));
    std::memcpy(&record.head, copy.data(), sizeof(record.head));
    record.head.ts = clock_.ns(record.head.ts);
    record.words.resize((size - sizeof(record.head) + 7) / 8);
    if (size > sizeof(record.head))
      std::memcpy(record.words.data(), copy.data() + sizeof(record.head), record.words.size() * 8);
    return record;
  }

  cudabpf::Fd file_;
  cudabpf::RecordClock clock_;
  std::byte* memory_ = nullptr;
  std::vector<cudabpf::ThreadRing> rings_;
};

// A plan that records this many words and nothing else.
inline cudabpf::abi::cb_plan plan_of(unsigned words) {
  cudabpf::abi::cb_plan plan{};
  plan.nargs = words & 0x1f;
  plan.handle_arg = CB_NO_ARG;
  return plan;
}

using Arguments = std::array<std::uint64_t, CALLING_WORDS>;
