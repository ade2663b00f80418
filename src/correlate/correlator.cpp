#include "correlate/correlator.hpp"

#include <utility>

#include "cudabpf/describe.hpp"
#include "cudabpf/xid.hpp"

namespace cudabpf {

Correlator::Correlator(Sink& sink, FunctionOf function_of, TracedProcesses::Lookup lookup,
                       Options options)
    : function_of_(std::move(function_of)),
      begin_boottime_ns_(options.begin_boottime_ns),
      bounds_(options.limits),
      trace_(sink, options.begin_ns),
      processes_(sink, std::move(lookup)),
      open_calls_(bounds_),
      learners_(trace_, open_calls_, bounds_, options.coverage, std::move(options.driver_device),
                options.driver_version),
      pairing_(trace_, processes_, open_calls_, learners_, bounds_,
               {std::move(options.entry_only), std::move(options.coverage.silent),
                std::move(options.drops_of)}),
      gpu_errors_([this](const GpuError& error) { trace_.sink().gpu_error(error); }) {}

void Correlator::on_record(const Record& record) {
  const abi::cb_head& head = *record.head;
  switch (head.kind) {
    case abi::CB_ENTRY:
      if (trace_.is_over_at(head.ts)) break;
      if (const Function* function = function_of(record)) pairing_.entered(record, *function);
      break;
    case abi::CB_RETURN:
      if (const Function* function = function_of(record)) pairing_.returned(record, *function);
      break;
    case abi::CB_NAME:
      learners_.make_room_for_names();
      learners_.names.on_record(record);
      break;
    case abi::CB_DRIVER:
    case abi::CB_DRIVER_RETURN:
    case abi::CB_INTERRUPT:
      on_driver(record);
      break;
    case abi::CB_XID:
      on_xid(record);
      break;
    case abi::CB_GPU_TIMES:
    case abi::CB_GPU_NAME:
    case abi::CB_GPU_WORK:
    case abi::CB_GPU_BATCH:
    case abi::CB_GPU_WINDOW:
      learners_.make_room_for_names();
      learners_.gpu_operations.on_record(record);
      break;
    case abi::CB_RANGE:
      on_range(record);
      break;
    case abi::CB_PYTHON:
      if (trace_.is_over_at(head.ts)) return;
      [[fallthrough]];
    case abi::CB_STACK:
    case abi::CB_CALL_STACK:  // of a call that had begun
      learners_.stacks.on_record(record);
      break;
    case abi::CB_HOLDER:  // of a call that had begun
      learners_.holders.on_record(record);
      break;
    case abi::CB_LT_LAYOUT:
      learners_.products.on_layout(record);
      break;
    case abi::CB_BLAS_HANDLE:
      learners_.products.on_handle(record);
      break;
    case abi::CB_THREAD_EXIT:
      if (!trace_.is_over_at(head.ts)) learners_.driver_calls.thread_exited(head);
      pairing_.thread_exited(head);
      break;
    default:
      on_process(record);
      break;
  }
}

const Function* Correlator::function_of(const Record& record) {
  const Function* function = function_of_(record.head->function);
  bad_records_ += !function;
  return function;
}

// An operation whose begin was seen is followed to its end.
void Correlator::on_driver(const Record& record) {
  const abi::cb_head& head = *record.head;
  if (head.kind != abi::CB_DRIVER_RETURN && trace_.is_over_at(head.ts)) return;
  if (head.kind == abi::CB_DRIVER) processes_.announce(head.pid, trace_.ts_of(head.ts));
  learners_.driver_calls.on_record(record);
}

// One that has begun is followed to its end.
void Correlator::on_range(const Record& record) {
  const abi::cb_head& head = *record.head;
  bool ends = head.function == abi::CB_RANGE_POP || head.function == abi::CB_RANGE_END;
  if (!ends && trace_.is_over_at(head.ts)) return;
  processes_.announce(head.pid, trace_.ts_of(head.ts));
  learners_.ranges.on_record(record);
}

void Correlator::on_xid(const Record& record) {
  if (trace_.is_over_at(record.head->ts)) return;
  GpuError error = describe_xid(record.xid->number, fixed_text(record.xid->device),
                                fixed_text(record.xid->message));
  error.ts = trace_.ts_of(record.head->ts);
  error.message_cut = record.head->flags & abi::CB_STRING_CUT;
  gpu_errors_.traced(std::move(error));
}

void Correlator::on_process(const Record& record) {
  const abi::cb_head& head = *record.head;
  if (trace_.is_over_at(head.ts)) return;
  if (processes_.is_repeated(record)) return;
  bool exits = head.kind == abi::CB_EXIT;
  if (exits) learners_.driver_calls.thread_exited(head);
  // An exec ends every other thread and leaves the old program's calls and handles behind. The pid
  // of a fork or a start may have had an earlier owner whose exit was lost.
  using Last = CallPairing::LastThread;
  pairing_.end_process(head.pid, exits ? Last{head.tid, head.drops} : Last{});
  bool from_its_beginning = head.kind == abi::CB_FORK || head.kind == abi::CB_EXEC ||
                            record.process->start_time >= begin_boottime_ns_;
  if (!exits && from_its_beginning) learners_.process_began(head.pid);
  processes_.on_record(record, trace_.ts_of(head.ts));
}

void Correlator::forget_process(std::uint32_t pid) {
  pairing_.end_process(pid, {});
  processes_.forget(pid);
}

void Correlator::finish() {
  gpu_errors_.settle();
  pairing_.finish();
}

}  // namespace cudabpf
