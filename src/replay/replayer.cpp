#include "replay/replayer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "replay/ready.hpp"

namespace cudabpf::replay {

namespace {

constexpr std::size_t MOST_FAILURES = 8;  // of different kernels

}  // namespace

Result<> Replayer::start() {
  worker_.reset();
  worker_.emplace(TRY(WorkerProcess::start(options_.patience)));
  return ok();
}

Result<Gpu> Replayer::gpu() {
  TRY(start());
  Answer answer = worker_->ask({Task::describe, options_.folder, {}, {}, 0, 0});
  worker_.reset();
  if (answer.error) return error_of(answer);
  return answer.gpu.value_or(Gpu{});
}

Result<> Replayer::make_ready() {
  if (worker_) return ok();
  Request request{Task::prepare, options_.folder, left_out_, left_steps_, 0, 0};
  Answer answer = TRY(start_ready(worker_, request, options_.patience));
  result_.gpu = answer.gpu.value_or(Gpu{});
  result_.notes = answer.notes;
  return ok();
}

Result<Answer> Replayer::run(Task task) {
  for (;;) {
    TRY(make_ready());
    Answer answer = worker_->ask({task, options_.folder, {}, {}, options_.runs, 0});
    if (!answer.error) return answer;
    TRY(find_failure(*answer.error));
  }
}

// GPUs report a fault when it suits them. Where it was shows only if each operation is waited for.
Result<> Replayer::find_failure(const std::string& why) {
  worker_.reset();
  TRY(make_ready());
  Answer answer = worker_->ask({Task::walk, options_.folder, {}, {}, 0, 0});
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
  if (result_.failures.size() <= MOST_FAILURES) return ok();
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

Result<bool> Replayer::isolate_all(std::vector<IsolatedLaunch>& launches,
                                   const std::vector<DistinctLaunch>& distinct) {
  for (IsolatedLaunch& launch : launches) {
    if (std::count(not_isolated_.begin(), not_isolated_.end(), launch.launch)) continue;
    // One that was timed in a process that has ended since is not timed again.
    Request request{Task::isolate, options_.folder, {}, {}, launch.time ? 0 : options_.runs,
                    launch.launch};
    Answer answer = worker_->ask(request);
    if (answer.error) {
      std::size_t first = distinct[launch.launch].first;
      worker_.reset();
      not_isolated_.push_back(launch.launch);
      TRY(add_failure(first, *answer.error + ", run by itself"));
      return false;
    }
    if (!launch.time) launch.time = answer.isolated;
  }
  return true;
}

Result<IsolatedReplay> Replayer::isolated(const std::vector<std::uint32_t>& launches) {
  auto distinct = distinct_launches(*tape_, *manifest_);
  IsolatedReplay replay;
  for (std::uint32_t launch : launches) replay.launches.push_back({launch, {}});
  do TRY(run(manifest_->contents ? Task::check : Task::walk));
  while (!TRY(isolate_all(replay.launches, distinct)));
  Answer answer = worker_->ask({Task::finish, options_.folder, {}, {}, 0, 0});
  if (answer.error) return error_of(answer);
  result_.comparison = answer.comparison;
  result_.skipped = answer.skipped;
  worker_.reset();
  replay.tape = std::move(result_);
  return replay;
}

}  // namespace cudabpf::replay
