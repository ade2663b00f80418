#include "taping/launch_history.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>

#include "support/sample_calls.hpp"

using namespace cudabpf;
using taping::LaunchHistory;

namespace {

// A thread's calls, one after the other.
struct Program {
  LaunchHistory history;
  std::uint64_t now = 0, ids = 0, step = 10'000;
  std::uint32_t tid = 7;

  void call(const char* symbol, std::vector<std::uint64_t> words, const KernelName* kernel) {
    SampleCall call(symbol, std::move(words));
    call.id = ++ids;
    call.ts = now += step;
    call.tid = tid;
    call.kernel = kernel;
    history.call(call);
  }
  void launch(const std::string& name) {
    KernelName kernel = kernel_named(name, name);
    call("cuLaunchKernel", {1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0}, &kernel);
  }
  void wait() { call("cuStreamSynchronize", {0}, nullptr); }
  // A model's layers, then its last kernel.
  void token(int layers) {
    launch("embed");
    for (int i = 0; i < layers; i++)
      for (const char* kernel : {"norm", "attention", "add"}) launch(kernel);
    launch("head");
  }
};

}  // namespace

TEST_CASE("Iterations that end with a wait are told after three of them") {
  Program program;
  for (int i = 0; i < 2; i++) program.token(4), program.wait();
  CHECK_FALSE(program.history.next_iteration());
  program.token(4), program.wait();
  auto next = program.history.next_iteration();
  REQUIRE(next);
  CHECK(next->tid == 7);
  CHECK(next->number == 4);
  CHECK(next->launches == 14);
  CHECK(next->until == 0);
  CHECK(program.history.launches(7) == 42);
}

TEST_CASE("It is known how many launches come before the next iteration") {
  Program program;
  for (int i = 0; i < 4; i++) program.token(4), program.wait();
  program.launch("embed");
  program.launch("norm");
  auto next = program.history.next_iteration();
  REQUIRE(next);
  CHECK(next->number == 6);
  CHECK(next->until == 11);
  CHECK(next->at_wait);
  // All launches are done, but it has not waited.
  for (int i = 0; i < 12; i++) program.launch("norm");
  CHECK(program.history.next_iteration()->until == 1);
}

TEST_CASE("Iterations that load code or run some for the first time are not settled") {
  Program program;
  for (int i = 0; i < 6; i++) {
    program.call("cuModuleLoadData", {0, 0x1000}, nullptr);
    program.token(4), program.wait();
  }
  auto next = program.history.next_iteration();
  REQUIRE(next);
  CHECK_FALSE(next->is_settled);
  for (int i = 0; i < 4; i++) program.token(4), program.wait();
  CHECK(program.history.next_iteration()->is_settled);

  program.launch("another");
  for (int i = 0; i < 3; i++) program.token(4), program.wait();
  CHECK_FALSE(program.history.next_iteration()->is_settled);
  for (int i = 0; i < 2; i++) program.token(4), program.wait();
  CHECK(program.history.next_iteration()->is_settled);

  program.call("cuModuleLoadData", {0, 0x1000}, nullptr);
  CHECK_FALSE(program.history.next_iteration()->is_settled);
  CHECK(program.history.why_not().starts_with("until its last iterations it loaded code"));
  for (int i = 0; i < 5; i++) program.token(4), program.wait();
  CHECK_FALSE(program.history.next_iteration()->is_settled);  // these are few of all
  program.token(4), program.wait();
  CHECK(program.history.next_iteration()->is_settled);
}

TEST_CASE("The layers of a model's first run are no iterations") {
  Program program;
  program.token(40);
  CHECK_FALSE(program.history.next_iteration());
}

TEST_CASE("Iterations without waits are told once they have gone on for a while") {
  Program program;
  program.step = 1'000'000;
  for (int i = 0; i < 10; i++) program.token(10);
  CHECK_FALSE(program.history.next_iteration());
  for (int i = 0; i < 50; i++) program.token(10);
  auto next = program.history.next_iteration();
  REQUIRE(next);
  CHECK(next->launches == 32);
  CHECK(next->number == 61);
  CHECK(next->until == 0);
  program.launch("embed");  // where it is looked at, one begins
  CHECK(program.history.next_iteration()->until == 0);
}

TEST_CASE("The thread that launches most is the one whose iterations count") {
  Program program;
  for (int i = 0; i < 5; i++) {
    program.tid = 8;
    program.launch("other");
    program.tid = 7;
    program.token(4), program.wait();
  }
  CHECK(program.history.next_iteration()->tid == 7);
  CHECK(program.history.launches(8) == 5);
  CHECK(program.history.launches(0) == 75);
}

TEST_CASE("Where one thread computes forwards and another backwards, both make an iteration") {
  Program program;
  for (int i = 0; i < 4; i++) {
    program.tid = 7;
    program.token(4);
    program.tid = 8;
    for (int k = 0; k < 30; k++) program.launch("backwards");
    program.tid = 7;
    program.launch("optimizer");
    program.wait();
  }
  auto next = program.history.next_iteration();
  REQUIRE(next);
  CHECK(next->tid == 0);
  CHECK(next->launches == 45);
  CHECK(next->until == 0);
}
