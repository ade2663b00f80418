#include <catch2/catch_test_macros.hpp>
#include <map>

#include "sink/metrics/ledger.hpp"
#include "support/sample_calls.hpp"

using namespace cudabpf;

namespace {

constexpr std::uint64_t ONE_SECOND = 1'000'000'000;

void begins(Ledger& ledger, std::uint32_t pid, const char* program) {
  Process process;
  process.op = Process::Op::start;
  process.pid = pid;
  process.exe = program;
  ledger.process(process);
}

const WorkloadSums& of_program(const LedgerPage& page, std::string_view program) {
  for (const WorkloadSums& one : page.workloads)
    if (one.workload.program == program) return one;
  throw std::invalid_argument("no such program");
}

}  // namespace

TEST_CASE("Collectives count by operation and size, and a rank that is behind shows for how long") {
  Ledger ledger({}, PodNames("/nowhere"));
  ledger.tick(ONE_SECOND);
  ledger.begin({});
  begins(ledger, 7, "/opt/train");
  begins(ledger, 8, "/opt/other");
  Communicator first, second;
  first.number = 1;
  first.pid = 7;
  second.number = 2;
  second.pid = 8;
  first.identity = second.identity = 0xabc;
  std::map<std::uint32_t, GraphContent> graphs;
  auto reduce = [&](const Communicator& of, std::uint64_t sequence, std::uint64_t count,
                    bool captured = false) {
    SampleCall call("ncclAllReduce", {1, 2, count, 7, 0, 0x5e00, 0});
    call.id = of.number * 100 + sequence;
    call.captured = captured;
    if (captured) graphs[of.pid].collectives.push_back({call.id, Op::all_reduce, 40});
    call.pid = of.pid;
    call.communicator = &of;
    call.sequence = sequence;
    call.ts = sequence * ONE_SECOND;
    call.duration = count;
    ledger.call(call);
  };
  reduce(first, 1, 10);
  reduce(second, 1, 10);
  reduce(first, 2, 1 << 20);
  ledger.tick(9 * ONE_SECOND);
  LedgerPage page = ledger.page();
  const WorkloadSums& train = of_program(page, "train");
  const WorkloadSums& other = of_program(page, "other");
  CHECK(train.collectives.at({Op::all_reduce, CollectiveSize::k8}).calls == 1);
  CHECK(train.collectives.at({Op::all_reduce, CollectiveSize::k8}).bytes == 40);
  CHECK(train.collectives.at({Op::all_reduce, CollectiveSize::m8}).bytes == 4 << 20);
  CHECK(train.collectives.at({Op::all_reduce, CollectiveSize::m8}).time_ns == 1 << 20);
  CHECK(train.behind_ns == 0);
  CHECK(other.behind_ns == 7 * ONE_SECOND);  // the other entered it at 2 s
  CHECK(page.node.collectives.at({Op::all_reduce, CollectiveSize::k8}).calls == 2);
  reduce(second, 2, 1 << 20);
  for (const WorkloadSums& one : ledger.page().workloads) CHECK(one.behind_ns == 0);
  auto launch = [&](const Communicator& of, std::uint64_t ts) {
    SampleCall call("cuGraphLaunch", {0x910, 0});
    call.pid = of.pid;
    call.graph = &graphs[of.pid];
    call.ts = ts;
    ledger.call(call);
  };
  for (const Communicator* one : {&first, &second}) reduce(*one, 3, 10, true);
  for (const Communicator* one : {&first, &second}) launch(*one, 10 * ONE_SECOND);
  launch(first, 12 * ONE_SECOND);
  ledger.tick(20 * ONE_SECOND);
  CHECK(of_program(ledger.page(), "train").behind_ns == 0);
  CHECK(of_program(ledger.page(), "other").behind_ns == 8 * ONE_SECOND);
}

TEST_CASE("Collectives in graphs count at each launch, with the time of the calls that gave them") {
  Ledger ledger({}, PodNames("/nowhere"));
  ledger.begin({});
  begins(ledger, 4242, "/opt/train");
  GraphContent graph;
  std::uint64_t sequence = 0;
  for (std::uint64_t count : {10, 10, 1 << 20}) {
    SampleCall call("ncclAllReduce", {1, 2, count, 7, 0, 0x5e00, 0});
    call.sequence = ++sequence;
    call.captured = true;
    ledger.call(call);
    graph.collectives.push_back({sequence, Op::all_reduce, *call.details.size});
  }
  const auto small = std::pair(Op::all_reduce, CollectiveSize::k8);
  CHECK(ledger.page().node.collectives.at(small).calls == 0);
  CHECK(ledger.page().node.collectives.at(small).time_ns == 2 * 2500);
  SampleCall launch("cuGraphLaunch", {0x910, 0});
  launch.graph = &graph;
  for (int i = 0; i < 3; i++) ledger.call(launch);
  launch.graph = nullptr;
  ledger.call(launch);  // it was captured itself
  launch.graph_unknown = GraphUnknown::before;
  ledger.call(launch);
  LedgerPage page = ledger.page();
  const WorkloadSums& train = of_program(page, "train");
  CHECK(train.collectives.at(small).calls == 6);
  CHECK(train.collectives.at(small).bytes == 6 * 40);
  CHECK(train.collectives.at({Op::all_reduce, CollectiveSize::m8}).bytes == 3 * (4 << 20));
  CHECK(train.unknown_graph_launches == 1);
}
