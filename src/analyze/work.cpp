#include "analyze/work.hpp"

#include "util/console/terminal.hpp"

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
      launch_(names.add("launch")),
      set_(names.add("set")),
      host_to_device_(names.add("HtoD")),
      host_to_array_(names.add("HtoA")),
      device_to_host_(names.add("DtoH")),
      array_to_host_(names.add("AtoH")) {}

Work WorkOf::operator()(const Line& line) const {
  Work work = of(line);
  return line.recorded && gives_work(work) ? Work::recorded : work;
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

Name direction_of(const Line& copy, Names& names) {
  if (!copy.has(Field::src_device) || !copy.has(Field::dst_device) ||
      copy.src_device == copy.dst_device)
    return copy.op;
  return names.add(between_gpus(copy.src_device, copy.dst_device));
}

}  // namespace cudabpf::analyze
