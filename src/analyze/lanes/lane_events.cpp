#include "analyze/lanes/lane_events.hpp"

#include <fmt/format.h>

#include "analyze/derived/graph_contents.hpp"
#include "analyze/work.hpp"
#include "util/console/terminal.hpp"
#include "util/limited.hpp"

namespace cudabpf::analyze {

LaneEvents::LaneEvents(Names& names)
    : names_(names),
      categories_(names),
      short_names_(names),
      ioctl_(names.add("ioctl")),
      nv_ok_(names.add("NV_OK")) {}

LaneEvent LaneEvents::of(const Line& line) {
  bool is_call = line.kind == LineKind::call, is_driver = line.kind == LineKind::driver,
       is_work = line.kind == LineKind::gpu_operation;
  LaneEvent event;
  if (line.kind == LineKind::range) {
    event.name = line.label;
    event.what = line.domain;
    event.category = Category::range;
    event.timed = line.has(Field::duration);
    return event;
  }
  event.name = is_work ? line.op : line.name;
  event.what = about(line);
  event.category = categories_.of(line);
  event.timed = line.has(Field::duration);
  event.is_kernel = !is_driver && line.kernel;
  if (is_work) return event;
  event.error = line.error;
  if (auto state = line.state(); !state.empty()) event.ending = names_.add(state);
  event.failed = is_call ? line.failed() : refused(line, nv_ok_);
  event.launch = is_call && is_counted(line) && line.work == Work::launch;
  event.ioctl = is_driver && line.op == ioctl_;
  return event;
}

Name LaneEvents::about(const Line& line) {
  if (line.kind == LineKind::driver) return line.control ? line.control : line.object_class;
  if (line.kind == LineKind::call) return launched_by(line);
  return line.kernel ? line.kernel : line.direction;
}

// The kernel or the graph, if it is known.
Name LaneEvents::launched_by(const Line& call) {
  if (call.kernel || !call.content) return call.kernel;
  Name& name = launched_graphs_[call.content];
  if (!name) {
    name = names_.add(fmt::format("graph {}, {}", call.content->number,
                                  count_of(call.content->kernels, "kernel", "kernels")));
    graph_names_.insert(name.id);
  }
  return name;
}

Name LaneEvents::name_of_graph(std::uint64_t number) {
  if (!has_room_for(graphs_, number, MAX_GRAPHS)) return {};
  Name& name = graphs_[number];
  if (!name) graph_names_.insert((name = names_.add(fmt::format("graph {}", number))).id);
  return name;
}

std::string LaneEvents::short_name(Name what) const {
  return graph_names_.contains(what.id) ? std::string(names_.text(what)) : short_names_.of(what);
}

}  // namespace cudabpf::analyze
