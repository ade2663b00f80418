// What a GPU did, by the queues in which it did it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>

#include "analyze/trace/line.hpp"

namespace cudabpf::analyze {

// Which queue of a process a line of GPU work is of. Without a number, the stream stands for it.
struct QueueKey {
  std::int64_t device = -1;  // CUDA's ordinal; -1: not known
  std::int64_t queue = -1;   // -1: not known
  std::uint64_t stream = 0;
  bool operator==(const QueueKey&) const = default;
  bool operator<(const QueueKey& other) const {
    return std::tie(device, queue, stream) < std::tie(other.device, other.queue, other.stream);
  }
};
QueueKey queue_of(const Line& work);

std::string gpu_name(const QueueKey& key);      // "GPU 0"
std::string queue_number(const QueueKey& key);  // "queue 7"; empty: it has none
// "stream 0x55d0c8a1", "default stream"; `work` is one of the queue's lines. Empty: it names none,
// as a copy that waits; another one may.
std::string stream_name(const Line& work);

// "copy HtoD 4.00 MiB", "fill 1.00 KiB", "graph 3"; of a kernel nothing, as it has a name.
std::string work_name(const Line& work, const Names& names);

}  // namespace cudabpf::analyze
