#include "collect/inside/shared_rings.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <numeric>

#include "util/console/terminal.hpp"
#include "util/saturating.hpp"
#include "util/system/clock.hpp"
#include "util/system/copied.hpp"

namespace cudabpf {

namespace {

// A record made later than the last look by more than this has a wrong time: in nanoseconds, or in
// ticks, which are shorter.
constexpr std::uint64_t WRONG = 1'000'000'000;

constexpr std::uint64_t padded(std::uint64_t size) { return (size + 7) & ~std::uint64_t{7}; }

// What records take in a ring.
constexpr std::uint64_t SMALLEST_RECORD = sizeof(abi::ci_slot) + sizeof(abi::cb_head);
constexpr std::uint64_t MAX_RECORD = sizeof(abi::ci_slot) + padded(SharedRings::LARGEST);

std::uint64_t relaxed(const __u64& number) { return __atomic_load_n(&number, __ATOMIC_RELAXED); }

InsideCounts read_counters(const __u64* counters) {
  InsideCounts counts;
  counts.entered = relaxed(counters[abi::CB_ENTERED]);
  counts.emitted = relaxed(counters[abi::CB_EMITTED]);
  for (std::size_t i = abi::CB_DROPPED_ENTRY; i < abi::CB_COUNTERS; i++)
    counts.dropped[i] = relaxed(counters[i]);
  return counts;
}

InsideCounts without_unwritten(InsideCounts counts) {
  if (counts.entered == counts.known() + 1) counts.entered--;
  return counts;
}

std::uint64_t distance(std::uint64_t one, std::uint64_t other) {
  return std::max(one, other) - std::min(one, other);
}

bool exceed(const InsideCounts& counts, std::uint64_t most_lost) {
  return std::any_of(counts.dropped.begin(), counts.dropped.end(),
                     [=](std::uint64_t lost) { return lost > most_lost; });
}

}  // namespace

std::uint64_t InsideCounts::known() const {
  return std::accumulate(dropped.begin(), dropped.end(), saturating_sum(emitted, unread),
                         saturating_sum<std::uint64_t>);
}

InsideCounts& InsideCounts::operator+=(const InsideCounts& more) {
  entered = saturating_sum(entered, more.entered);
  emitted = saturating_sum(emitted, more.emitted);
  unread = saturating_sum(unread, more.unread);
  for (std::size_t i = 0; i < dropped.size(); i++)
    dropped[i] = saturating_sum(dropped[i], more.dropped[i]);
  return *this;
}

std::uint64_t SharedRings::size(std::uint64_t ring_size) {
  return CI_RINGS_AT + CI_RINGS * ring_size;
}

Result<SharedRings> SharedRings::make(const abi::ci_driver& driver,
                                      const abi::ci_libraries& libraries, abi::ci_clock clock,
                                      std::uint64_t ring_size) {
  const std::uint64_t size = SharedRings::size(ring_size);
  Fd file(memfd_create("cudabpf", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ftruncate(file.get(), static_cast<off_t>(size)) != 0) {
    bool limited = errno == EFBIG;
    auto error = errno_error("making memory to share");
    if (limited)
      error.message += fmt::format("; the limit on the size of files (ulimit -f) is below {}",
                                   human_bytes(CI_RINGS * ring_size));
    return error;
  }
  // The process has it, too: if the process could shrink it, reading would kill cudabpf.
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return errno_error("sealing memory to share");
  void* memory =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.get(), 0);
  if (memory == MAP_FAILED) return errno_error("mapping memory to share");
  SharedRings shared(std::move(file), static_cast<std::byte*>(memory), ring_size);
  shared.made_ns_ = now_ns(CLOCK_MONOTONIC);
  shared.head().version = CI_VERSION;
  shared.head().clock = clock;
  shared.record(abi::CI_ALL);
  std::memcpy(shared.memory_ + CI_DRIVER_AT, &driver, sizeof(driver));
  std::memcpy(shared.memory_ + CI_LIBRARIES_AT, &libraries, sizeof(libraries));
  shared.rings_.reserve(CI_RINGS);
  return shared;
}

SharedRings::SharedRings(SharedRings&& other) noexcept
    : file_(std::move(other.file_)),
      memory_(std::exchange(other.memory_, nullptr)),
      ring_size_(other.ring_size_),
      made_ns_(other.made_ns_),
      rings_(std::move(other.rings_)),
      most_(other.most_),
      took_back_(other.took_back_) {}

SharedRings::~SharedRings() {
  if (memory_) munmap(memory_, size(ring_size_));
}

abi::ci_ring& SharedRings::ring_header(std::size_t number) const {
  return reinterpret_cast<abi::ci_ring*>(memory_ + sizeof(abi::ci_shared))[number];
}

void SharedRings::note_read() { __atomic_fetch_add(&head().reads, 1, __ATOMIC_RELAXED); }

void SharedRings::record(abi::ci_on what) {
  __atomic_store_n(&head().on, static_cast<__u32>(what), __ATOMIC_RELEASE);
}

std::size_t SharedRings::rings() {
  for (std::size_t i = rings_.size(); i < used(); i++) {
    std::uint64_t offset = CI_RINGS_AT + i * ring_size_;
    rings_.emplace_back(ring_header(i), memory_ + offset, ring_size_, fd(), offset);
  }
  return rings_.size();
}

ThreadRing& SharedRings::ring(std::size_t number) { return rings_[number]; }

std::size_t SharedRings::used() const {
  return std::min<std::size_t>(__atomic_load_n(&head().used, __ATOMIC_ACQUIRE), CI_RINGS);
}

bool SharedRings::is_at_rest() const {
  InsideCounts sum = read_counters(head().counters);
  for (std::size_t i = 0; i < used(); i++) sum += read_counters(ring_header(i).counters);
  return sum.entered <= sum.known();
}

std::uint64_t SharedRings::most_in_ring() const { return ring_size_ / SMALLEST_RECORD; }

std::uint64_t SharedRings::most_lost() const { return now_ns(CLOCK_MONOTONIC) - made_ns_; }

InsideCounts SharedRings::claimed(const __u64* counters) const {
  InsideCounts counts = read_counters(counters);
  std::uint64_t most = most_lost();
  for (std::uint64_t& lost : counts.dropped) lost = std::min(lost, most);
  return counts;
}

InsideCounts SharedRings::counts_of_ring(std::size_t number) const {
  const ThreadRing* ring = number < rings_.size() ? &rings_[number] : nullptr;
  std::uint64_t taken = ring ? ring->taken() : 0;
  InsideCounts counts;
  if (ring && ring->broken()) {
    // What the process claims is worth nothing; what was read is known.
    counts.entered = counts.emitted = taken;
    return counts;
  }
  counts = claimed(ring_header(number).counters);
  std::uint64_t most_left = ring && ring->given_up() ? 0 : most_in_ring();
  counts.emitted = std::clamp(counts.emitted, taken, taken + most_left);
  if (ring) counts.unread = ring->unread();
  counts.entered =
      std::clamp(counts.entered, counts.known(), saturating_sum(counts.known(), most_in_ring()));
  return without_unwritten(counts);
}

InsideCounts SharedRings::counts() {
  InsideCounts sum = claimed(head().counters);  // of threads without a ring
  sum.emitted = 0;
  sum.entered = sum.known();
  for (std::size_t i = 0; i < used(); i++) sum += counts_of_ring(i);
  for (std::size_t i = 0; i < sum.dropped.size(); i++) {
    std::uint64_t less = most_.dropped[i] - std::min(most_.dropped[i], sum.dropped[i]);
    took_back_ |= less > 0;
    sum.dropped[i] += less;
    sum.entered = saturating_sum(sum.entered, less);
  }
  most_.dropped = sum.dropped;
  return sum;
}

bool SharedRings::fits(std::size_t number) const {
  constexpr std::uint64_t UNDER_WAY = 1;
  const ThreadRing& ring = rings_[number];
  InsideCounts said = read_counters(ring_header(number).counters);
  std::uint64_t written = ring.taken() + ring.unread();
  return distance(said.emitted, written) <= UNDER_WAY && !exceed(said, most_lost()) &&
         distance(said.entered, said.known()) <= UNDER_WAY;
}

SharedRings::Books SharedRings::close_books() {
  Books books;
  for (std::size_t i = 0; i < rings(); i++) rings_[i].end();
  InsideCounts without_ring = read_counters(head().counters);
  books.fit = without_ring.emitted == 0 && !exceed(without_ring, most_lost()) &&
              distance(without_ring.entered, without_ring.known()) <= CI_RINGS;
  for (std::size_t i = 0; i < rings_.size(); i++)
    books.fit &= rings_[i].broken() || fits(i);  // of a broken one it is known that it is wrong
  books.counts = counts();
  books.fit &= !took_back_ || broken() > 0;
  // It may have been killed between writing a record and counting it, or the other way round.
  books.counts.emitted = taken();
  books.counts.entered = books.counts.known();
  return books;
}

void SharedRings::abandon() {
  for (std::size_t i = 0; i < rings(); i++) rings_[i].give_up();
}

std::uint64_t SharedRings::taken() const {
  std::uint64_t sum = 0;
  for (const ThreadRing& ring : rings_) sum += ring.taken();
  return sum;
}

std::uint64_t SharedRings::broken() const {
  return static_cast<std::uint64_t>(std::count_if(
      rings_.begin(), rings_.end(), [](const ThreadRing& ring) { return ring.broken(); }));
}

bool ThreadRing::look() {
  constexpr unsigned MUCH = 8;  // one part in this many
  if (broken_ || given_up_) return false;
  std::uint64_t head = __atomic_load_n(&shared_->head, __ATOMIC_ACQUIRE);
  if (head % 8 || head < head_ || head - tail_ > size_) {
    break_off();
    return false;
  }
  head_ = head;
  return head_ - tail_ > size_ / MUCH;
}

std::optional<std::uint64_t> ThreadRing::next(std::uint64_t until, std::uint64_t looked) {
  while (!broken_ && tail_ < head_) {
    std::uint64_t at = tail_ & (size_ - 1);
    auto slot = copied<abi::ci_slot>(data_ + at);
    if (slot.skip) {
      std::uint64_t rest = size_ - at;
      if (at == 0 || rest > head_ - tail_) break;
      tail_ += rest;
      continue;
    }
    std::uint64_t needed = sizeof(slot) + padded(slot.size);
    if (slot.size < sizeof(abi::cb_head) || slot.size > SharedRings::LARGEST ||
        needed > head_ - tail_ || needed > size_ - at)
      break;
    auto head = copied<abi::cb_head>(data_ + at + sizeof(slot));
    if (head.ts > until) {
      if (head.ts > looked && head.ts - looked > WRONG) break;
      return std::nullopt;
    }
    found_ = slot.size;
    return head.ts;
  }
  if (tail_ < head_) break_off();
  return std::nullopt;
}

std::span<const std::byte> ThreadRing::take(std::span<std::byte> copy) {
  std::uint64_t at = tail_ & (size_ - 1);
  std::size_t size = std::min<std::size_t>(found_, copy.size());
  std::memcpy(copy.data(), data_ + at + sizeof(abi::ci_slot), size);
  tail_ += sizeof(abi::ci_slot) + padded(found_);
  __atomic_store_n(&shared_->tail, tail_, __ATOMIC_RELEASE);
  taken_++;
  return copy.first(size);
}

bool ThreadRing::in_use() const {
  return __atomic_load_n(&shared_->state, __ATOMIC_ACQUIRE) == abi::CI_USED;
}

bool ThreadRing::was_left() {
  if (broken_ || __atomic_load_n(&shared_->state, __ATOMIC_ACQUIRE) != abi::CI_LEFT) return false;
  look();  // the last of it may have come since
  return !broken_ && tail_ == head_;
}

void ThreadRing::leave() {
  __u32 used = abi::CI_USED;
  __atomic_compare_exchange_n(&shared_->state, &used, __u32{abi::CI_LEFT}, false, __ATOMIC_RELEASE,
                              __ATOMIC_RELAXED);
}

void ThreadRing::free() {
  __atomic_store_n(&shared_->tail, tail_, __ATOMIC_RELEASE);
  __atomic_store_n(&shared_->tid, 0, __ATOMIC_RELAXED);  // nor is the next thread's known at once
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset_),
            static_cast<off_t>(size_));
  __atomic_store_n(&shared_->state, __u32{abi::CI_FREE}, __ATOMIC_RELEASE);
}

void ThreadRing::give_up() {
  if (given_up_) return;
  look();
  given_up_ = true;
  std::uint64_t left = head_ - tail_;
  if (broken_ || left == 0) return;
  std::uint64_t written = relaxed(shared_->counters[abi::CB_EMITTED]);
  std::uint64_t least = std::max<std::uint64_t>(left / MAX_RECORD, 1);
  std::uint64_t most = std::max(left / SMALLEST_RECORD, least);
  unread_ = std::clamp(written - std::min(written, taken_), least, most);
  tail_ = head_;
}

void ThreadRing::end() {
  if (tail_ < head_) break_off();
}

}  // namespace cudabpf
