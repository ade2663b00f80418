// Has calls counted rather than recorded, as far as that is enough, and prints what came of it when
// it ends: a JSON line for each process and function, and one for the books; and at once, whose
// sums were the last ones. It ends with the command, or on SIGINT and SIGTERM. "ready" on stdout
// says that it has begun.
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "capture/capture.hpp"
#include "collect/bpf/bpf_source.hpp"
#include "util/system/fd.hpp"
#include "util/system/pipe.hpp"

namespace {

using namespace cudabpf;
using nlohmann::json;

constexpr int FAILED = 1;

void print(const json& line) { printf("%s\n", line.dump().c_str()); }

// What has come to a sink, added up.
class Sums final : public PartialSink {
 public:
  void call(const Call& call) override {
    Sum& sum = of(call.pid, *call.function);
    sum.recorded++;
    sum.whole += call.has_return && !call.entry_lost;
  }
  void process(const Process& process) override {
    constexpr const char* OPS[] = {"start", "fork", "exec", "exit"};
    print({{"process", OPS[static_cast<int>(process.op)]}, {"pid", process.pid}});
  }
  void lost(const LossEvent& loss) override {
    losses_[std::string(info(loss.reason).name)] += loss.count.value_or(1);
  }
  void end(const Totals& totals) override { totals_ = totals; }

  std::uint64_t oldest_tallies_ns() const override { return 100'000'000; }
  void tallied(const Tallies& tallies) override {
    std::set<std::uint32_t> gone;
    for (const Tally& tally : tallies.functions) {
      Sum& sum = of(tally.pid, *tally.function);
      sum.went_back |= tally.calls < sum.now.calls || tally.ended < sum.now.ended ||
                       tally.time_ns < sum.now.time_ns;
      sum.now = tally;
      if (!tally.last) continue;
      gone.insert(tally.pid);
      sum.lasts++;
      sum.before.calls += tally.calls;
      sum.before.ended += tally.ended;
      sum.before.time_ns += tally.time_ns;
      sum.before.failed += tally.failed;
      sum.before.bytes += tally.bytes;
      sum.now = {};
    }
    for (const ClassTally& tally : tallies.classes)
      add(classes_[{tally.pid, std::string(to_string(tally.of))}], tally.times.calls, tally.last);
    for (const FailureTally& tally : tallies.failures)
      add(failures_[{tally.pid, std::to_string(tally.result)}], std::array{tally.calls},
          tally.last);
    for (std::uint32_t pid : gone) print({{"gone", pid}});
  }

  void print_all() const {
    for (const auto& [of, sum] : sums_)
      print({{"pid", of.first},
             {"symbol", of.second},
             {"recorded", sum.recorded},
             {"whole", sum.whole},
             {"calls", sum.before.calls + sum.now.calls},
             {"ended", sum.before.ended + sum.now.ended},
             {"time_ns", sum.before.time_ns + sum.now.time_ns},
             {"failed", sum.before.failed + sum.now.failed},
             {"bytes", sum.before.bytes + sum.now.bytes},
             {"lasts", sum.lasts},
             {"went_back", sum.went_back}});
    for (const auto& [of, sum] : classes_)
      print({{"pid", of.first}, {"class", of.second}, {"took", sum.before}, {"lasts", sum.lasts}});
    for (const auto& [of, sum] : failures_)
      print({{"pid", of.first}, {"result", of.second}, {"failed", sum.before[0]}});
    const Accounts& records = totals_.accounts;
    const TallyAccounts& tallied = totals_.tallied;
    print({{"losses", losses_},
           {"records",
            {{"entered", records.entered},
             {"emitted", records.emitted},
             {"dropped", records.dropped},
             {"received", records.received}}},
           {"tallied",
            {{"begun", tallied.begun},
             {"ended", tallied.ended},
             {"under_way", tallied.under_way},
             {"dropped", tallied.dropped}}}});
  }

 private:
  struct Sum {
    std::uint64_t recorded = 0, whole = 0, lasts = 0;
    Tally before, now;  // of earlier processes with the pid; of this one
    bool went_back = false;
  };
  // What classes and results add up to, of processes that are gone.
  struct Counts {
    std::vector<std::uint64_t> before;
    std::uint64_t lasts = 0;
  };
  template <typename More>
  static void add(Counts& counts, const More& more, bool last) {
    counts.before.resize(more.size());
    if (!last) return;
    counts.lasts++;
    for (std::size_t i = 0; i < more.size(); i++) counts.before[i] += more[i];
  }
  Sum& of(std::uint32_t pid, const Function& function) {
    return sums_[{pid, std::string(function.symbol)}];
  }

  std::map<std::pair<std::uint32_t, std::string>, Sum> sums_;
  std::map<std::pair<std::uint32_t, std::string>, Counts> classes_, failures_;
  std::map<std::string, std::uint64_t> losses_;
  Totals totals_;
};

// Waits until `go` is closed, so that the command is selected before it runs.
pid_t start_held_back(std::vector<std::string> command, Pipe& go) {
  pid_t child = fork();
  if (child != 0) return child;
  go.to_write.reset();
  char end;
  [[maybe_unused]] ssize_t got = read(go.to_read.get(), &end, 1);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  perror(arguments[0]);
  _exit(127);
}

int fail(const Error& error) {
  fprintf(stderr, "print_tallies: %s\n", error.message.c_str());
  return FAILED;
}

// Until the command ends, or one of these signals comes. Returns the command's status.
int wait_for_end(Capture& capture, int signals, pid_t child) {
  constexpr int OFTEN_MS = 100;
  std::vector<pollfd> polled{{signals, POLLIN, 0}};
  for (int fd : capture.source().watch_fds()) polled.push_back({fd, POLLIN, 0});
  int status = 0;
  while (!(polled.front().revents & POLLIN)) {
    if (child && waitpid(child, &status, WNOHANG) == child) break;
    poll(polled.data(), polled.size(), OFTEN_MS);
    capture.look();
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  SourceOptions options;
  options.filter.profile = Profile::full;
  options.filter.tally = true;
  std::vector<std::uint32_t> pids;
  std::vector<std::string> command;
  CLI::App app("Counts calls.");
  app.add_option("--library", options.libraries)->allow_extra_args(false);
  app.add_option("--only", options.filter.only)->allow_extra_args(false);
  app.add_option("--room", options.most_tallies);
  app.add_flag("--times", options.tally_times);
  app.add_flag("--captured", options.filter.captured_collectives);
  app.add_option("--no-feature", options.disabled_features)->allow_extra_args(false);
  app.add_option("--pid", pids)->allow_extra_args(false);
  app.add_option("command", command);
  CLI11_PARSE(app, argc, argv);

  setlinebuf(stdout);  // the command writes there, too
  sigset_t ends;
  sigemptyset(&ends);
  for (int number : {SIGINT, SIGTERM}) sigaddset(&ends, number);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  auto source = BpfSource::open(options);
  if (!source) return fail(source.error());
  Capture capture(std::move(*source), options.filter);
  auto go = make_pipe();
  pid_t child = command.empty() ? 0 : start_held_back(command, *go);
  Fd signals(signalfd(-1, &ends, SFD_CLOEXEC));

  Session session;
  capture.describe(session);
  if (child) pids.push_back(static_cast<std::uint32_t>(child));
  for (std::uint32_t pid : pids) capture.source().select_process(pid);
  if (pids.empty()) capture.source().select_all();
  Sums sums;
  if (auto started = capture.start(sums, session); !started) return fail(started.error());
  printf("ready\n");
  go->to_write.reset();
  int status = wait_for_end(capture, signals.get(), child);
  capture.stop("ended", std::nullopt);
  sums.print_all();
  return WEXITSTATUS(status);
}
