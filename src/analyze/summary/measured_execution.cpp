#include "analyze/summary/measured_execution.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace cudabpf::analyze {

namespace {

// The path of the iteration whose time is nearest to the median or, if that is too long ago, of the
// last one.
CriticalPath usual_path(const Execution& execution, const GpusAtWork::OfGpu& gpu) {
  const ThreadWork& thread = *execution.thread();
  const Iterations& iterations = execution.iterations();
  auto path_of = [&](std::uint64_t begin, std::uint64_t end) -> CriticalPath {
    if (gpu.curve.between(begin, end).time < end - begin) return {};  // it was not all measured
    return execution.gpus().path_of(thread.process, thread.tid, begin, end);
  };
  CriticalPath path = path_of(iterations.typical.begin, iterations.typical.end);
  if (path.time()) return path;
  for (auto last = iterations.each.rbegin(); last != iterations.each.rend(); ++last) {
    if (!last->timed) continue;
    path = path_of(last->begin, last->end);
    if (path.time() || !execution.gpus().sampled()) return path;
  }
  return {};
}

Json path_json(const CriticalPath& path, const Names& names) {
  Json operations = Json::array();
  for (const CriticalPath::OfName& work : path.operations)
    operations.push_back({{"name", names.text(work.name)},
                          {"count", work.count},
                          {"time_us", microseconds(work.time)}});
  return {{"begin_us", microseconds(path.begin)},
          {"end_us", microseconds(path.end)},
          {"work_us", microseconds(path.working)},
          {"latency_us", microseconds(path.latency)},
          {"host_us", microseconds(path.host)},
          {"operations", operations},
          {"communication_us", microseconds(path.communication)}};
}

}  // namespace

MeasuredExecution measured_of(const Execution& execution, const Stretch& stretch) {
  MeasuredExecution measured;
  if (!execution.thread() || !execution.gpus().measured()) return measured;
  measured.gpu = execution.gpus().of_process(execution.thread()->process);
  if (!measured.gpu) return measured;
  const GpusAtWork::OfGpu& gpu = *measured.gpu;
  const Iterations& iterations = execution.iterations();
  // Iterations that do not wait are issued long before the GPU does them.
  if (iterations.found == Iterations::Found::between_waits && iterations.times.count()) {
    for (const Iteration& one : iterations.each) {
      if (!one.timed) continue;
      GpuCurve::Share share = gpu.curve.between(one.begin, one.end);
      if (share.time < one.end - one.begin) continue;  // it was measured in part, or not at all
      measured.busy.push_back(share.busy);
      measured.exposed.push_back(share.exposed);
      measured.share.add(share);
    }
    std::sort(measured.busy.begin(), measured.busy.end());
    std::sort(measured.exposed.begin(), measured.exposed.end());
    measured.path = usual_path(execution, gpu);
  }
  if (measured.busy.empty()) measured.share = gpu.curve.between(stretch.begin, stretch.end);
  constexpr double MISSING_MUCH = 5;  // percent of the work: what is left cannot be judged by
  measured.can_judge = measured.share.time && execution.gpus().missing_share() < MISSING_MUCH &&
                       share(gpu.late, gpu.operations) < MISSING_MUCH;
  return measured;
}

Json measured_execution_json(const MeasuredExecution& work, const Names& names) {
  if (!work.gpu) return nullptr;
  const GpuCurve::Share& share = work.share;
  Json json = {{"pid", work.gpu->pid}, {"device", work.gpu->device}};
  json.update(gpu_share_json(share));
  json["idle_by_cause_us"] = causes_json(share.idle);
  json["judged"] = work.can_judge;
  if (work.path.time()) json["critical_path"] = path_json(work.path, names);
  if (std::size_t count = work.busy.size())
    json["each_iteration"] = {{"count", count},
                              {"busy_mean_us", microseconds(share.busy / count)},
                              {"busy_p50_us", microseconds(quantile_of(work.busy, 0.5))},
                              {"busy_p99_us", microseconds(quantile_of(work.busy, 0.99))},
                              {"exposed_mean_us", microseconds(share.exposed / count)},
                              {"exposed_p50_us", microseconds(quantile_of(work.exposed, 0.5))},
                              {"exposed_p99_us", microseconds(quantile_of(work.exposed, 0.99))},
                              {"idle_mean_us", microseconds(share.idle_time() / count)}};
  return json;
}

}  // namespace cudabpf::analyze
