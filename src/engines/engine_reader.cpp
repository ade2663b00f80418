#include "engines/engine_reader.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "util/console/log.hpp"
#include "util/system/pidfd.hpp"
#include "util/system/privileges.hpp"
#include "util/system/threads.hpp"

namespace cudabpf::engines {

Result<> EngineReader::start() {
  end_ = Fd(::eventfd(0, EFD_CLOEXEC));
  if (!end_) return errno_error("asking the engine");
  thread_ = thread_without_signals([this] {
    privileges::keep_only({});
    run();
  });
  return ok();
}

void EngineReader::stop() {
  if (!thread_.joinable()) return;
  std::uint64_t one = 1;
  [[maybe_unused]] auto written = ::write(end_.get(), &one, sizeof(one));
  thread_.join();
}

Heard EngineReader::heard() const {
  std::lock_guard lock(mutex_);
  return heard_;
}

void EngineReader::run() {
  do {
    auto figures = ask();
    report(figures);
    std::lock_guard lock(mutex_);
    heard_.is_up = static_cast<bool>(figures);
    heard_.figures = figures ? std::move(*figures) : Figures();
  } while (!http::Patience::of(BETWEEN).wait(end_.get(), POLLIN));
}

Result<Figures> EngineReader::ask() {
  auto answer = TRY(client_.get("text/plain", http::Patience::of(PATIENCE, end_.get())));
  if (answer.status != 200) return Error{fmt::format("{} {}", answer.status, answer.reason)};
  Figures figures = figures_in(answer.body);
  if (figures.samples.empty()) return Error{"it shows no metrics of vLLM or SGLang"};
  return figures;
}

// When it begins to be missed, and when it is there again.
void EngineReader::report(const Result<Figures>& figures) {
  bool is_missed = !figures;
  if (is_missed == is_missed_ || (is_missed && is_readable(end_.get()))) return;
  is_missed_ = is_missed;
  if (is_missed)
    log::warning("the engine at {} cannot be read: {}", client_.url().text(),
                 figures.error().message);
  else
    log::note("the engine at {} can be read again", client_.url().text());
}

}  // namespace cudabpf::engines
