#include "replay/energy/program_energy.hpp"

#include "analyze/energy/energy.hpp"
#include "analyze/trace_reader.hpp"
#include "replay/times/actual_times.hpp"

namespace cudabpf::replay {

Result<ProgramEnergy> read_program_energy(const std::vector<std::string>& paths,
                                          const Manifest& manifest) {
  auto trace = TRY(analyze::TraceReader::open(paths));
  analyze::ThreadFilter captured;
  captured.pid = manifest.iteration.pid;
  captured.tid = manifest.iteration.tid;
  analyze::Energy energy(trace->names(), captured, {});
  TRY(analyze::analyze(*trace, {&energy}));
  if (!energy.why_not().empty()) return ProgramEnergy{{}, energy.why_not()};
  for (const auto& gpu : energy.gpus()) {
    if (!is_of_capture(trace->facts().header, gpu.device, manifest)) continue;
    if (!gpu.iterations) return ProgramEnergy{{}, "the trace has no iterations"};
    const auto& used = gpu.iterations->used;
    if (!used.known()) return ProgramEnergy{{}, used.why_not};
    MeasuredIteration each;
    each.iterations = gpu.iterations->count;
    each.window_s = used.seconds();
    each.joules = used.joules / each.iterations;
    each.error_j = used.error / each.iterations;
    each.seconds = used.seconds() / each.iterations;
    return ProgramEnergy{each, {}};
  }
  return ProgramEnergy{{}, "the trace has no samples of the GPU of the capture"};
}

}  // namespace cudabpf::replay
