#include "engines/engine_reader.hpp"

#include <fmt/format.h>

#include "util/console/log.hpp"

namespace cudabpf::engines {

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
  } while (!http::Patience::of(BETWEEN).wait(thread_.stop_fd(), POLLIN));
}

Result<Figures> EngineReader::ask() {
  auto answer = TRY(client_.get("text/plain", http::Patience::of(PATIENCE, thread_.stop_fd())));
  if (answer.status != 200) return Error{fmt::format("{} {}", answer.status, answer.reason)};
  Figures figures = figures_in(answer.body);
  if (figures.samples.empty()) return Error{"it shows no metrics of vLLM or SGLang"};
  return figures;
}

// When it begins to be missed, and when it is there again.
void EngineReader::report(const Result<Figures>& figures) {
  bool is_missed = !figures;
  if (is_missed == is_missed_ || (is_missed && thread_.is_stopping())) return;
  is_missed_ = is_missed;
  if (is_missed)
    log::warning("the engine at {} cannot be read: {}", client_.url().text(),
                 figures.error().message);
  else
    log::note("the engine at {} can be read again", client_.url().text());
}

}  // namespace cudabpf::engines
