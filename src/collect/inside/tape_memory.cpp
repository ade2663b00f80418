#include "collect/inside/tape_memory.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <utility>

#include "util/system/copied.hpp"

namespace cudabpf {

Result<std::shared_ptr<TapeMemory>> TapeMemory::make(std::uint32_t pid) {
  Fd file(memfd_create("cudabpf-tape", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ftruncate(file.get(), static_cast<off_t>(SIZE)) != 0)
    return errno_error("making memory for a capture");
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return errno_error("sealing memory for a capture");
  void* memory =
      mmap(nullptr, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.get(), 0);
  if (memory == MAP_FAILED) return errno_error("mapping memory for a capture");
  std::shared_ptr<TapeMemory> made(
      new TapeMemory(std::move(file), static_cast<std::byte*>(memory), pid));
  made->keep(abi::CI_KEEPS_CODE);
  return made;
}

TapeMemory::~TapeMemory() { munmap(memory_, SIZE); }

void TapeMemory::keep(abi::ci_keeps what) {
  __atomic_store_n(&head().keeps, static_cast<__u32>(what), __ATOMIC_RELEASE);
}

void TapeMemory::hold(std::uint32_t tid) {
  __atomic_store_n(&head().held, tid, __ATOMIC_SEQ_CST);
  if (!tid) syscall(SYS_futex, &head().held, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

std::uint32_t TapeMemory::threads_in_calls() const {
  return __atomic_load_n(&head().inside, __ATOMIC_SEQ_CST);
}

std::uint64_t TapeMemory::lost() const { return __atomic_load_n(&head().lost, __ATOMIC_RELAXED); }

std::span<std::byte> TapeMemory::window() const { return {memory_ + CI_WINDOW_AT, CI_WINDOW_SIZE}; }

std::optional<Payload> TapeMemory::payload(std::uint64_t place) const {
  constexpr std::uint64_t HEAD = sizeof(abi::ci_payload);
  if (place < CI_PAYLOADS_AT || place % sizeof(std::uint64_t) || place > SIZE - HEAD)
    return std::nullopt;
  auto head = copied<abi::ci_payload>(memory_ + place);
  std::uint64_t room = SIZE - place - HEAD;
  Payload payload;
  if (head.size > room || CI_PADDED(head.size) > room || head.more > room - CI_PADDED(head.size))
    return std::nullopt;
  payload.from_host = head.from_host;
  payload.at = head.from;
  payload.size = head.size;
  if (head.state > abi::CI_UNREADABLE || !head.state) return std::nullopt;
  payload.state = static_cast<abi::ci_payload_state>(head.state);
  const char* bytes = reinterpret_cast<const char*>(memory_ + place + HEAD);
  if (payload.state == abi::CI_ELSEWHERE) payload.size = head.stream;
  if (payload.state == abi::CI_FILLED) payload.bytes.assign(bytes, head.size);
  payload.more.assign(bytes + CI_PADDED(head.size), head.more);
  return payload;
}

// ----- a thread that stands

// Its process may send whatever it likes; what it waits for is that it is closed.
StandingThread::~StandingThread() = default;

bool StandingThread::send(abi::ci_do what, std::uint64_t a0, std::uint64_t a1, std::uint64_t a2) {
  abi::ci_order order{CI_VERSION, static_cast<__u32>(what), {a0, a1, a2, 0}};
  return cudabpf::send(connection_.socket.get(), std::as_bytes(std::span(&order, 1)), {});
}

Result<abi::ci_reply> StandingThread::order(abi::ci_do what, std::uint64_t a0, std::uint64_t a1,
                                            std::uint64_t a2) {
  constexpr int PATIENCE_MS = 120'000;
  if (!send(what, a0, a1, a2)) return Error{"the process does not take orders any more", {}};
  pollfd reply{connection_.socket.get(), POLLIN, 0};
  if (poll(&reply, 1, PATIENCE_MS) <= 0) return Error{"the process did not follow an order", {}};
  alignas(8) std::byte buffer[sizeof(abi::ci_reply)];
  auto first = peek(connection_.socket.get(), buffer);
  if (!first || first->is_none || first->brings_descriptors || first->size != sizeof(buffer))
    return Error{"the process has ended, or sent no reply to an order", {}};
  take_away(connection_.socket.get());
  return copied<abi::ci_reply>(buffer);
}

void StandingThread::go_on(std::uint64_t launches, bool at_wait, std::uint32_t tid) {
  send(abi::CI_GO_ON, launches, at_wait, tid);
}

}  // namespace cudabpf
