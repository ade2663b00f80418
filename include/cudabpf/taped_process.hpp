// A process of which an iteration is to be captured, as the source of its records gives access to
// it. What the process wrote is hostile: each answer is a copy, whose lengths are checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "cudabpf/taping.h"
#include "util/result.hpp"

namespace cudabpf {

// What a call was given, or what it brought: see ci_payload.
struct Payload {
  abi::ci_payload_state state = abi::CI_UNREADABLE;
  bool from_host = false;
  std::uint64_t at = 0;    // where its bytes lie in the process
  std::uint64_t size = 0;  // of its bytes there
  std::string bytes, more;
};

class TapedProcess {
 public:
  virtual ~TapedProcess() = default;
  virtual std::uint32_t pid() const = 0;
  virtual void keep(abi::ci_keeps what) = 0;
  // All threads but this one wait at their next call; 0: none does.
  virtual void hold(std::uint32_t tid) = 0;
  virtual std::uint32_t threads_in_calls() const = 0;
  virtual std::uint64_t lost() const = 0;  // payloads for which there was no room
  // Nothing: there is none at that place.
  virtual std::optional<Payload> payload(std::uint64_t place) const = 0;
  // Where orders put what they found. It changes only while a thread follows an order, if the
  // process is honest.
  virtual std::span<std::byte> window() const = 0;
};

// A thread that stands at a launch, until this is destroyed or lets it go on.
class StoppedThread {
 public:
  virtual ~StoppedThread() = default;
  virtual std::uint32_t pid() const = 0;
  virtual std::uint32_t tid() const = 0;
  // As the process itself knows it.
  virtual std::uint32_t inner_tid() const = 0;
  // Waits for the reply. Not for CI_GO_ON, which has none.
  virtual Result<abi::ci_reply> order(abi::ci_do what, std::uint64_t a0 = 0, std::uint64_t a1 = 0,
                                      std::uint64_t a2 = 0) = 0;
  // See CI_GO_ON.
  virtual void go_on(std::uint64_t launches, bool at_wait = false, std::uint32_t tid = 0) = 0;
};

// Who captures. Called by the thread that controls the source.
class Taping {
 public:
  virtual ~Taping() = default;
  // At which launch the process stops first; 0: it is not to be captured.
  virtual std::uint64_t begins(std::shared_ptr<TapedProcess> process) = 0;
  virtual void stopped(std::unique_ptr<StoppedThread> thread) = 0;
};

}  // namespace cudabpf
