#include "analyze/derived/streams.hpp"

#include "analyze/derived/processes.hpp"

namespace cudabpf::analyze {

StreamKey stream_of(const Line& line) {
  std::uint64_t process = line.process ? line.process->number : 0;
  if (line.stream > PER_THREAD_STREAM) return {process, line.stream, 0, 0};
  bool of_thread = line.stream == PER_THREAD_STREAM ||
                   (line.stream == DEFAULT_STREAM && line.default_is_threads);
  if (of_thread) return {process, PER_THREAD_STREAM, line.context, line.tid};
  return {process, DEFAULT_STREAM, line.context, 0};
}

}  // namespace cudabpf::analyze
