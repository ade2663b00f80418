#include "analyze/work.hpp"

#include <algorithm>

namespace cudabpf::analyze {

namespace {

std::uint64_t thread_of(const Line& line) { return std::uint64_t{line.pid} << 32 | line.tid; }

}  // namespace

WorkOf::WorkOf(Names& names)
    : init_(names.add("init")),
      device_(names.add("device")),
      context_(names.add("context")),
      module_(names.add("module")),
      memory_(names.add("memory")),
      transfer_(names.add("transfer")),
      kernel_(names.add("kernel")),
      graph_(names.add("graph")),
      sync_(names.add("sync")),
      stream_capture_(names.add("stream_capture")),
      end_capture_(names.add("cuStreamEndCapture")),
      begin_capture_(names.add("cuStreamBeginCapture")),
      begin_capture_to_graph_(names.add("cuStreamBeginCaptureToGraph")),
      launch_(names.add("launch")),
      set_(names.add("set")),
      host_to_device_(names.add("HtoD")),
      host_to_array_(names.add("HtoA")),
      device_to_host_(names.add("DtoH")),
      array_to_host_(names.add("AtoH")) {}

Work WorkOf::operator()(const Line& line) {
  if (line.op == stream_capture_) capture(line);
  Work work = of(line);
  if (capturing_.empty() || !gives_work(work)) return work;
  auto thread = std::find(capturing_.begin(), capturing_.end(), thread_of(line));
  return thread == capturing_.end() ? work : Work::recorded;
}

void WorkOf::capture(const Line& line) {
  if (line.failed()) return;
  bool begins = line.name == begin_capture_ || line.name == begin_capture_to_graph_;
  if (begins || line.name == end_capture_) std::erase(capturing_, thread_of(line));
  if (begins) capturing_.push_back(thread_of(line));
}

Work WorkOf::of(const Line& line) const {
  if (line.type == kernel_ || line.type == graph_)
    return line.op == launch_ ? Work::launch : Work::other;
  if (line.type == sync_) return Work::wait;
  if (line.type == transfer_) return of_transfer(line.op);
  if (line.type == memory_) return line.op == set_ ? Work::set : Work::memory;
  if (line.type == module_) return Work::module;
  if (line.type == init_ || line.type == device_ || line.type == context_) return Work::setup;
  return Work::other;
}

Work WorkOf::of_transfer(Name op) const {
  if (op == host_to_device_ || op == host_to_array_) return Work::to_device;
  if (op == device_to_host_ || op == array_to_host_) return Work::to_host;
  return Work::copy;
}

}  // namespace cudabpf::analyze
