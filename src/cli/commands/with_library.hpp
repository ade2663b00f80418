// What only a library inside a program can record, beside what eBPF records.
#pragma once

#include <memory>

#include "collect/inside/inside_source.hpp"

namespace cudabpf::cli {

// Calls by eBPF; the library inside reports what GPUs do, the program's own ranges and where in
// its Python it is, of the processes that come to the place.
Result<std::unique_ptr<Source>> open_with_library(SourceOptions options, InsideSource::Place place);

}  // namespace cudabpf::cli
