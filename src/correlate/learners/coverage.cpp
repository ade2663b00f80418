#include "correlate/learners/coverage.hpp"

#include <algorithm>

#include "correlate/graphs/graph_calls.hpp"
#include "correlate/learners/call_devices.hpp"

namespace cudabpf {

namespace {

bool all_are(const RecordedOf& recorded, Recorded at_least, bool (*concerned)(const Function&)) {
  auto functions = cuda_functions();
  return std::all_of(functions.begin(), functions.end(), [&](const Function& function) {
    return !concerned(function) || recorded(function) >= at_least;
  });
}

template <CountedAs what>
bool counts_as(const Function& function) {
  return function.meaning.counted == what;
}
// Physical memory, which is freed by other functions than addresses are.
bool has_handle(const Function& function) { return function.kind == MemoryKind::vmm; }

// Memory that no call in the trace allocates needs no free.
bool all_frees_are_whole(const RecordedOf& recorded) {
  auto functions = cuda_functions();
  auto any = [&](auto is) { return std::any_of(functions.begin(), functions.end(), is); };
  for (bool handle : {false, true}) {
    bool allocated = any([&](const Function& function) {
      return counts_as<CountedAs::allocations>(function) && has_handle(function) == handle &&
             recorded(function) == Recorded::whole;
    });
    bool not_seen_freed = any([&](const Function& function) {
      return counts_as<CountedAs::frees>(function) && has_handle(function) == handle &&
             recorded(function) != Recorded::whole;
    });
    if (allocated && not_seen_freed) return false;
  }
  return true;
}

Graphs::Recorded of_graphs(const RecordedOf& recorded) {
  bool follows = false;
  auto once_captured = [&](const Function& function) {
    bool is_followed = recorded(function) == Recorded::until_capture;
    follows |= is_followed;
    return is_followed ? Recorded::whole : recorded(function);
  };
  if (all_are(recorded, Recorded::whole, concerns_graphs)) return Graphs::Recorded::all;
  if (all_are(once_captured, Recorded::whole, concerns_collectives) && follows)
    return Graphs::Recorded::collectives;
  if (all_are(recorded, Recorded::whole, is_about_captures)) return Graphs::Recorded::captures;
  return Graphs::Recorded::not_all;
}

}  // namespace

Coverage Coverage::of(const RecordedOf& recorded) {
  Coverage coverage;
  coverage.devices = all_are(recorded, Recorded::whole, CallDevices::follows);
  coverage.graphs = of_graphs(recorded);
  coverage.memory.all = all_are(recorded, Recorded::whole, Allocations::follows);
  coverage.memory.frees = all_are(recorded, Recorded::silently, Allocations::frees);
  for (const Function& function : cuda_functions())
    if (recorded(function) == Recorded::silently) coverage.silent.push_back(&function);
  return coverage;
}

std::vector<std::string> kinds_left_out(const RecordedOf& recorded) {
  std::vector<std::string> kinds;
  auto add_unless = [&](bool all, const char* kind) {
    if (!all) kinds.emplace_back(kind);
  };
  add_unless(all_are(recorded, Recorded::entry, counts_as<CountedAs::launches>), "launches");
  add_unless(all_are(recorded, Recorded::entry, counts_as<CountedAs::copies>), "copies");
  add_unless(all_are(recorded, Recorded::whole, counts_as<CountedAs::waits>), "waits");
  add_unless(all_are(recorded, Recorded::whole, counts_as<CountedAs::allocations>), "allocations");
  add_unless(all_frees_are_whole(recorded), "frees");
  return kinds;
}

}  // namespace cudabpf
