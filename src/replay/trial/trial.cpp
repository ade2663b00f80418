#include "replay/trial/trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "replay/layout.hpp"
#include "replay/microseconds.hpp"
#include "replay/ready.hpp"
#include "replay/trial/value_errors.hpp"

namespace cudabpf::replay {

namespace {

// The candidate gets a process of its own: it may fault, hang, or write where it likes.
class Rehearsal {
 public:
  Rehearsal(const bundle::Folder& folder, const Tape& tape, const TrialOptions& options,
            std::vector<Occurrence> occurrences)
      : folder_(&folder),
        tape_(&tape),
        options_(&options),
        occurrences_(std::move(occurrences)),
        distinct_(distinct_launches(tape, folder.manifest())) {
    // Two processes have the memory at once, and each a copy of it while it is timed.
    memory_ = 4 * size_of(layout_of(folder.manifest(), tape).device);
  }

  Result<Trial> run() {
    TRY(find_poison());
    TRY(check_original());
    say_what_cannot_be_told();
    if (!try_it()) return std::move(trial_);
    TRY(time_all());
    judge();
    return std::move(trial_);
  }

 private:
  // By itself: what comes before a launch in this folder does not in the program.
  Request isolate(std::uint32_t launch, std::uint32_t runs) const {
    Request isolate = request(Task::isolate);
    isolate.launch = launch;
    isolate.runs = runs;
    isolate.alone = true;
    return isolate;
  }

  Request request(Task task) const {
    Request request;
    request.task = task;
    request.folder = options_->folder;
    return request;
  }

  Result<> ready_original() {
    if (original_) return ok();
    Answer answer = TRY(start_ready(original_, request(Task::prepare), options_->patience));
    trial_.gpu = answer.gpu.value_or(Gpu{});
    return ok();
  }

  Result<> ready_candidate() {
    if (candidate_) return ok();
    Request prepare = request(Task::prepare);
    prepare.candidate = options_->candidate;
    prepare.candidate_for = options_->kernel;
    Answer answer = TRY(start_ready(candidate_, prepare, options_->patience));
    if (is_noted_) return ok();
    is_noted_ = true;
    trial_.notes.insert(trial_.notes.end(), answer.notes.begin(), answer.notes.end());
    return ok();
  }

  // All that it writes, in pieces that are far apart.
  std::vector<Range> pieces() const {
    std::vector<Range> all;
    for (const Occurrence& one : occurrences_)
      for (const Range& range : ranges_of(one.out)) all.push_back(range);
    all = merged(std::move(all));
    return all.empty() ? all : joined(all, {{all.front().begin, all.back().end}}, NEAR_BY);
  }

  // False: with poison there, it fails.
  Result<bool> try_poison(const std::vector<Range>& within) {
    constexpr std::chrono::seconds MAX(5);  // it takes milliseconds, or hangs
    TRY(ready_original());
    Request poison = request(Task::poison);
    poison.within = addresses_of(within);
    Answer answer = original_->ask(poison, MAX);
    if (answer.error) {
      why_not_poisoned_ = *answer.error;
      original_.reset();
      return false;
    }
    trial_.poisoned.resize(occurrences_.size());
    for (std::size_t i = 0; i < std::min(answer.poisoned.size(), occurrences_.size()); i++) {
      Poisoned& all = trial_.poisoned[i];
      const Poisoned& more = answer.poisoned[i];
      all.ranges.insert(all.ranges.end(), more.ranges.begin(), more.ranges.end());
      all.inputs += more.inputs;
    }
    return true;
  }

  // A kernel that follows a pointer or an index in what it also writes may fault, and one that
  // waits there for a flag waits for ever: then its pieces are tried one by one.
  Result<> find_poison() {
    constexpr std::size_t MAX_PIECES = 8;
    std::vector<Range> all = pieces();
    if (TRY(try_poison(all))) return ok();
    std::sort(all.begin(), all.end(),
              [](const Range& a, const Range& b) { return a.size() > b.size(); });
    std::uint64_t whole = size_of(all), left = whole;
    for (std::size_t i = 0; i < std::min(all.size(), MAX_PIECES); i++) {
      if (left == all.back().size()) break;  // only the last is left, so that is why
      if (TRY(try_poison({all[i]}))) left -= all[i].size();
    }
    std::string what = left == whole ? "what it writes"
                                     : fmt::format("{} of {} bytes that it writes", left, whole);
    trial_.notes.push_back(fmt::format(
        "{} could not be poisoned, since the original then fails ({})", what, why_not_poisoned_));
    return ok();
  }

  Result<> check_original() {
    TRY(ready_original());
    Request again = request(Task::attempt);
    again.launches = shuffled(occurrences_.size(), 2);
    again.poisoned = trial_.poisoned;
    Answer answer = original_->ask(again);
    if (answer.error) return error_of(answer);
    for (const Attempted& one : answer.attempted)
      if (one.different)
        return Error{fmt::format("the original does not give the expected bytes here: {} of {} are "
                                 "different",
                                 one.different, one.compared),
                     "replay the folder by itself to see more"};
    usual_ = std::move(answer);
    if (std::any_of(usual_.attempted.begin(), usual_.attempted.end(),
                    [](const Attempted& one) { return one.compared; }))
      return ok();
    return Error{"nothing that the kernel leaves is the same each time, so nothing can be compared",
                 {}};
  }

  // If all occurrences are to leave the same, one that remembers the first is right each time.
  void say_what_cannot_be_told() {
    auto outputs = [this](const Occurrence& one) {
      std::string all;
      for (const Occurrence::Part& part : one.out)
        if (auto bytes = folder_->data(part.bytes))
          all += fmt::format("{:x} {:x} ", part.range.begin, std::hash<std::string>{}(*bytes));
      return all;
    };
    std::string first = outputs(occurrences_.front());
    if (std::all_of(occurrences_.begin(), occurrences_.end(),
                    [&](const Occurrence& one) { return outputs(one) == first; }))
      trial_.notes.push_back(
          "all occurrences leave the same bytes: a candidate that always writes these, whatever "
          "its inputs, would not be noticed");
  }

  // False: it failed, or could not even be loaded.
  bool try_it() {
    if (auto ready = ready_candidate(); !ready) {
      trial_.failure = {"the candidate", ready.error().message};
      return false;
    }
    Request attempt = request(Task::attempt);
    attempt.launches = shuffled(occurrences_.size(), options_->rounds);
    attempt.poisoned = trial_.poisoned;
    Answer answer = candidate_->ask(attempt);
    if (answer.error) {
      fail(answer);
      return false;
    }
    trial_.attempted = std::move(answer.attempted);
    // The original changes what is not deterministic, too.
    trial_.strayed = but_not(answer.strayed, usual_.strayed);
    for (std::size_t i = 0; i < std::min(trial_.attempted.size(), usual_.attempted.size()); i++)
      trial_.attempted[i].touched =
          but_not(trial_.attempted[i].touched, usual_.attempted[i].touched);
    return true;
  }

  static std::vector<Addresses> but_not(const std::vector<Addresses>& changed,
                                        const std::vector<Addresses>& usual) {
    return addresses_of(without_all(merged(ranges_of(changed)), ranges_of(usual)));
  }

  void fail(const Answer& answer) {
    std::string what = "the candidate";
    if (answer.step && *answer.step < tape_->steps().size())
      what += ", in place of " + description_of(tape_->steps()[*answer.step], folder_->manifest());
    trial_.failure = {what, *answer.error};
    candidate_.reset();
  }

  void add(std::optional<IsolatedTime>& to, const std::optional<IsolatedTime>& more) {
    if (!more) return;
    if (!to) to.emplace();
    to->launches = more->launches;
    to->warm_ns.insert(to->warm_ns.end(), more->warm_ns.begin(), more->warm_ns.end());
    to->cold_ns.insert(to->cold_ns.end(), more->cold_ns.begin(), more->cold_ns.end());
  }

  // In turns, since a GPU's clock changes; but not both at once where there is no room.
  Result<> time_all() {
    constexpr std::uint32_t MAX_TURNS = 5;
    for (std::uint32_t i = 0; i < distinct_.size(); i++) trial_.times.push_back({i, {}, {}});
    std::uint32_t turns = memory_ < trial_.gpu.memory ? std::min(options_->runs, MAX_TURNS) : 1;
    for (std::uint32_t turn = 0; turn < turns; turn++) {
      std::uint32_t runs = options_->runs * (turn + 1) / turns - options_->runs * turn / turns;
      if (!runs) continue;
      if (turns == 1) candidate_.reset();
      TRY(time_original(runs));
      if (turns == 1) original_.reset();
      if (!time_candidate(runs)) return ok();
    }
    return ok();
  }

  Result<> time_original(std::uint32_t runs) {
    TRY(ready_original());
    for (TimedPair& pair : trial_.times) {
      Answer answer = original_->ask(isolate(pair.launch, runs));
      if (answer.error) {  // run over and over, it may fail: then there is no time
        trial_.notes.push_back("the original, run by itself: " + *answer.error);
        original_.reset();
        TRY(ready_original());
        continue;
      }
      add(pair.original, answer.isolated);
    }
    return ok();
  }

  bool time_candidate(std::uint32_t runs) {
    if (auto ready = ready_candidate(); !ready) {
      trial_.failure = {"the candidate", ready.error().message};
      return false;
    }
    for (TimedPair& pair : trial_.times) {
      if (!pair.original) continue;
      Answer answer = candidate_->ask(isolate(pair.launch, runs));
      if (answer.error) {
        fail(answer);
        return false;
      }
      add(pair.candidate, answer.isolated);
    }
    return true;
  }

  void judge() {
    if (trial_.failure) return;
    auto is_same = [](const Attempted& one) { return !one.different; };
    auto is_near = [this](const Attempted& one) {
      return is_within(one.errors[static_cast<std::size_t>(*options_->as)], options_->tolerance);
    };
    const auto& all = trial_.attempted;
    bool is_elsewhere = !trial_.strayed.empty() ||
                        std::any_of(all.begin(), all.end(),
                                    [](const Attempted& one) { return !one.touched.empty(); });
    trial_.verdict = Verdict::different;
    if (is_elsewhere) return;
    if (std::all_of(all.begin(), all.end(), is_same))
      trial_.verdict = Verdict::same;
    else if (options_->as && std::all_of(all.begin(), all.end(), is_near))
      trial_.verdict = Verdict::within;
  }

  const bundle::Folder* folder_;
  const Tape* tape_;
  const TrialOptions* options_;
  std::vector<Occurrence> occurrences_;
  std::vector<DistinctLaunch> distinct_;
  std::uint64_t memory_ = 0;
  bool is_noted_ = false;
  std::string why_not_poisoned_;
  std::optional<WorkerProcess> original_, candidate_;
  Answer usual_;  // of the original
  Trial trial_;
};

}  // namespace

Result<Trial> try_candidate(const bundle::Folder& folder, const Tape& tape,
                            const TrialOptions& options) {
  auto occurrences = occurrences_in(tape, folder.manifest());
  if (!occurrences) return Error{"the folder has not one kernel alone", "make one with --export"};
  return Rehearsal(folder, tape, options, std::move(*occurrences)).run();
}

std::vector<std::uint64_t> shuffled(std::size_t occurrences, std::uint32_t rounds) {
  std::mt19937_64 random{std::random_device{}()};
  std::vector<std::uint64_t> round(occurrences), all;
  std::iota(round.begin(), round.end(), std::uint64_t{0});
  for (std::uint32_t i = 0; i < rounds; i++) {
    std::shuffle(round.begin(), round.end(), random);
    all.insert(all.end(), round.begin(), round.end());
  }
  return all;
}

std::optional<SpeedUp> speed_up(const std::vector<std::uint64_t>& original_ns,
                                const std::vector<std::uint64_t>& candidate_ns) {
  std::size_t count = std::min(original_ns.size(), candidate_ns.size());
  if (!count || median_us(candidate_ns) == 0) return std::nullopt;
  SpeedUp speed{median_us(original_ns) / median_us(candidate_ns), 0, 0};
  speed.least = speed.most = speed.median;
  for (std::size_t i = 0; i < count; i++) {
    if (!candidate_ns[i]) continue;
    double one = us(original_ns[i]) / us(candidate_ns[i]);
    speed.least = std::min(speed.least, one);
    speed.most = std::max(speed.most, one);
  }
  return speed;
}

}  // namespace cudabpf::replay
