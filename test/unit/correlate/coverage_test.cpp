#include "correlate/learners/coverage.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "correlating.hpp"
#include "util/text/glob.hpp"

using namespace cudabpf;
using namespace samples;

namespace {

RecordedOf all_but(const std::vector<std::string_view>& names, Recorded instead = Recorded::no) {
  return [=](const Function& function) {
    bool named = std::find(names.begin(), names.end(), function.name) != names.end();
    return named ? instead : Recorded::whole;
  };
}
RecordedOf profile(Profile most, bool returns = true) {
  return [=](const Function& function) {
    if (function.profile > most) return Recorded::no;
    bool entry = !returns || (most == Profile::light && function.entry_is_enough());
    return entry ? Recorded::entry : Recorded::whole;
  };
}

}  // namespace

TEST_CASE("A profile leaves out none of the calls that answers are made of") {
  for (Profile most : {Profile::light, Profile::default_, Profile::full})
    CHECK(kinds_left_out(profile(most)).empty());
  CHECK(kinds_left_out(profile(Profile::full, false)) ==
        std::vector<std::string>{"waits", "allocations"});
}

TEST_CASE("Frees are missed where what they free is in the trace") {
  auto only = [](const std::vector<std::string>& patterns) {
    return kinds_left_out([=](const Function& function) {
      return glob_match_any(patterns, function.name) ? Recorded::whole : Recorded::no;
    });
  };
  auto has_frees = [](const std::vector<std::string>& kinds) {
    return std::find(kinds.begin(), kinds.end(), "frees") != kinds.end();
  };
  CHECK_FALSE(has_frees(only({"cuMem*Alloc*", "cuMem*Free*"})));  // no cuMemCreate
  CHECK(has_frees(only({"cuMem*Alloc*", "cuMemFree"})));
  CHECK(has_frees(only({"cuMemCreate", "cuMemMap"})));
  CHECK_FALSE(has_frees(only({"cuMemCreate", "cuMemRelease"})));
  CHECK_FALSE(has_frees(only({"cuLaunch*"})));
}

TEST_CASE("A trace says of which kinds it does not have all calls") {
  using Kinds = std::vector<std::string>;
  CHECK(kinds_left_out(all_but({"cuMemFreeAsync"})) == Kinds{"frees"});
  CHECK(kinds_left_out(all_but({"cuMemAllocManaged"}, Recorded::entry)) == Kinds{"allocations"});
  CHECK(kinds_left_out(all_but({"cuLaunchKernelEx"})) == Kinds{"launches"});
  CHECK(kinds_left_out(all_but({"cuLaunchKernelEx"}, Recorded::entry)).empty());
  CHECK(kinds_left_out(all_but({"cuMemcpy", "cuEventSynchronize"})) == Kinds{"copies", "waits"});
  CHECK(kinds_left_out(all_but({"cuModuleUnload"}, Recorded::silently)).empty());
}

TEST_CASE("What is concluded from calls is reported where all of them are traced") {
  Coverage whole = Coverage::of(profile(Profile::default_));
  CHECK(whole.devices);
  CHECK(whole.graphs == Graphs::Recorded::all);
  CHECK(whole.memory.all);
  CHECK(whole.memory.frees);
  CHECK(whole.ends());
  Coverage light = Coverage::of(profile(Profile::light));
  CHECK_FALSE(light.memory.all);  // what another process opens is not seen
  CHECK(light.graphs == Graphs::Recorded::not_all);
  for (auto name : {"cuGraphAddNode", "cuGraphExecUpdate", "cuStreamEndCapture", "cuLaunchKernelEx",
                    "cuEventRecord", "cuMemcpyAsync"})
    CHECK(Coverage::of(all_but({name})).graphs != Graphs::Recorded::all);
  CHECK(Coverage::of(all_but({"cuGraphGetNodes", "cuMemAlloc", "cuCtxSetCurrent"})).graphs ==
        Graphs::Recorded::all);
  CHECK(Coverage::of(all_but({"cuGraphAddNode"})).graphs == Graphs::Recorded::captures);
  CHECK(Coverage::of(all_but({"cuStreamEndCapture"})).graphs == Graphs::Recorded::not_all);
  Coverage without_allocations = Coverage::of(all_but({"cuMemAllocAsync"}));
  CHECK_FALSE(without_allocations.memory.all);
  CHECK(without_allocations.memory.frees);
  CHECK(without_allocations.devices);
  CHECK_FALSE(Coverage::of(all_but({"cuMemFree"})).memory.frees);
  CHECK_FALSE(Coverage::of(all_but({"cuModuleGetGlobal"})).memory.all);
  CHECK_FALSE(Coverage::of(all_but({"cuCtxDestroy"})).memory.frees);
  CHECK(Coverage::of(all_but({"cuCtxDestroy"}, Recorded::silently)).memory.frees);
  CHECK_FALSE(Coverage::of(all_but({"cuCtxSetCurrent"})).devices);
}

TEST_CASE("What is recorded silently has no line, and makes handles be forgotten") {
  Correlating c({.coverage = Coverage::of(all_but({"cuModuleUnload"}, Recorded::silently))});
  auto launched = [&] {
    c.call({.ts = 5000}, "cuLaunchKernel", {0x5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0});
    return c.last().kernel ? c.last().kernel->full : "";
  };
  c.feed(name({.ts = 100}, 0x5, "alpha"));
  CHECK(launched() == "alpha");
  c.feed(entry({.ts = 200, .sp = 0x800}, "cuModuleUnload", {0xa00}));
  CHECK(c.sink.calls.size() == 1);
  CHECK(c.correlator.counts().calls == 1);
  CHECK(launched().empty());
  CHECK(c.last().parent == 0);
  c.feed(name({.ts = 300}, 0x5, "beta"));
  CHECK(launched() == "beta");
  c.call({.ts = 400}, "cuModuleGetFunction", {1, 0xa01, 2}, {0x5}, 0, "gamma");
  CHECK(launched() == "gamma");
  c.feed(entry({.ts = 800, .sp = 0x800}, "cuModuleUnload", {0xa01}));
  CHECK(launched().empty());
}

TEST_CASE("What is only counted leaves no free and no device unknown") {
  FunctionFilter filter;
  filter.tally = true;
  Coverage counted = Coverage::of([&](const Function& f) { return filter.records(f); });
  CHECK(counted.memory.frees);
  CHECK(counted.devices);
  CHECK(counted.graphs == Graphs::Recorded::captures);
  filter.captured_collectives = true;
  auto recorded = [&](const Function& f) { return filter.records(f); };
  CHECK(Coverage::of(recorded).graphs == Graphs::Recorded::collectives);
  filter.exclude = {"cuGraphAddNode"};
  CHECK(Coverage::of(recorded).graphs == Graphs::Recorded::captures);
}
