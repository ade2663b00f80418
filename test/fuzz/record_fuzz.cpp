// Records come from the kernel side, but their contents come from traced programs: no sequence of
// them may make decoding or correlating crash, hang or use too much memory, or lead to a line that
// is not JSON.
//
// The input is one record after another, each preceded by two bytes that give its size.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "correlate/correlator.hpp"
#include "trace/write/call_line.hpp"
#include "trace/write/event_lines.hpp"
#include "trace/write/gpu_lines.hpp"
#include "trace/write/range_lines.hpp"
#include "trace/write/stack_lines.hpp"

using namespace cudabpf;

namespace {

struct CheckedLines : PartialSink {
  void call(const Call& call) override {
    if (call.has_return + call.entry_lost + call.return_lost + call.unfinished > 1) abort();
    if (call.id == 0 || call.parent == call.id) abort();
    if (call.stack) check(stack_line(*call.stack, call.ts));
    std::size_t bound = lines.bound(call);
    line.resize(bound);
    char* end = lines.write(line.data(), call);
    if (end > line.data() + bound) abort();
    check({line.data(), end});
  }
  void gpu_operation(const GpuOperation& work) override {
    line.resize(work_bound(work));
    auto size = static_cast<std::size_t>(put_work(line.data(), work) - line.data());
    if (size > line.size()) abort();
    check({line.data(), size});
  }
  void gpu_times(const GpuTimes& times) override { check(times_line(times)); }
  void gpu_window(const GpuWindow& window) override { check(window_line(window)); }
  void range(const NamedRange& range) override { check(range_line(range)); }
  void python(const PythonFound& found) override { check(python_line(found)); }
  void driver_call(const DriverCall& call) override {
    if (call.has_return + call.return_lost + call.unfinished != 1) abort();
    check(driver_line(call));
  }
  void process(const Process& process) override { check(process_line(process)); }
  void lost(const LossEvent&) override {}

  static void check(std::string_view text) {
    if (!text.ends_with('\n')) abort();
    text.remove_suffix(1);
    if (text.find('\n') != text.npos || !nlohmann::json::accept(text)) abort();
  }

  CallLine lines;
  std::vector<char> line;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Function unknown = unknown_function(ApiId::cuda, "cuFromTheFuture");
  CheckedLines sink;
  auto table = cuda_functions();
  auto function_of = [&](std::uint16_t id) {
    return id < table.size() ? &table[id] : id == table.size() ? &unknown : nullptr;
  };
  Correlator::Options options;
  options.begin_ns = 1000;
  options.entry_only = [](const Function& f) { return f.op == Op::set; };
  options.driver_device = [](std::uint32_t number) {
    constexpr DriverNode NODES[] = {DriverNode::ctl, DriverNode::uvm, DriverNode::other};
    return DriverDevice{NODES[number % std::size(NODES)], "device"};
  };
  options.driver_version = DriverVersion::parse("580.159.04");
  Correlator correlator(
      sink, function_of, [](std::uint32_t) { return ProcessIdentity(); }, options);
  std::uint64_t entries = 0, returns = 0, driver_calls = 0;
  while (size >= 2) {
    std::uint16_t length;
    std::memcpy(&length, data, 2);
    data += 2;
    size -= 2;
    length = static_cast<std::uint16_t>(std::min<size_t>(length, size));
    std::vector<std::uint64_t> aligned((length + 7) / 8);
    if (length) std::memcpy(aligned.data(), data, length);
    data += length;
    size -= length;
    auto bytes = std::as_bytes(std::span(aligned)).first(length);
    if (auto record = parse_record(bytes)) {
      correlator.on_record(*record);
      bool known = function_of(record->head->function) != nullptr;
      entries += known && record->head->kind == abi::CB_ENTRY;
      returns += known && record->head->kind == abi::CB_RETURN;
      driver_calls += record->head->kind == abi::CB_DRIVER;
    }
  }
  correlator.settle_gpu_operations(~std::uint64_t{0});
  correlator.finish();
  // Every entry is in the trace, and no call without an entry or a return.
  if (correlator.counts().calls < entries || correlator.counts().calls > entries + returns) abort();
  if (correlator.counts().driver_calls != driver_calls) abort();
  return 0;
}
