#include "replay/worker/worker.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "replay/gpu/bench.hpp"
#include "replay/gpu/end_state.hpp"
#include "replay/gpu/saved_state.hpp"
#include "replay/timing/launch_timing.hpp"
#include "replay/timing/power_meter.hpp"
#include "replay/timing/tape_timing.hpp"
#include "replay/worker/attempts.hpp"
#include "replay/worker/extraction.hpp"

namespace cudabpf::replay {

namespace {

class Worker {
 public:
  explicit Worker(Progress& progress) : progress_(&progress) {}

  Answer answer(const Request& request) {
    Answer answer;
    if (auto done = work(request, answer); !done) {
      answer.error = done.error().message;
      if (!done.error().hint.empty()) answer.hint = done.error().hint;
      answer.step = progress_->step();
    }
    return answer;
  }

 private:
  Result<> work(const Request& request, Answer& answer) {
    if (!driver_) driver_ = TRY(Driver::load());
    switch (request.task) {
      case Task::describe:
        answer.gpu = TRY(gpu_of(*driver_, TRY(first_device(*driver_))));
        return ok();
      case Task::prepare:
        bench_ = TRY(Bench::set_up(*driver_, *progress_, request, answer));
        return ok();
      default:
        break;
    }
    if (!bench_) return Error{"nothing is prepared"};
    if (request.task == Task::isolate) return isolate(request, answer);
    if (request.task == Task::finish) return finish(answer);
    if (request.task == Task::rest) return rest(request.window_ms, answer);
    if (request.task == Task::extract) return extract(request, answer);
    if (request.task == Task::poison || request.task == Task::attempt)
      return attempt(request, answer);
    at_.reset();
    if (request.task == Task::repeat) return repeat(request.window_ms, answer);
    if (request.task == Task::time) return time(request.runs, answer);
    return request.task == Task::check ? check(answer) : walk(answer);
  }

  // Two runs show most of what is not deterministic. What then still differs from what the program
  // left may be the same in two runs by chance: more of them show it.
  static constexpr unsigned LEAST_RUNS = 2, MAX_RUNS = 8;

  Result<> check(Answer& answer) {
    end_.emplace(*driver_, bench_->folder(), bench_->code(), bench_->memory(), bench_->player());
    for (unsigned run = 0; run < LEAST_RUNS; run++) TRY(add_run(run));
    answer.comparison = TRY(compare(LEAST_RUNS));
    answer.skipped = bench_->player().skipped();
    return ok();
  }

  Result<> add_run(unsigned run) {
    TRY(bench_->load(run % 2));
    TRY(bench_->player().play({}));
    return end_->add_run();
  }

  Result<Comparison> compare(unsigned runs) {
    auto comparison = TRY(end_->compare());
    for (; runs < MAX_RUNS && comparison.is_different(); runs++) {
      TRY(add_run(runs));
      comparison = TRY(end_->compare());
    }
    comparison.runs = runs;
    return comparison;
  }

  Result<> walk(Answer& answer) {
    TRY(bench_->load(0));
    TRY(bench_->player().play({.waits_for_each = true}));
    answer.skipped = bench_->player().skipped();
    return ok();
  }

  // The first run is a warm-up.
  Result<> time(std::uint32_t runs, Answer& answer) {
    TapeTiming timing(*driver_, bench_->player());
    TRY(timing.prepare());
    TRY(bench_->load(0));
    Timing times;
    for (std::uint32_t i = 0; i <= runs; i++) {
      std::uint64_t ns = TRY(timing.run_ns());
      if (i) times.runs_ns.push_back(ns);
      TRY(bench_->restore());
    }
    std::vector<std::uint32_t> of_steps;
    distinct_launches(bench_->tape(), bench_->folder().manifest(), &of_steps);
    times.launches = TRY(timing.launches_ns(of_steps));
    answer.timing = std::move(times);
    answer.skipped = bench_->player().skipped();
    return ok();
  }

  // Everything up to a step, from the beginning unless some of it has been done already.
  Result<> play_up_to(std::size_t step) {
    bool is_past = !at_ || *at_ > step;
    if (is_past && saved_at_ && *saved_at_ <= step) {  // which takes less than reading the folder
      TRY(saved_->bring_back());
      at_ = saved_at_;
    } else if (is_past) {
      TRY(bench_->load(0));
      at_ = 0;
    }
    TRY(bench_->player().give({.begin = *at_, .end = step}));
    at_ = step;
    return bench_->player().finish();
  }

  Result<> prepare_isolation() {
    if (alone_) return ok();
    distinct_ = distinct_launches(bench_->tape(), bench_->folder().manifest());
    alone_.emplace(*driver_, bench_->player(), *progress_);
    TRY(alone_->prepare(bench_->device()));
    saved_.emplace(*driver_, bench_->memory(), bench_->code());
    if (!TRY(saved_->prepare())) saved_.reset();
    return ok();
  }

  // The launch is timed with what the tape before it left for it. Afterwards it is run once more,
  // for the tape after it: what that leaves shows whether the launch does the same by itself.
  Result<> isolate(const Request& request, Answer& answer) {
    TRY(prepare_isolation());
    if (request.launch >= distinct_.size()) return Error{"there is no such launch"};
    std::size_t step = distinct_[request.launch].first;
    TRY(play_up_to(step));
    if (request.runs && saved_) {
      TRY(saved_->save());
      saved_at_ = step;
    }
    TRY(play_up_to(step + 1));
    if (!request.runs || bench_->player().skipped_steps().contains(step)) return ok();
    if (saved_) TRY(saved_->bring_back());
    progress_->at(step);
    LaunchTiming::BringBack bring_back;
    if (saved_ && !request.alone) bring_back = [this] { return saved_->bring_back(); };
    answer.isolated = TRY(alone_->time(step, request.runs, bring_back));
    if (meter()) answer.isolated->clocks = meter()->clocks();
    if (request.window_ms && !answer.isolated->does_less_again && can_measure(answer)) {
      answer.isolated_energy = TRY(alone_->energy(step, request.window_ms, *meter_));
      if (!answer.isolated_energy->warm) answer.no_energy = meter_->fault();
    }
    progress_->at_no_step();
    at_.reset();
    return play_up_to(step + 1);
  }

  // Null: the GPU has none that can be read. Opened late: it maps libraries where memory may have
  // to lie.
  PowerMeter* meter() {
    if (!meter_ && no_meter_.empty()) {
      auto opened = PowerMeter::open(*driver_, bench_->device());
      if (opened)
        meter_ = std::move(*opened);
      else
        no_meter_ = opened.error().message;
    }
    return meter_.get();
  }
  bool can_measure(Answer& answer) {
    if (!meter()) answer.no_energy = no_meter_;
    return meter_ != nullptr;
  }

  Result<> rest(std::uint32_t window_ms, Answer& answer) {
    constexpr std::chrono::milliseconds NAP(5);
    if (!can_measure(answer)) return ok();
    auto nap = [NAP]() -> Result<> {
      std::this_thread::sleep_for(NAP);
      return ok();
    };
    return measure(nap, window_ms, answer);
  }

  // What a run leaves is what the next one begins with, as in the program.
  Result<> repeat(std::uint32_t window_ms, Answer& answer) {
    if (!can_measure(answer)) return ok();
    TRY(bench_->load(0));
    auto run = [this] { return bench_->player().play({}); };
    return measure(run, window_ms, answer);
  }

  Result<> measure(const std::function<Result<>()>& work, std::uint32_t window_ms, Answer& answer) {
    answer.energy = TRY(meter_->measure(work, window_ms, *progress_));
    if (!answer.energy) answer.no_energy = meter_->fault();
    return ok();
  }

  Result<> finish(Answer& answer) {
    TRY(play_up_to(bench_->tape().steps().size()));
    at_.reset();
    answer.skipped = bench_->player().skipped();
    if (!end_) return ok();
    TRY(end_->judge());
    answer.comparison = TRY(compare(LEAST_RUNS));
    return ok();
  }

  Result<> extract(const Request& request, Answer& answer) {
    Extraction extraction(*driver_, *progress_, *bench_,
                          [this](std::size_t step) { return play_up_to(step); });
    answer.extracted = TRY(extraction.extract(request));
    return ok();
  }

  // Memory is as each occurrence wants it anyway, once it was loaded.
  Result<> attempt(const Request& request, Answer& answer) {
    Attempts attempts(*driver_, *progress_, *bench_);
    TRY(bench_->load(0));
    at_.reset();
    if (request.task == Task::attempt) return attempts.attempt(request, answer);
    answer.poisoned = TRY(attempts.poison(ranges_of(request.within)));
    return ok();
  }

  Progress* progress_;
  std::optional<Driver> driver_;
  std::unique_ptr<Bench> bench_;
  std::optional<EndState> end_;
  std::optional<std::size_t> at_;  // the step that comes next; nothing: memory is as a run left it
  std::vector<DistinctLaunch> distinct_;
  std::optional<LaunchTiming> alone_;
  std::optional<SavedState> saved_;      // nothing: there is no room for it
  std::optional<std::size_t> saved_at_;  // the step that came next then
  std::unique_ptr<PowerMeter> meter_;
  std::string no_meter_;  // why there is none
};

}  // namespace

bool has_parent() {
  int kind = 0;
  socklen_t size = sizeof(kind);
  return ::getsockopt(SOCKET_FD, SOL_SOCKET, SO_TYPE, &kind, &size) == 0 &&
         ::fcntl(PROGRESS_FD, F_GETFD) >= 0;
}

Result<int> work_for_parent() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int fd : {SOCKET_FD, PROGRESS_FD}) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  Progress progress = TRY(Progress::in(Fd(PROGRESS_FD)));
  Lines lines{Fd(SOCKET_FD)};
  Worker worker(progress);
  while (auto line = TRY(lines.read()))
    TRY(lines.write(line_of(worker.answer(TRY(request_in(*line))))));
  return exit_code::OK;
}

}  // namespace cudabpf::replay
