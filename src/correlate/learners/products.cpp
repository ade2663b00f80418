#include "correlate/learners/products.hpp"

#include <algorithm>

#include "cudabpf/describe.hpp"

namespace cudabpf {

namespace {

// cublasMath_t; its further bits do not say how products are computed.
constexpr std::uint64_t MATH_BITS = 15, TF32_MATH = 3;

// By its mode a handle has products of floats computed otherwise than their functions' names say.
void set_math(std::optional<std::uint64_t> math, Product& product) {
  bool by_mode = product.compute == ComputeType::F32 && product.types[0] == CudaType::R_32F;
  if (!by_mode) return;
  if (!math)
    product.compute = ComputeType::unknown;
  else if ((*math & MATH_BITS) == TF32_MATH)
    product.compute = ComputeType::F32_FAST_TF32;
}

}  // namespace

void Products::begin(ThreadId thread, Frame& frame) {
  auto known = processes_.find(thread.pid);
  const OfProcess* process = known == processes_.end() ? nullptr : &known->second;
  bool has_layout = process && process->layout && !process->layouts_differ;
  frame.product = describe_product(*frame.function, {frame.words.data(), frame.nwords},
                                   frame.structure, has_layout ? &*process->layout : nullptr);
  auto handle = argument_of(*frame.function, {frame.words.data(), frame.nwords}, Role::blas);
  if (!handle) return;
  Handle of = handle_of(thread, frame, *handle);
  if (of.stream) frame.details.stream = of.stream;
  set_math(of.math, *frame.product);
}

Products::Handle Products::handle_of(ThreadId thread, const Frame& frame,
                                     std::uint64_t handle) const {
  auto process = processes_.find(thread.pid);
  if (process == processes_.end()) return {};
  const auto& [handles, told, tells, layout, differ] = process->second;
  // What is lost in between may have said something else.
  if (auto at = told.find(thread.tid); at != told.end() && at->second.handle == handle &&
                                       nothing_lost_between(at->second.drops, frame.drops))
    return at->second.set;
  auto at = handles.find(handle);
  return tells || at == handles.end() ? Handle{} : at->second;
}

Products::Handle* Products::add(OfProcess& process, std::uint64_t handle) {
  if (auto at = process.handles.find(handle); at != process.handles.end()) return &at->second;
  if (!bounds_.has_memory(Kept::blas_handles, kept_)) {
    bounds_.left_out(Kept::blas_handles);
    return nullptr;
  }
  kept_++;
  return &process.handles[handle];
}

void Products::follow(const Call& call) {
  if (!call.has_return || call.result != 0) return;
  OfProcess& process = processes_[call.pid];
  bool creates = call.function->op == Op::create;
  std::uint64_t handle = argument_of(*call.function, call.words, Role::blas).value_or(0);
  if (creates) handle = call.outs.empty() ? 0 : call.outs[0];
  if (!handle) return;
  if (call.function->op == Op::destroy) {
    kept_ -= process.handles.erase(handle);
    return;
  }
  Handle* known = add(process, handle);
  if (!known) return;
  if (creates) *known = {0, 0};  // the default stream, in the default mode
  if (call.function->op == Op::set_stream)
    known->stream = argument_of(*call.function, call.words, Role::stream);
  if (call.function->op == Op::set_math)
    known->math = argument_of(*call.function, call.words, Role::u32);
}

// A stream or a mode may have been set by any of them.
void Products::calls_lost(std::uint32_t pid) {
  auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  kept_ -= process->second.handles.size();
  process->second.handles.clear();
}

void Products::thread_gone(ThreadId thread) {
  if (auto process = processes_.find(thread.pid); process != processes_.end())
    kept_ -= process->second.told.erase(thread.tid);
}

void Products::process_gone(std::uint32_t pid) {
  calls_lost(pid);
  auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  kept_ -= process->second.told.size();
  processes_.erase(process);
}

void Products::on_handle(const Record& record) {
  const abi::cb_head& head = *record.head;
  const abi::cb_blas_handle& said = *record.blas_handle;
  OfProcess& process = processes_[head.pid];
  process.tells = true;
  auto& told = process.told;
  auto at = told.find(head.tid);
  if (at == told.end()) {
    if (!bounds_.has_memory(Kept::blas_handles, kept_)) {
      bounds_.left_out(Kept::blas_handles);
      return;
    }
    kept_++;
    at = told.try_emplace(head.tid).first;
  }
  at->second = {said.handle, head.drops, {said.stream, said.math}};
}

void Products::on_layout(const Record& record) {
  LtLayout found;
  std::ranges::copy(record.lt_layout->places, found.begin());
  OfProcess& process = processes_[record.head->pid];
  auto same = [](const abi::cb_lt_place& a, const abi::cb_lt_place& b) {
    return a.at == b.at && a.size == b.size;
  };
  if (process.layout && !std::ranges::equal(*process.layout, found, same))
    process.layouts_differ = true;
  process.layout = found;
}

}  // namespace cudabpf
