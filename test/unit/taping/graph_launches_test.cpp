#include <catch2/catch_test_macros.hpp>
#include <string>

#include "support/kept_graphs.hpp"
#include "support/sample_calls.hpp"
#include "support/temporary_folder.hpp"
#include "taping/graphs.hpp"
#include "taping/tape_writer.hpp"

using namespace cudabpf;
using namespace cudabpf::taping;
using bundle::Action;

namespace {

constexpr std::uint64_t EXECUTABLE = 0x7000, MEMORY = 0x7f0000000000, PINNED = 0x7e0000000000;

// Knows no kernels.
struct ThreadWithoutKernels final : StoppedThread {
  std::uint32_t pid() const override { return 4242; }
  std::uint32_t tid() const override { return 4243; }
  std::uint32_t inner_tid() const override { return 4243; }
  Result<abi::ci_reply> order(abi::ci_do, std::uint64_t, std::uint64_t, std::uint64_t) override {
    return abi::ci_reply{0, 1, {0, 0}};
  }
  void go_on(std::uint64_t, bool, std::uint32_t) override {}
};

struct TapedLaunches {
  KeepingProcess process;
  Handles handles;
  std::uint64_t now = 0;
  bundle::Manifest manifest;
  std::vector<KeptCall> calls;
  std::vector<bundle::Operation> tape;

  TapedLaunches() {
    manifest.contents = true;
    manifest.devices.emplace_back();
    manifest.blocks = {{{PINNED}, 4096, bundle::BlockKind::pinned, 0}};
  }
  void call(const char* symbol, std::vector<std::uint64_t> words,
            const SampleNodes* nodes = nullptr, std::vector<std::uint64_t> outs = {}) {
    SampleCall call(symbol, std::move(words), std::move(outs));
    call.id = call.ts = ++now;
    if (nodes) process.payloads[call.payload = now] = nodes->payload();
    handles.call(call);
    if (!call.function->launches_graph()) return;
    calls.emplace_back(call).graph = handles.graphs().executable(EXECUTABLE);
  }
  void instantiate(const SampleNodes& nodes) {
    call("cuGraphInstantiateWithFlags", {0, 0x6000, 0}, &nodes, {EXECUTABLE});
  }
  void launch() { call("cuGraphLaunch", {EXECUTABLE, 0}); }

  // Reads back what was written, as a replay does.
  void write() {
    TemporaryFolder temporary;
    std::string path = (temporary.path() / "capture").string();
    ThreadWithoutKernels thread;
    auto folder = bundle::FolderWriter::create(path);
    REQUIRE(folder);
    TapeWriter writer(*folder, manifest, process, handles, thread, true);
    REQUIRE(writer.write(std::move(calls)));
    REQUIRE(folder->finish(manifest));
    auto read = bundle::Folder::open(path);
    REQUIRE(read);
    manifest = read->manifest();
    for (;;) {
      auto operation = read->next();
      REQUIRE(operation);
      if (!*operation) return;
      tape.push_back(**operation);
    }
  }
};

GivenSet fill(std::uint32_t value, std::uint64_t height = 1) {
  return {MEMORY, 256, value, 4, 16, height};
}

}  // namespace

TEST_CASE("A graph's nodes come with its first launch, and when they have changed") {
  TapedLaunches iteration;
  SampleNodes nodes, given;
  nodes.add(1, NodeType::set, fill(5, 3)).add(2, NodeType::kernel, GivenKernel{}, "12345678");
  iteration.instantiate(nodes);
  iteration.launch();
  iteration.launch();
  given.head.of_node = 1;
  given.add(0, NodeType::set, fill(6));
  iteration.call("cuGraphExecMemsetNodeSetParams", {EXECUTABLE, 1, 0, 0}, &given);
  iteration.launch();
  iteration.write();
  REQUIRE(iteration.tape.size() == 3);
  CHECK(iteration.manifest.graphs == 1);
  CHECK(iteration.manifest.refused.empty());
  const auto& first = iteration.tape[0];
  REQUIRE(first.nodes.size() == 2);
  CHECK(first.nodes[0].set == bundle::Set{{64, 3, 1}, {bundle::Address{MEMORY}, 256, 0}, 5, 4});
  REQUIRE(first.nodes[1].launch);
  CHECK(first.nodes[1].launch->block == bundle::Dim{32, 1, 1});
  CHECK(first.nodes[1].launch->parameters.size == 8);
  CHECK(iteration.tape[1].nodes.empty());
  CHECK(iteration.tape[1].graph == 0U);
  CHECK(iteration.tape[2].graph == 0U);
  REQUIRE(iteration.tape[2].nodes.size() == 2);
  CHECK(iteration.tape[2].nodes[0].set->value == 6);
}

TEST_CASE("A graph that does nothing any more is another one") {
  TapedLaunches iteration;
  SampleNodes nodes;
  iteration.instantiate(nodes.add(1, NodeType::set, fill(5)));
  iteration.launch();
  iteration.call("cuGraphNodeSetEnabled", {EXECUTABLE, 1, 0});
  iteration.launch();
  iteration.write();
  REQUIRE(iteration.tape.size() == 2);
  CHECK(iteration.tape[0].graph == 0U);
  CHECK(iteration.tape[1].graph == 1U);
  CHECK(iteration.tape[1].nodes.empty());
}

TEST_CASE("A graph waits for events before its nodes, and records them after") {
  TapedLaunches iteration;
  SampleNodes nodes;
  nodes.add(1, NodeType::record, std::uint64_t{0xe1}).add(2, NodeType::set, fill(5));
  iteration.instantiate(nodes.add(3, NodeType::wait, std::uint64_t{0xe2}));
  iteration.launch();
  iteration.launch();
  iteration.write();
  std::vector<Action> actions;
  for (const auto& operation : iteration.tape) actions.push_back(operation.action);
  CHECK(actions == std::vector{Action::wait, Action::graph, Action::record, Action::wait,
                               Action::graph, Action::record});
  CHECK(iteration.manifest.events == 2);
}

TEST_CASE("Copies in graphs: between places on the GPU, and pinned memory") {
  TapedLaunches iteration;
  GivenCopy rows, pinned, to_host;
  rows.from.device = MEMORY;
  rows.from.pitch = 512;
  rows.from.y = 2;
  rows.to.device = MEMORY + 8192;
  rows.to.x = 16;
  rows.width = 64;
  rows.height = 4;
  pinned.from.type = to_host.to.type = 1;
  pinned.from.host = PINNED + 4096 - 64;
  pinned.to.device = to_host.from.device = MEMORY;
  to_host.to.host = 0x1234;
  pinned.width = to_host.width = 64;
  SampleNodes nodes;
  nodes.add(1, NodeType::copy, rows).add(2, NodeType::copy, pinned);
  iteration.instantiate(nodes.add(3, NodeType::copy, to_host));
  iteration.launch();
  iteration.write();
  REQUIRE(iteration.tape.size() == 1);
  REQUIRE(iteration.tape[0].nodes.size() == 3);
  CHECK(iteration.tape[0].nodes[0].copy ==
        bundle::Copy{{64, 4, 1},
                     {bundle::Address{MEMORY + 8192 + 16}, 64, 0},
                     {bundle::Address{MEMORY + 1024}, 512, 0},
                     std::nullopt});
  CHECK(iteration.tape[0].nodes[1].copy->from.address == bundle::Address{PINNED + 4096 - 64});
  CHECK_FALSE(iteration.tape[0].nodes[2].copy->to.address);
}

TEST_CASE("A graph that cannot be run again is on the tape with the reason") {
  GivenCopy from_host, of_array, wild;
  from_host.width = of_array.width = 64;
  from_host.from.type = 1;
  from_host.from.host = PINNED + 4096 - 63;  // not all of it is pinned
  from_host.to.device = of_array.to.device = MEMORY;
  of_array.from.type = 3;
  wild.from.device = wild.to.device = MEMORY;
  wild.width = wild.height = wild.depth = ~std::uint64_t{0};
  GivenSet odd = fill(1), far = fill(1);
  odd.element = 3;
  far.to = ~std::uint64_t{0} - 4;
  GivenKernel empty;
  empty.dimensions[3] = 0;
  auto refusal = [](auto given, NodeType type) {
    TapedLaunches iteration;
    SampleNodes nodes;
    nodes.add(1, NodeType::set, fill(5));
    iteration.instantiate(nodes.add(2, type, given));
    iteration.launch();
    iteration.launch();
    iteration.write();
    REQUIRE(iteration.tape.size() == 2);
    CHECK(iteration.tape[0].nodes.empty());
    CHECK(iteration.tape[0].refused == iteration.tape[1].refused);
    CHECK(iteration.manifest.refused ==
          std::vector<bundle::Refused>{{"a graph", *iteration.tape[0].refused, 2}});
    return *iteration.tape[0].refused;
  };
  CHECK(refusal(from_host, NodeType::copy) ==
        "a copy in it comes from memory of the host that is not pinned, which is not captured");
  CHECK(refusal(of_array, NodeType::copy) == "a copy in it is of an array");
  CHECK(refusal(wild, NodeType::copy) == "a copy in it has no range of addresses");
  CHECK(refusal(odd, NodeType::set) ==
        "a fill in it has elements of another size than 1, 2 or 4 bytes");
  CHECK(refusal(far, NodeType::set) == "a fill in it has no range of addresses");
  CHECK(refusal(empty, NodeType::kernel) == "a kernel in it has no threads");
}

TEST_CASE("A graph that was instantiated unseen is refused") {
  TapedLaunches iteration;
  iteration.launch();
  iteration.write();
  REQUIRE(iteration.tape.size() == 1);
  CHECK(iteration.tape[0].refused == "it was instantiated where no capture could see it");
}
