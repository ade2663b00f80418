// Asks an inference engine for its metrics every few seconds.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <utility>

#include "engines/engine_figures.hpp"
#include "util/http/client.hpp"
#include "util/result.hpp"
#include "util/system/stoppable_thread.hpp"

namespace cudabpf::engines {

// What an engine has said, as of the last time that it was asked.
struct Heard {
  std::string address;  // HOST:PORT
  bool is_up = false;   // it has answered, with figures that are known here
  Figures figures = {};
};

class EngineReader {
 public:
  explicit EngineReader(http::Url url) : client_(std::move(url), MAX_PAGE) {
    heard_.address = client_.url().authority();
  }

  // Asks from now on, on a thread without rights.
  Result<> start() {
    return thread_.start("asking the engine", [this] { run(); });
  }
  void stop() { thread_.stop(); }
  // Does not wait.
  Heard heard() const;

 private:
  static constexpr std::size_t MAX_PAGE = std::size_t{4} << 20;
  static constexpr std::chrono::seconds BETWEEN{5}, PATIENCE{1};

  void run();
  Result<Figures> ask();
  void report(const Result<Figures>& figures);

  http::Client client_;
  bool is_missed_ = false;  // and that was reported
  mutable std::mutex mutex_;
  Heard heard_;
  StoppableThread thread_;  // last: it has ended before what it uses is gone
};

}  // namespace cudabpf::engines
