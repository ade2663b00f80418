#include "bundle/tape.hpp"

#include <catch2/catch_test_macros.hpp>

#include "sample_bundle.hpp"

using namespace cudabpf::bundle;

namespace {

std::string fault_of_text(const std::string& line) {
  auto read = operation_in(line, sample_manifest());
  return read ? std::string() : read.error().message;
}

// What reading says is wrong with an operation after this change of it.
template <typename Change>
std::string tape_fault_after(Action action, Change change) {
  Operation operation = sample_operation(action);
  change(operation);
  return fault_of_text(line_of(operation));
}

constexpr Action ALL[] = {Action::launch, Action::graph, Action::copy,  Action::set,
                          Action::record, Action::wait,  Action::await, Action::sync,
                          Action::drain,  Action::alloc, Action::free};

// Actions of one kind need the same.
int kind_of(Action action) {
  constexpr Action KINDS[][3] = {{Action::record, Action::wait, Action::await},
                                 {Action::alloc, Action::free, Action::free},
                                 {Action::sync, Action::drain, Action::drain}};
  for (int kind = 0; kind < 3; kind++)
    for (Action one : KINDS[kind])
      if (one == action) return -1 - kind;
  return static_cast<int>(action);
}

}  // namespace

TEST_CASE("Operations are read as they were written, each in a line") {
  for (Action action : ALL) {
    Operation operation = sample_operation(action);
    std::string line = line_of(operation);
    CHECK(line.find('\n') == line.size() - 1);
    auto read = operation_in(line, sample_manifest());
    REQUIRE(read);
    CHECK(*read == operation);
  }
}

TEST_CASE("An operation has what its op needs, and nothing else") {
  for (Action action : ALL)
    for (Action other : ALL) {
      bool alike = kind_of(action) == kind_of(other);
      std::string fault = tape_fault_after(action, [&](Operation& o) { o.action = other; });
      CHECK(fault == (alike ? "" : "it does not have what its op needs"));
    }
}

TEST_CASE("An operation refers only to what the manifest has") {
  using O = Operation;
  CHECK(tape_fault_after(Action::set, [](O& o) { o.stream = 2; }) ==
        "stream is none of the streams");
  CHECK(tape_fault_after(Action::set, [](O& o) { o.device = 1; }) ==
        "device is none of the devices");
  CHECK(tape_fault_after(Action::wait, [](O& o) { o.event = 2; }) == "event is none of the events");
  CHECK(tape_fault_after(Action::graph, [](O& o) { o.graph = 1; }) ==
        "graph is none of the graphs");
  CHECK(tape_fault_after(Action::launch, [](O& o) { o.launch->kernel = 2; }) ==
        "kernel is none of the kernels");
  CHECK(tape_fault_after(Action::launch, [](O& o) {
          o.launch->parameters = {990, 16};
        }) == "parameters are not in the file");
  CHECK(tape_fault_after(Action::launch, [](O& o) {
          o.launch->parameters = {~0ULL, 16};
        }) == "parameters are not in the file");
  CHECK(tape_fault_after(Action::launch, [](O& o) {
          o.launch->attributes = {16, 71};
        }) == "attributes are not in the file");
  CHECK(tape_fault_after(Action::launch, [](O& o) { o.launch->block[1] = 0; }) ==
        "grid and block have lengths of zero");
  CHECK(tape_fault_after(Action::graph, [](O& o) { o.nodes[0].launch->kernel = 2; }) ==
        "kernel is none of the kernels");
  CHECK(tape_fault_after(Action::graph, [](O& o) { o.nodes[0].copy = sample_copy(); }) ==
        "a node does not do one thing");
}

TEST_CASE("Copies and fills have ranges of addresses, and data of their size") {
  using O = Operation;
  CHECK(tape_fault_after(Action::copy, [](O& o) { o.copy->data->size = 127; }) ==
        "copy has other data than its size");
  CHECK(tape_fault_after(Action::copy, [](O& o) { o.copy->data->offset = 900; }) ==
        "copy has other data than its size");
  CHECK(tape_fault_after(Action::copy, [](O& o) { o.copy->rows.height = ~0ULL; }) ==
        "copy has no range of addresses");
  CHECK(tape_fault_after(Action::copy, [](O& o) { o.copy->to.pitch = ~0ULL; }) ==
        "copy has no range of addresses");
  CHECK(tape_fault_after(Action::set, [](O& o) { o.set->to.address->value = ~0ULL; }) ==
        "set has no range of addresses");
  CHECK(tape_fault_after(Action::set, [](O& o) { o.set->element = 3; }) ==
        "set has no range of addresses");
  CHECK(tape_fault_after(Action::alloc, [](O& o) { o.memory->size = ~0ULL; }) ==
        "memory is no range of addresses");
}

TEST_CASE("A line that is no operation is refused with the reason") {
  CHECK(fault_of_text("{") == "it is not JSON");
  CHECK(fault_of_text(std::string(100, '[')) == "it nests too deep");
  CHECK(fault_of_text("{}") == "operation.op is missing");
  CHECK(fault_of_text("7") == "operation is not an object");
  CHECK(fault_of_text(R"({"op":"jump"})") == "operation.op is none of the words that it may be");
}
