#include "analyze/work.hpp"

#include <algorithm>

#include "analyze/handles.hpp"

namespace cudabpf::analyze {

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
  bool captured =
      std::find(capturing_.begin(), capturing_.end(), stream_of(line)) != capturing_.end();
  return captured ? Work::recorded : work;
}

WorkOf::Stream WorkOf::stream_of(const Line& line) {
  return {line.pid, line.stream == PER_THREAD_STREAM ? line.tid : 0, line.stream};
}

// A capture is over when it was to be ended, also where that says that it had failed.
void WorkOf::capture(const Line& line) {
  constexpr std::size_t AT_ONCE = 256;  // more are none of a real program
  bool begins = line.name == begin_capture_ || line.name == begin_capture_to_graph_;
  if (begins || line.name == end_capture_) std::erase(capturing_, stream_of(line));
  if (begins && !line.failed() && capturing_.size() < AT_ONCE)
    capturing_.push_back(stream_of(line));
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
