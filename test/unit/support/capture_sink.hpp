// Keeps events in memory, for tests.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "cudabpf/product.hpp"
#include "cudabpf/sink.hpp"

namespace cudabpf {

// A call with everything that it refers to, except its function.
struct CapturedCall : Call {
  explicit CapturedCall(const Call& call)
      : Call(call),
        own_words(call.words.begin(), call.words.end()),
        own_outs(call.outs.begin(), call.outs.end()),
        own_text(call.text),
        own_holder(call.holder) {
    words = own_words;
    outs = own_outs;
    text = own_text;
    holder = own_holder;
    if (call.kernel) kernel = &own_kernel.emplace(*call.kernel);
    if (call.product) product = &own_product.emplace(*call.product);
    if (call.graph) graph = &own_graph.emplace(*call.graph);
    if (call.communicator) communicator = &own_communicator.emplace(*call.communicator);
    for (const RangePath* path = call.range; path; path = path->around.get())
      own_range = path->name + (own_range.empty() ? "" : "/") + own_range;
    range = nullptr;
    if (call.stack) own_stack = *call.stack;
    stack = nullptr;
    for (const Communicator* of : call.also_made) own_also_made.push_back(*of);
    also_made = {};
  }
  CapturedCall(const CapturedCall&) = delete;
  CapturedCall& operator=(const CapturedCall&) = delete;

  std::vector<std::uint64_t> own_words, own_outs;
  std::string own_text, own_holder;
  std::optional<KernelName> own_kernel;
  std::optional<Product> own_product;
  std::optional<GraphContent> own_graph;
  std::optional<Communicator> own_communicator;
  std::string own_range;  // "outer/inner"
  PythonStack own_stack;  // no frames: it has none
  std::vector<Communicator> own_also_made;
};

struct CaptureSink : Sink {
  void begin(const Session& s) override { session = s; }
  void call(const Call& call) override { calls.emplace_back(call); }
  void driver_call(const DriverCall& call) override { driver_calls.push_back(call); }
  void gpu_error(const GpuError& error) override { gpu_errors.push_back(error); }
  void gpu_sample(const GpuSample& sample) override { gpu_samples.push_back(sample); }
  void gpu_operation(const GpuOperation& work) override {
    gpu_operations.push_back(work);
    if (work.kernel) gpu_operations.back().kernel = &own_kernels.emplace_back(*work.kernel);
  }
  void gpu_times(const GpuTimes& times) override { gpu_times_of.push_back(times); }
  void gpu_window(const GpuWindow& window) override { gpu_windows.push_back(window); }
  void range(const NamedRange& range) override { ranges.push_back(range); }
  void python(const PythonFound& found) override { pythons.push_back(found); }
  std::uint64_t oldest_tallies_ns() const override { return 0; }
  void tallied(const Tallies& sums) override {
    if (!sums.empty()) tallies.push_back(sums);
  }
  void process(const Process& process) override { processes.push_back(process); }
  void library(const Library& library) override { libraries.push_back(library); }
  void lost(const LossEvent& loss) override { losses.push_back(loss); }
  void flush() override {}
  void end(const Totals& t) override { totals = t; }

  std::optional<Session> session;
  std::deque<CapturedCall> calls;
  std::vector<DriverCall> driver_calls;
  std::vector<GpuError> gpu_errors;
  std::vector<GpuSample> gpu_samples;
  std::vector<GpuOperation> gpu_operations;
  std::deque<KernelName> own_kernels;
  std::vector<GpuTimes> gpu_times_of;
  std::vector<GpuWindow> gpu_windows;
  std::vector<NamedRange> ranges;
  std::vector<PythonFound> pythons;
  std::vector<Tallies> tallies;  // each time
  std::vector<Process> processes;
  std::vector<Library> libraries;
  std::vector<LossEvent> losses;
  std::optional<Totals> totals;
};

}  // namespace cudabpf
