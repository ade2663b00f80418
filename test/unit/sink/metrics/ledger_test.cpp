#include "sink/metrics/ledger.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <string>

#include "support/open_calls.hpp"
#include "support/sample_calls.hpp"

using namespace cudabpf;

namespace {

constexpr std::uint64_t A_SECOND = 1'000'000'000;
const Function* const LAUNCH = find_function("cuLaunchKernel");
const Function* const SYNC = find_function("cuCtxSynchronize");
const Function* const TO_HOST = find_function("cuMemcpyDtoH_v2");

struct Kept {
  explicit Kept(Ledger::Options options = {}) : ledger(options, PodNames("/nowhere")) {
    ledger.tick(A_SECOND);
    ledger.begin({});
  }
  void process(Process::Op op, std::uint32_t pid, const std::string& program) {
    Process process;
    process.op = op;
    process.pid = pid;
    process.exe = "/opt/" + program;
    ledger.process(process);
  }
  void begins(std::uint32_t pid, const std::string& program) {
    process(Process::Op::start, pid, program);
  }
  void ends(std::uint32_t pid) { process(Process::Op::exit, pid, "x"); }
  void tallied(std::uint32_t pid, const Function* function, std::uint64_t calls,
               bool last = false) {
    ledger.tallied(
        {{{.pid = pid, .function = function, .calls = calls, .ended = calls, .last = last}}});
  }

  LedgerPage read_by(MetricsReader reader) {
    LedgerPage page = ledger.page();
    ledger.reached(reader, page.number);
    return page;
  }
  LedgerPage scraped() { return read_by(MetricsReader::scraper); }

  Ledger ledger;
};

std::uint64_t calls_in(const WorkloadSums& sums) {
  std::uint64_t calls = 0;
  for (const auto& one : sums.classes) calls += one.calls;
  return calls;
}

std::uint64_t calls_in(const std::vector<WorkloadSums>& workloads) {
  std::uint64_t calls = 0;
  for (const WorkloadSums& one : workloads) calls += calls_in(one);
  return calls;
}

const WorkloadSums* find(const LedgerPage& page, std::string_view program) {
  for (const WorkloadSums& one : page.workloads)
    if (one.workload.program == program) return &one;
  return nullptr;
}

std::size_t at(CallClass which) { return static_cast<std::size_t>(which); }

}  // namespace

TEST_CASE("Metrics add up what the kernel counts, by program and class") {
  Kept kept;
  kept.begins(7, "app");
  kept.begins(8, "app");
  kept.begins(9, "idle");
  Tallies tallies;
  tallies.functions = {
      {.pid = 7, .function = LAUNCH, .calls = 5, .ended = 4},
      {.pid = 7, .function = TO_HOST, .calls = 2, .failed = 1, .bytes = 300, .ended = 2},
      {.pid = 8, .function = LAUNCH, .calls = 1, .ended = 1}};
  Times times;
  times.add(1000);
  times.add(1001);
  tallies.classes = {{.pid = 7, .of = CallClass::to_host, .times = times}};
  tallies.failures = {{.pid = 7, .result = 700, .calls = 1}};
  kept.ledger.tallied(tallies);
  kept.ledger.tallied(tallies);  // nothing new
  LedgerPage page = kept.ledger.page();
  REQUIRE(page.workloads.size() == 1);  // who calls nothing has no series
  const WorkloadSums& app = page.workloads[0];
  CHECK(app.workload.program == "app");
  CHECK(app.processes == 2);
  CHECK(app.classes[at(CallClass::launch)].calls == 6);
  const auto& copies = app.classes[at(CallClass::to_host)];
  CHECK(copies.calls == 2);
  CHECK(copies.failed == 1);
  CHECK(copies.bytes == 300);
  CHECK(copies.times.calls[0] == 1);
  CHECK(copies.times.calls[1] == 1);
  CHECK(copies.times.time_ns == 2001);
  CHECK(app.errors.at({ApiId::cuda, 700}) == 1);
  CHECK(calls_in(page.node) == 8);
}

TEST_CASE("Calls that are recorded one by one count as well") {
  Kept kept;
  kept.begins(4242, "app");
  SampleCall alloc("cuMemAlloc_v2", {0x7000, 4096}, {0x9000});
  kept.ledger.call(alloc);
  SampleCall failed("cuMemAlloc_v2", {0x7000, 1 << 30}, {0});
  failed.fail(2);
  kept.ledger.call(failed);
  LedgerPage page = kept.ledger.page();
  const WorkloadSums* app = find(page, "app");
  REQUIRE(app);
  CHECK(app->classes[at(CallClass::memory)].calls == 2);
  CHECK(app->classes[at(CallClass::memory)].failed == 1);
  CHECK(app->classes[at(CallClass::memory)].times.calls[1] == 2);  // 2.5 us each
  CHECK(app->errors.at({ApiId::cuda, 2}) == 1);
  CHECK(app->held == 4096);
  CHECK(page.node.held == 4096);
  kept.ends(4242);
  page = kept.ledger.page();
  CHECK(find(page, "app")->held == 0);
  CHECK(find(page, "app")->most_held == 4096);
}

TEST_CASE("Workloads beyond the limit count as others, and keep doing so") {
  Kept kept({.most_series = 4 * CALL_CLASSES});  // half of them for programs that are alike
  for (std::uint32_t pid = 1; pid <= 5; pid++) {
    kept.begins(pid, "p" + std::to_string(pid));
    kept.tallied(pid, SYNC, pid);
  }
  LedgerPage page = kept.ledger.page();
  CHECK(page.workloads.size() == 3);
  CHECK(calls_in(*find(page, OTHER_WORKLOADS)) == 3 + 4 + 5);
  CHECK(calls_in(page.workloads) == calls_in(page.node));
  CHECK(page.workloads_refused == 3);
  // A place that has become free is for those that come later.
  kept.ends(1);
  kept.tallied(1, SYNC, 1, true);
  for (std::uint64_t s = 2; s < 400; s += 30) kept.ledger.tick(s * A_SECOND);
  kept.tallied(5, SYNC, 50);
  kept.begins(6, "p6");
  kept.tallied(6, SYNC, 60);
  page = kept.ledger.page();
  CHECK(find(page, "p5") == nullptr);
  CHECK(calls_in(*find(page, OTHER_WORKLOADS)) == 3 + 4 + 50);
  CHECK(calls_in(*find(page, "p6")) == 60);
  CHECK(calls_in(page.node) == 1 + 2 + 3 + 4 + 50 + 60);
}

TEST_CASE("Programs of one service leave places to others") {
  Kept kept({.most_series = 4 * CALL_CLASSES});
  auto begins = [&](std::uint32_t pid, const std::string& unit, const std::string& program) {
    Process process;
    process.pid = pid;
    process.unit = unit;
    process.exe = "/" + program;
    kept.ledger.process(process);
    kept.tallied(pid, SYNC, pid);
  };
  for (std::uint32_t pid = 1; pid <= 6; pid++)
    begins(pid, "many.service", "p" + std::to_string(pid));
  begins(7, "one.service", "app");
  LedgerPage page = kept.ledger.page();
  CHECK(calls_in(*find(page, "app")) == 7);
  // The service's others are still the service's.
  CHECK(std::count_if(page.workloads.begin(), page.workloads.end(), [](const auto& one) {
          return one.workload.program == OTHER_WORKLOADS && one.workload.unit == "many.service" &&
                 calls_in(one) == 3 + 4 + 5 + 6;
        }) == 1);
  CHECK(calls_in(page.workloads) == calls_in(page.node));
}

TEST_CASE("A process whose end nobody has seen is gone once it does not run any more") {
  Kept kept;
  kept.begins(4242, "app");
  SampleCall alloc("cuMemAlloc_v2", {0x7000, 4096}, {0x9000});
  kept.ledger.call(alloc);
  kept.ledger.look_for_lost_ends([](std::uint32_t) { return true; });
  CHECK(find(kept.ledger.page(), "app")->processes == 1);
  kept.ledger.look_for_lost_ends([](std::uint32_t) { return false; });
  CHECK(find(kept.ledger.page(), "app")->processes == 0);
  kept.ledger.tick(10 * A_SECOND);
  CHECK(find(kept.ledger.page(), "app")->held == 0);
}

TEST_CASE("A GPU that is not read any more has no figures") {
  Kept kept;
  Session session;
  session.sampling.gpus.emplace_back().device = 3;
  session.monotonic_ns = A_SECOND;
  kept.ledger.begin(session);
  GpuSample sample;
  sample.device = 3;
  sample.ts = A_SECOND;
  sample.power_w = 7;
  kept.ledger.gpu_sample(sample);
  kept.ledger.tick(50 * A_SECOND);
  REQUIRE(kept.ledger.page().gpus.size() == 1);
  CHECK(kept.ledger.page().gpus[0].latest.power_w == 7);
  kept.ledger.tick(63 * A_SECOND);
  CHECK(kept.ledger.page().gpus.empty());
}

TEST_CASE("A size that no copy has spoils no sum") {
  Kept kept;
  kept.begins(4242, "app");
  SampleCall copy("cuMemcpyHtoD_v2", {0x7000, 0x8000, ~std::uint64_t{0}});
  kept.ledger.call(copy);
  SampleCall another("cuMemcpyHtoD_v2", {0x7000, 0x8000, 4096});
  kept.ledger.call(another);
  LedgerPage page = kept.ledger.page();
  CHECK(find(page, "app")->classes[at(CallClass::to_device)].bytes == 4096);
}

TEST_CASE("A workload that is gone is on two more pages, and the node's sums stay") {
  Kept kept;
  kept.begins(7, "app");
  kept.tallied(7, LAUNCH, 5);
  kept.ends(7);
  kept.tallied(7, LAUNCH, 6, true);  // what it did last comes after its end
  kept.ledger.tick(10 * A_SECOND);
  CHECK(calls_in(*find(kept.scraped(), "app")) == 6);
  CHECK(find(kept.scraped(), "app")->processes == 0);
  kept.ledger.tick(40 * A_SECOND);
  CHECK(find(kept.scraped(), "app"));  // another may read pages, too
  kept.ledger.tick(130 * A_SECOND);
  CHECK_FALSE(find(kept.scraped(), "app"));
  CHECK(calls_in(kept.scraped().node) == 6);

  kept.begins(8, "unread");
  kept.tallied(8, LAUNCH, 1, true);
  kept.ends(8);
  kept.ledger.tick(140 * A_SECOND);
  kept.ledger.tick(240 * A_SECOND);
  kept.begins(9, "unread");  // it comes back
  kept.tallied(9, LAUNCH, 4);
  CHECK(calls_in(*find(kept.scraped(), "unread")) == 5);
  kept.ends(9);
  kept.tallied(9, LAUNCH, 4, true);
  kept.ledger.tick(250 * A_SECOND);
  kept.ledger.tick(560 * A_SECOND);
  CHECK_FALSE(find(kept.scraped(), "unread"));
}

TEST_CASE("A workload that is gone stays until the receiver of pages has it") {
  Kept kept({.has_receiver = true});
  kept.begins(7, "app");
  kept.tallied(7, LAUNCH, 5);
  std::uint64_t before = kept.ledger.page().number;
  kept.ends(7);
  kept.tallied(7, LAUNCH, 6, true);
  kept.ledger.tick(10 * A_SECOND);
  kept.ledger.reached(MetricsReader::receiver, before);  // it was on its way when the workload went
  for (int i = 0; i < 5; i++) kept.scraped();
  kept.ledger.tick(1000 * A_SECOND);
  CHECK(calls_in(*find(kept.ledger.page(), "app")) == 6);  // nothing of it has arrived
  kept.read_by(MetricsReader::receiver);
  kept.ledger.tick(1001 * A_SECOND);
  CHECK(find(kept.ledger.page(), "app"));
  kept.read_by(MetricsReader::receiver);
  kept.ledger.tick(1002 * A_SECOND);
  CHECK_FALSE(find(kept.ledger.page(), "app"));

  kept.begins(8, "unheard");
  kept.tallied(8, LAUNCH, 1);
  kept.ends(8);
  kept.tallied(8, LAUNCH, 1, true);
  kept.ledger.tick(1010 * A_SECOND);
  kept.ledger.tick(4600 * A_SECOND);
  CHECK(find(kept.ledger.page(), "unheard"));
  kept.ledger.tick(4611 * A_SECOND);  // there may be no receiver any more
  CHECK_FALSE(find(kept.ledger.page(), "unheard"));
}

TEST_CASE("A pid that is used again continues nothing") {
  Kept kept;
  kept.begins(7, "first");
  kept.tallied(7, LAUNCH, 5);
  kept.ends(7);
  kept.tallied(7, LAUNCH, 5, true);
  kept.begins(7, "second");
  kept.tallied(7, LAUNCH, 2);
  LedgerPage page = kept.ledger.page();
  CHECK(calls_in(*find(page, "first")) == 5);
  CHECK(calls_in(*find(page, "second")) == 2);
  kept.process(Process::Op::exec, 7, "third");  // the kernel's sums go on
  kept.tallied(7, LAUNCH, 9);
  page = kept.ledger.page();
  CHECK(calls_in(*find(page, "second")) == 2);
  CHECK(find(page, "second")->processes == 0);
  CHECK(calls_in(*find(page, "third")) == 7);
  CHECK(find(page, "third")->processes == 1);
  CHECK(page.node.processes == 1);
}

TEST_CASE("A process whose end was lost ends with its last sums") {
  Kept kept;
  kept.begins(7, "app");
  kept.tallied(7, LAUNCH, 5, true);
  CHECK(find(kept.ledger.page(), "app")->processes == 0);
  kept.tallied(8, LAUNCH, 3);  // and one whose start was lost
  CHECK(calls_in(*find(kept.ledger.page(), UNKNOWN_PROGRAM)) == 3);
}

TEST_CASE("The age of an open call is known as far as it is certain") {
  Kept kept;
  kept.begins(7, "app");
  auto open = [&](std::uint64_t second, std::uint64_t calls, std::uint64_t ended) {
    kept.ledger.tick(second * A_SECOND);
    kept.ledger.tallied({{{.pid = 7, .function = SYNC, .calls = calls, .ended = ended}}});
    return find(kept.ledger.page(), "app")->oldest_open_ns;
  };
  CHECK(open(2, 3, 3) == 0);
  CHECK(open(3, 4, 3) == 0);
  CHECK(open(8, 4, 3) == 5 * A_SECOND);
  CHECK(open(9, 5, 4) == 0);  // perhaps another one
  CHECK(open(10, 5, 5) == 0);
}

TEST_CASE("Calls that are recorded are known while they are open") {
  Kept kept;
  kept.begins(7, "app");
  kept.begins(8, "app");
  SampleCall wait("cuCtxSynchronize"), other("cuMemAlloc_v2");
  wait.pid = 7;
  other.pid = 8;
  auto oldest = [&] { return find(kept.ledger.page(), "app")->oldest_open_ns; };
  kept.ledger.open_calls(OpenNow({{&other, A_SECOND}, {&wait, 3 * A_SECOND}}));
  CHECK(oldest() == 3 * A_SECOND);
  CHECK(calls_in(*find(kept.ledger.page(), "app")) == 0);  // they count when they end
  kept.ledger.open_calls(OpenNow({{&other, 2 * A_SECOND}}));
  CHECK(oldest() == 2 * A_SECOND);
  kept.ledger.open_calls(OpenNow());
  CHECK(oldest() == 0);
}

TEST_CASE("Results, Xids and losses have an end") {
  Kept kept;
  kept.begins(7, "app");
  Tallies many;
  for (int result = 1; result < 1000; result++)
    many.failures.push_back({.pid = 7, .result = result, .calls = 1});
  kept.ledger.tallied(many);
  for (std::uint32_t xid = 0; xid < 1000; xid++) {
    GpuError error;
    error.xid = xid;
    kept.ledger.gpu_error(error);
  }
  kept.ledger.lost({.reason = Loss::tally_full, .count = 5, .since = 0, .until = 0, .detail = {}});
  kept.ledger.lost(
      {.reason = Loss::late_library, .count = {}, .since = 0, .until = 0, .detail = {}});
  LedgerPage page = kept.ledger.page();
  CHECK(find(page, "app")->errors.size() == Ledger::MAX_RESULTS);
  CHECK(page.xids.size() == Ledger::MAX_XIDS);
  CHECK(page.lost[static_cast<std::size_t>(Loss::tally_full)] == 5);
  CHECK(page.uncounted[static_cast<std::size_t>(Loss::late_library)] == 1);
}

TEST_CASE("Processes beyond the limit count as others") {
  Kept kept;
  for (std::uint32_t pid = 1; pid <= Ledger::MAX_PROCESSES + 2; pid++) {
    kept.begins(pid, "app");
    kept.tallied(pid, LAUNCH, 1);
  }
  LedgerPage page = kept.ledger.page();
  CHECK(calls_in(*find(page, OTHER_WORKLOADS)) == 2);
  CHECK(calls_in(page.node) == Ledger::MAX_PROCESSES + 2);
  CHECK(page.processes_refused > 0);
}

namespace {

constexpr std::uint64_t WINDOW = 500'000'000;

void worked(Ledger& ledger, std::uint32_t pid, const char* kernel, std::uint64_t ts,
            std::uint64_t time) {
  KernelName name;
  name.full = kernel;
  GpuOperation operation;
  operation.pid = pid;
  operation.ts = ts;
  operation.duration = time;
  operation.kernel = &name;
  ledger.gpu_operation(operation);
}

}  // namespace

TEST_CASE("What GPUs did in windows adds up by workload and class of kernel") {
  Kept kept;
  kept.begins(7, "app");
  kept.begins(8, "app");
  auto matrix = static_cast<std::size_t>(KernelClass::matrix_multiply),
       other = static_cast<std::size_t>(KernelClass::other);
  for (std::uint64_t i = 0; i < 3; i++) {
    std::uint64_t begin = (1 + 10 * i) * A_SECOND;
    worked(kept.ledger, 7, "ampere_sgemm_128x64_nn", begin + 10, (i + 1) * WINDOW / 10);
    for (std::uint32_t pid : {7, 8}) kept.ledger.gpu_window({begin, WINDOW, pid});
    worked(kept.ledger, 8, "my_kernel(int)", begin + WINDOW + 10, WINDOW / 10);  // it comes late
  }
  LedgerPage page = kept.scraped();
  const WorkloadSums* app = find(page, "app");
  REQUIRE(app);
  CHECK(app->work.window_ns == 3 * WINDOW);  // two processes at once
  CHECK(app->work.kernels[matrix].count == 3);
  CHECK(app->work.kernels[matrix].time_ns == 6 * WINDOW / 10);
  CHECK(app->work.kernels[other].time_ns == 3 * WINDOW / 10);
  // More of the last window may come yet: (0.1 + 0.1 + 0.2 + 0.1) / 2
  REQUIRE(app->loads.mean());
  CHECK(std::abs(*app->loads.mean() - 0.25) < 1e-9);
  REQUIRE(app->loads.error());
  CHECK(std::abs(*app->loads.error() - 0.05) < 1e-9);
}

TEST_CASE("A load is of the latest windows, and nothing is known before the second one") {
  WindowLoads loads;
  CHECK_FALSE(loads.mean());
  loads.add(0, WINDOW);
  CHECK_FALSE(loads.mean());
  loads.ran(10, WINDOW);
  for (std::uint64_t i = 1; i <= WindowLoads::KEPT + 1; i++) {
    loads.add(i * A_SECOND, i * A_SECOND + WINDOW);
    if (i == 1) CHECK(loads.mean() == 1.0);
    CHECK(loads.error().has_value() == (i > 1));
  }
  CHECK(loads.mean() == 0.0);
  CHECK(loads.error() == 0.0);
}
