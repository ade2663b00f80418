#include "analyze/work.hpp"

#include "analyze/derived/graph_contents.hpp"
#include "cudabpf/between_gpus.hpp"

namespace cudabpf::analyze {

std::uint64_t kernel_runs(const Line& call) {
  if (call.work != Work::launch || call.failed() || !is_counted(call)) return 0;
  if (call.meaning->node == NodeWork::kernel) return 1;
  return call.content ? call.content->kernels : 0;
}

Name direction_of(const Line& copy, Names& names) {
  if (!copy.has(Field::src_device) || !copy.has(Field::dst_device) ||
      copy.src_device == copy.dst_device)
    return copy.op;
  return names.add(between_gpus(copy.src_device, copy.dst_device));
}

}  // namespace cudabpf::analyze
