#include "analyze/work.hpp"

#include "analyze/circumstances/graph_contents.hpp"
#include "cudabpf/between_gpus.hpp"

namespace cudabpf::analyze {

namespace {

Work of_transfer(Name op) {
  if (op == Op::HtoD || op == Op::HtoA) return Work::to_device;
  if (op == Op::DtoH || op == Op::AtoH) return Work::to_host;
  return Work::copy;
}

Work of_call(const Line& line) {
  if (line.type == Type::kernel || line.type == Type::graph)
    return line.op == Op::launch ? Work::launch : Work::other;
  if (line.type == Type::sync) return Work::wait;
  if (line.type == Type::transfer) return of_transfer(line.op);
  if (line.type == Type::memory) return line.op == Op::set ? Work::set : Work::memory;
  if (line.type == Type::module) return Work::module;
  if (line.type == Type::init || line.type == Type::device || line.type == Type::context)
    return Work::setup;
  return Work::other;
}

}  // namespace

Work work_of(const Line& call) {
  Work work = of_call(call);
  return call.recorded && gives_work(work) ? Work::recorded : work;
}

std::uint64_t kernel_runs(const Line& call) {
  if (work_of(call) != Work::launch || call.failed() || !is_counted(call)) return 0;
  if (call.type == Type::kernel) return 1;
  return call.content ? call.content->kernels : 0;
}

Name direction_of(const Line& copy, Names& names) {
  if (!copy.has(Field::src_device) || !copy.has(Field::dst_device) ||
      copy.src_device == copy.dst_device)
    return copy.op;
  return names.add(between_gpus(copy.src_device, copy.dst_device));
}

}  // namespace cudabpf::analyze
