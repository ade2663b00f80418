#include "cli/commands/with_library.hpp"

#include <utility>

#include "collect/bpf/bpf_source.hpp"
#include "collect/merged_source.hpp"

namespace cudabpf::cli {

Result<std::unique_ptr<Source>> open_with_library(SourceOptions options,
                                                  InsideSource::Place place) {
  SourceOptions of_library = options;
  of_library.calls = of_library.processes = of_library.driver = false;
  // The thread that reports what GPUs did waits for room, and there may be many processes.
  constexpr std::uint64_t RING_OF_ONE_OF_MANY = 1 << 20;
  if (place.whom == InsideSource::Place::For::all) of_library.ring_size = RING_OF_ONE_OF_MANY;
  options.python = false;
  auto calls = TRY(BpfSource::open(std::move(options)));
  auto others = TRY(InsideSource::open(std::move(of_library), std::move(place)));
  return std::unique_ptr<Source>(
      std::make_unique<MergedSource>(std::move(calls), std::move(others), MergedSource::Of::calls));
}

}  // namespace cudabpf::cli
