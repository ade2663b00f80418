// The memory that a traced process shares with cudabpf, and how its rings are read. The process may
// write all of it at any time: each number is checked after it was read once, each record is copied
// before it is looked at.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "cudabpf/inside.h"
#include "util/result.hpp"
#include "util/system/fd.hpp"

namespace cudabpf {

// What was counted inside a process: see cb_counter.
struct InsideCounts {
  std::uint64_t entered = 0, emitted = 0;
  std::array<std::uint64_t, abi::CB_COUNTERS> dropped{};  // by cb_counter, from CB_DROPPED_ENTRY on
  std::uint64_t unread = 0;                               // written, and given up by cudabpf

  // Records that were emitted, dropped or given up. A record that is still being written is none.
  std::uint64_t known() const;
  // Sums of what processes claim stay at their largest value instead of wrapping around.
  InsideCounts& operator+=(const InsideCounts& more);
};

// A thread's records. Threads come and go; a ring serves one after the other.
class ThreadRing {
 public:
  // `offset`: of the data in the file.
  ThreadRing(abi::ci_ring& shared, const std::byte* data, std::uint64_t size, int file,
             std::uint64_t offset)
      : shared_(&shared), data_(data), size_(size), file_(file), offset_(offset) {}

  // Looks how much the thread has written. True if much of the ring is taken.
  bool look();
  // When the next record was made; nothing: there is none, or it was made after `until`. `looked`:
  // after the last look(); none was made later.
  std::optional<std::uint64_t> next(std::uint64_t until, std::uint64_t looked);
  // Copies the record, and goes on. Only after next() found one. Empty: it makes no sense.
  std::span<const std::byte> take(std::span<std::byte> copy);

  std::uint32_t tid() const { return __atomic_load_n(&shared_->tid, __ATOMIC_ACQUIRE); }
  // What its thread has lost, and what was given up of it.
  std::uint32_t drops() const {
    return __atomic_load_n(&shared_->drops, __ATOMIC_RELAXED) + static_cast<std::uint32_t>(unread_);
  }
  // Its thread has gone and all of it was read.
  bool was_left();
  bool in_use() const;
  // Its thread has died without leaving the ring.
  void leave();
  // Gives its memory back and lets another thread have it.
  void free();
  // The ring is not written any more, and all that makes sense was read.
  void end();
  // Reads nothing of it from here on. The number of unread records follows from one look at the
  // head and at what the thread has counted: a ring may hold more than there is time or memory to
  // touch.
  void give_up();

  std::uint64_t taken() const { return taken_; }
  std::uint64_t unread() const { return unread_; }
  bool given_up() const { return given_up_; }
  bool broken() const { return broken_; }

 private:
  void break_off() { broken_ = true; }

  abi::ci_ring* shared_;
  const std::byte* data_;
  std::uint64_t size_;
  int file_;
  std::uint64_t offset_;
  std::uint64_t head_ = 0, tail_ = 0;
  std::uint64_t taken_ = 0, unread_ = 0;  // records
  bool broken_ = false, given_up_ = false;
  std::uint32_t found_ = 0;  // size of the record that next() found
};

class SharedRings {
 public:
  // The largest record that the library makes: a stack.
  static constexpr std::uint32_t LARGEST = sizeof(abi::cb_stack) + CB_STACK_SIZE;

  // `driver`: what the library is to record of the driver; `libraries`: whose calls, besides
  // libcuda's; `clock`: what its records' times are. `ring_size`: a power of two.
  static Result<SharedRings> make(const abi::ci_driver& driver, const abi::ci_libraries& libraries,
                                  abi::ci_clock clock, std::uint64_t ring_size = CI_RING_SIZE);
  SharedRings(SharedRings&& other) noexcept;
  SharedRings& operator=(SharedRings&&) = delete;
  ~SharedRings();

  int fd() const { return file_.get(); }
  static std::uint64_t size(std::uint64_t ring_size = CI_RING_SIZE);

  // From now on no new calls are recorded (or nothing at all); calls that are writing finish.
  void record(abi::ci_on what);
  // According to the process, no call is writing any more.
  bool is_at_rest() const;

  // --- by the reader
  void note_read();  // a reader that does not is taken for dead after a while
  // How many rings have ever been used. Rings never move.
  std::size_t rings();
  ThreadRing& ring(std::size_t number);
  // Counts what waits in all rings as lost, and reads nothing from here on.
  void abandon();

  // What the process claims, limited to what can be true. Losses that it has reported stay
  // reported: the sum over all processes must not fall, or it would hide what others lose. Without
  // the record that a thread is writing: the thread may be killed before it is done. Then the
  // record's call had not begun, or had not returned to the program.
  InsideCounts counts();
  // How many records have been read.
  std::uint64_t taken() const;
  // Rings that could not be read to their end.
  std::uint64_t broken() const;

  // What is known at the end, when nothing more is read; and whether the process has counted what
  // it wrote, except for one record of each thread, which may never be finished.
  struct Books {
    InsideCounts counts;
    bool fit = true;
  };
  Books close_books();

 private:
  SharedRings(Fd file, std::byte* memory, std::uint64_t ring_size)
      : file_(std::move(file)), memory_(memory), ring_size_(ring_size) {}
  abi::ci_shared& head() const { return *reinterpret_cast<abi::ci_shared*>(memory_); }
  abi::ci_ring& ring_header(std::size_t number) const;
  std::size_t used() const;
  std::uint64_t most_in_ring() const;
  // A process loses less than one record a nanosecond.
  std::uint64_t most_lost() const;
  InsideCounts claimed(const __u64* counters) const;
  InsideCounts counts_of_ring(std::size_t number) const;
  bool fits(std::size_t number) const;

  Fd file_;
  std::byte* memory_ = nullptr;
  std::uint64_t ring_size_;
  std::uint64_t made_ns_ = 0;
  std::vector<ThreadRing> rings_;
  InsideCounts most_;       // that was lost
  bool took_back_ = false;  // some of what it had claimed to have lost
};

}  // namespace cudabpf
