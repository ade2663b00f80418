#include "cli/commands/gpu_times.hpp"

#include <utility>

#include "collect/bpf/bpf_source.hpp"
#include "collect/merged_source.hpp"

namespace cudabpf::cli {

Result<std::unique_ptr<Source>> open_with_gpu_times(SourceOptions options,
                                                    InsideSource::Place place) {
  SourceOptions of_gpus = options;
  of_gpus.calls = of_gpus.processes = of_gpus.driver = false;
  // The thread that reports what GPUs did waits for room, and there may be many processes.
  constexpr std::uint64_t RING_OF_ONE_OF_MANY = 1 << 20;
  if (place.whom == InsideSource::Place::For::all) of_gpus.ring_size = RING_OF_ONE_OF_MANY;
  auto calls = TRY(BpfSource::open(std::move(options)));
  auto gpus = TRY(InsideSource::open(std::move(of_gpus), std::move(place)));
  return std::unique_ptr<Source>(
      std::make_unique<MergedSource>(std::move(calls), std::move(gpus), MergedSource::Of::calls));
}

}  // namespace cudabpf::cli
