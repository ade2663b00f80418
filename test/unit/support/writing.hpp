// Writes traces of sample calls.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>

#include "support/sample_calls.hpp"
#include "trace/files/jsonl.hpp"
#include "util/system/clock.hpp"
#include "util/system/fd.hpp"

namespace cudabpf {

inline constexpr std::uint64_t RETRY_NS = 50'000'000;

inline Session session_now() {
  Session session;
  session.version = "0.1.0";
  session.monotonic_ns = now_ns(CLOCK_MONOTONIC);
  return session;
}

inline std::unique_ptr<JsonlSink> open_sink(OutputOptions output) {
  JsonlOptions options;
  options.output = std::move(output);
  options.output.retry_ns = RETRY_NS;
  auto sink = JsonlSink::open(options);
  if (!sink) FAIL(sink.error().message);
  return std::move(*sink);
}

inline OutputOptions to_path(const std::filesystem::path& path) {
  OutputOptions output;
  output.path = path;
  return output;
}

inline OutputOptions to_stream(int fd) {
  OutputOptions output;
  output.path = "-";
  output.stream = fd;
  return output;
}

inline void make_calls(JsonlSink& sink, std::uint64_t first, std::uint64_t count) {
  SampleCall call("cuLaunchKernel", {0x55d0, 4096, 2, 1, 256, 1, 1, 1024, 0x7f00, 0x1234, 0});
  for (std::uint64_t id = first; id < first + count; id++) {
    call.id = id;
    sink.call(call);
  }
}

inline Totals totals_of(std::uint64_t calls) {
  Totals totals;
  totals.counts.calls = calls;
  totals.reason = "command ended";
  return totals;
}

inline void wait_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// Calls flush(), as every poll does, until what was there has surely been handed over.
inline void flush_for(JsonlSink& sink, int ms) {
  for (int i = 0; i <= ms; i += 10) {
    wait_ms(10);
    sink.flush();
  }
  wait_ms(20);
}

// Calls flush() until the file is larger than `size`.
inline void flush_until_larger(JsonlSink& sink, const std::filesystem::path& path,
                               std::uintmax_t size) {
  for (int i = 0; i < 1000 && std::filesystem::file_size(path) <= size; i++) {
    wait_ms(10);
    sink.flush();
  }
  REQUIRE(std::filesystem::file_size(path) > size);
}

// Silences warnings about what the test causes.
class QuietStderr {
 public:
  QuietStderr() : saved_(::dup(2)) {
    Fd null(::open("/dev/null", O_WRONLY));
    ::dup2(null.get(), 2);
  }
  ~QuietStderr() { ::dup2(saved_.get(), 2); }

 private:
  Fd saved_;
};

}  // namespace cudabpf
