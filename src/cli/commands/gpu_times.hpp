// GPU times beside what eBPF records.
#pragma once

#include <memory>

#include "collect/inside/inside_source.hpp"

namespace cudabpf::cli {

// Calls by eBPF; the library inside reports only what GPUs do, of the processes that come to the
// place.
Result<std::unique_ptr<Source>> open_with_gpu_times(SourceOptions options,
                                                    InsideSource::Place place);

}  // namespace cudabpf::cli
