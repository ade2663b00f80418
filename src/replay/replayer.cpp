#include "replay/replayer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "replay/ready.hpp"

namespace cudabpf::replay {

namespace {

constexpr std::size_t MAX_FAILURES = 8;  // of different kernels

bool has(const std::vector<std::uint32_t>& launches, std::uint32_t launch) {
  return std::count(launches.begin(), launches.end(), launch) > 0;
}

}  // namespace

Result<> Replayer::start() {
  worker_.reset();
  worker_.emplace(TRY(WorkerProcess::start(options_.patience)));
  return ok();
}

Result<Gpu> Replayer::gpu() {
  TRY(start());
  Answer answer = worker_->ask({.task = Task::describe, .folder = options_.folder});
  worker_.reset();
  if (answer.error) return error_of(answer);
  return answer.gpu.value_or(Gpu{});
}

Result<> Replayer::make_ready() {
  if (worker_) return ok();
  Request request{.task = Task::prepare,
                  .folder = options_.folder,
                  .left_out = left_out_,
                  .left_steps = left_steps_};
  Answer answer = TRY(start_ready(worker_, request, options_.patience));
  result_.gpu = answer.gpu.value_or(Gpu{});
  result_.notes = answer.notes;
  return ok();
}

Result<Answer> Replayer::run(Task task) {
  for (;;) {
    TRY(make_ready());
    Answer answer = worker_->ask({.task = task, .runs = options_.runs});
    if (!answer.error) return answer;
    TRY(find_failure(*answer.error));
  }
}

// GPUs report a fault when it suits them. Where it was shows only if each operation is waited for.
Result<> Replayer::find_failure(const std::string& why) {
  worker_.reset();
  TRY(make_ready());
  Answer answer = worker_->ask({.task = Task::walk});
  if (!answer.error)
    return Error{fmt::format("the tape failed ({}), but not when each of its operations was waited "
                             "for, so it is not known which one fails",
                             why),
                 {}};
  worker_.reset();
  if (!answer.step || *answer.step >= tape_->steps().size()) return error_of(answer);
  TRY(add_failure(*answer.step, *answer.error));
  if (const Step& step = tape_->steps()[*answer.step]; step.launch)
    left_out_.push_back(step.launch->kernel);
  else
    left_steps_.push_back(*answer.step);
  return ok();
}

Result<> Replayer::add_failure(std::uint64_t step, const std::string& why) {
  result_.failures.push_back({description_of(tape_->steps()[step], *manifest_), why});
  if (result_.failures.size() <= MAX_FAILURES) return ok();
  return Error{fmt::format("{} operations failed; the last one: {}: {}", result_.failures.size(),
                           result_.failures.back().what, why),
               {}};
}

Result<FullReplay> Replayer::full() {
  if (manifest_->contents) {
    Answer answer = TRY(run(Task::check));
    result_.comparison = answer.comparison;
    result_.skipped = answer.skipped;
  }
  if (options_.runs) {
    Answer answer = TRY(run(Task::time));
    result_.timing = answer.timing;
    result_.skipped = answer.skipped;
  }
  worker_.reset();
  return std::move(result_);
}

Result<bool> Replayer::isolate_all(IsolatedReplay& replay,
                                   const std::vector<DistinctLaunch>& distinct) {
  // What waits for a flag that the launch before it has set hangs when it is run once more. All of
  // the tape has been run in less.
  constexpr std::chrono::milliseconds USUAL = std::chrono::seconds(15);
  const auto most = std::max(USUAL, options_.patience / 4);
  for (IsolatedLaunch& launch : replay.launches) {
    if (has(not_isolated_, launch.launch)) continue;
    // One that was timed in a process that has ended since is not timed again.
    Answer answer = worker_->ask({.task = Task::isolate,
                                  .runs = launch.time ? 0 : options_.runs,
                                  .launch = launch.launch,
                                  .alone = has(alone_, launch.launch),
                                  .window_ms = options_.window_ms},
                                 most);
    if (answer.error) {
      std::size_t first = distinct[launch.launch].first;
      worker_.reset();
      // It may have been one of those before it, which may not be run this often.
      bool was_alone = has(alone_, launch.launch);
      (was_alone ? not_isolated_ : alone_).push_back(launch.launch);
      if (was_alone) TRY(add_failure(first, *answer.error + ", run by itself"));
      return false;
    }
    if (launch.time) continue;
    launch.time = answer.isolated;
    launch.energy = answer.isolated_energy;
    if (answer.no_energy) replay.no_energy = answer.no_energy;
  }
  return true;
}

// A GPU's clocks stay up for a while after work: the power of one that does nothing is that of one
// that may go on at any moment, as between a program's operations.
Result<> Replayer::repeat(IsolatedReplay& replay) {
  constexpr std::uint32_t WINDOWS = 12;
  replay.repeated = TRY(measured(Task::repeat, options_.window_ms * WINDOWS, replay));
  replay.idle = TRY(measured(Task::rest, options_.window_ms, replay));
  return ok();
}

Result<std::optional<Energy>> Replayer::measured(Task task, std::uint32_t window_ms,
                                                 IsolatedReplay& replay) {
  if (!worker_ && !make_ready()) return std::optional<Energy>();
  Answer answer = worker_->ask({.task = task, .window_ms = window_ms});
  if (answer.error) {
    worker_.reset();
    replay.no_energy = "the tape, run over and over: " + *answer.error;
  } else if (answer.no_energy) {
    replay.no_energy = answer.no_energy;
  }
  return answer.energy;
}

Result<IsolatedReplay> Replayer::isolated(const std::vector<std::uint32_t>& launches) {
  auto distinct = distinct_launches(*tape_, *manifest_);
  IsolatedReplay replay;
  for (std::uint32_t launch : launches) replay.launches.push_back({launch, {}});
  do TRY(run(manifest_->contents ? Task::check : Task::walk));
  while (!TRY(isolate_all(replay, distinct)));
  Answer answer = worker_->ask({.task = Task::finish});
  if (answer.error) return error_of(answer);
  result_.comparison = answer.comparison;
  result_.skipped = answer.skipped;
  if (options_.window_ms) TRY(repeat(replay));
  worker_.reset();
  replay.tape = std::move(result_);
  return replay;
}

}  // namespace cudabpf::replay
