// All learners, in the order in which they are fed: later ones may use what earlier ones fill in.
#pragma once

#include <tuple>

#include "correlate/calls/bounds.hpp"
#include "correlate/calls/open_calls.hpp"
#include "correlate/calls/open_trace.hpp"
#include "correlate/graphs/graphs.hpp"
#include "correlate/learners/allocations.hpp"
#include "correlate/learners/call_devices.hpp"
#include "correlate/learners/communicators.hpp"
#include "correlate/learners/coverage.hpp"
#include "correlate/learners/driver_calls.hpp"
#include "correlate/learners/gpu_operations.hpp"
#include "correlate/learners/holders.hpp"
#include "correlate/learners/kernel_names.hpp"
#include "correlate/learners/products.hpp"
#include "correlate/learners/ranges.hpp"
#include "correlate/learners/stacks.hpp"

namespace cudabpf {

class Learners {
 public:
  Learners(OpenTrace& trace, OpenCalls& open, Bounds& bounds, const Coverage& coverage,
           DriverCalls::DeviceOf driver_device, DriverVersion driver_version)
      : driver_calls(std::move(driver_device), driver_version, bounds, open, trace),
        products(bounds),
        devices(coverage.devices, bounds),
        allocations(coverage.memory, coverage.ends(), bounds),
        names(bounds),
        graphs(coverage.graphs, {bounds.limit(Kept::graph_nodes),
                                 [&bounds] { bounds.left_out(Kept::graph_nodes); }}),
        communicators(bounds),
        ranges(trace, bounds),
        stacks(trace, open, bounds),
        holders(open),
        gpu_operations(trace, open, names, bounds),
        open_(open) {}

  void began(ThreadId thread, Frame& frame) {
    each([&](auto& learner) { learner.began(thread, frame); });
  }
  void ended(const CallStack& stack, Call& call) {
    if (KernelNames::learns_from(call)) make_room_for_names();
    each([&](auto& learner) { learner.ended(stack, call); });
  }
  void orphaned(Call& call) {
    each([&](auto& learner) { learner.orphaned(call); });
  }
  void calls_lost(std::uint32_t pid) {
    each([&](auto& learner) { learner.calls_lost(pid); });
  }
  void records_lost(ThreadId thread) {
    each([&](auto& learner) { learner.records_lost(thread); });
  }
  void process_began(std::uint32_t pid) {
    each([&](auto& learner) { learner.process_began(pid); });
  }
  void thread_ends(ThreadId thread) {
    each([&](auto& learner) { learner.thread_ends(thread); });
  }
  void thread_gone(ThreadId thread) {
    each([&](auto& learner) { learner.thread_gone(thread); });
  }
  void process_gone(std::uint32_t pid) {
    each([&](auto& learner) { learner.process_gone(pid); });
  }
  void finished() {
    each([&](auto& learner) { learner.finished(); });
  }

  // A record brings a name.
  void make_room_for_names() {
    if (!names.want_room()) return;
    std::unordered_set<const KernelName*> used;
    open_.add_names(used);
    each([&](auto& learner) { learner.add_names(used); });
    names.forget_unused(used);
  }

  // Some also learn from records of their own.
  DriverCalls driver_calls;
  Products products;
  CallDevices devices;
  Allocations allocations;
  KernelNames names;
  Graphs graphs;
  Communicators communicators;
  Ranges ranges;
  Stacks stacks;
  Holders holders;  // learns only from records of its own
  GpuOperations gpu_operations;

 private:
  template <typename Feed>
  void each(Feed&& feed) {
    auto in_order = std::tie(driver_calls, products, devices, allocations, names, graphs,
                             communicators, ranges, stacks, gpu_operations);
    std::apply([&](auto&... learner) { (feed(learner), ...); }, in_order);
  }

  const OpenCalls& open_;
};

}  // namespace cudabpf
