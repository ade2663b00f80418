#include "replay/ready.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "util/console/terminal.hpp"

namespace cudabpf::replay {

namespace {

constexpr int MAX_STARTS = 8;

Error not_to_be_had(const std::vector<Addresses>& moved) {
  constexpr std::size_t SHOWN = 4;
  std::string which;
  for (std::size_t i = 0; i < std::min(moved.size(), SHOWN); i++)
    which += fmt::format("{}{:#x} ({})", which.empty() ? "" : ", ", moved[i].begin.value,
                         human_bytes(moved[i].size));
  if (moved.size() > SHOWN) which += fmt::format(" and {} more", moved.size() - SHOWN);
  return {fmt::format("the program's memory lay where none of {} processes got any: {}", MAX_STARTS,
                      which),
          "nothing of the capture can be run without it; try again, or capture it again without "
          "setarch -R or a debugger"};
}

}  // namespace

Error error_of(const Answer& answer) { return {*answer.error, answer.hint.value_or("")}; }

Result<Answer> start_ready(std::optional<WorkerProcess>& worker, const Request& request,
                           std::chrono::milliseconds patience) {
  Answer answer;
  for (int i = 0; i < MAX_STARTS; i++) {
    worker.reset();
    worker.emplace(TRY(WorkerProcess::start(patience)));
    answer = worker->ask(request);
    if (answer.error) return error_of(answer);
    if (answer.moved.empty()) return answer;
  }
  return not_to_be_had(answer.moved);
}

}  // namespace cudabpf::replay
