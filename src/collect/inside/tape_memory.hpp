// The memory in which a process keeps what its calls were given, and the connection of a thread of
// it that stands at a launch.
#pragma once

#include <memory>

#include "collect/inside/listener.hpp"
#include "cudabpf/inside.h"
#include "cudabpf/taped_process.hpp"
#include "util/system/fd.hpp"

namespace cudabpf {

class TapeMemory final : public TapedProcess {
 public:
  static constexpr std::uint64_t SIZE = CI_PAYLOADS_AT + (std::uint64_t{4} << 30);

  static Result<std::shared_ptr<TapeMemory>> make(std::uint32_t pid);
  TapeMemory(const TapeMemory&) = delete;
  TapeMemory& operator=(const TapeMemory&) = delete;
  ~TapeMemory() override;

  int fd() const { return file_.get(); }
  void stop_first_at(std::uint64_t launch) { head().first_stop = launch; }

  std::uint32_t pid() const override { return pid_; }
  void keep(abi::ci_keeps what) override;
  void hold(std::uint32_t tid) override;
  std::uint32_t threads_in_calls() const override;
  std::uint64_t lost() const override;
  std::optional<Payload> payload(std::uint64_t place) const override;
  std::span<std::byte> window() const override;

 private:
  TapeMemory(Fd file, std::byte* memory, std::uint32_t pid)
      : file_(std::move(file)), memory_(memory), pid_(pid) {}
  abi::ci_tape& head() const { return *reinterpret_cast<abi::ci_tape*>(memory_); }

  Fd file_;
  std::byte* memory_;
  std::uint32_t pid_;
};

class StandingThread final : public StoppedThread {
 public:
  StandingThread(Connection connection, std::uint32_t inner_tid, std::uint32_t tid)
      : connection_(std::move(connection)), inner_tid_(inner_tid), tid_(tid) {}
  ~StandingThread() override;

  std::uint32_t pid() const override { return static_cast<std::uint32_t>(connection_.pid); }
  std::uint32_t tid() const override { return tid_; }
  std::uint32_t inner_tid() const override { return inner_tid_; }
  Result<abi::ci_reply> order(abi::ci_do what, std::uint64_t a0, std::uint64_t a1,
                              std::uint64_t a2) override;
  void go_on(std::uint64_t launches, bool at_wait, std::uint32_t tid) override;

 private:
  bool send(abi::ci_do what, std::uint64_t a0, std::uint64_t a1, std::uint64_t a2);

  Connection connection_;
  std::uint32_t inner_tid_, tid_;
};

}  // namespace cudabpf
