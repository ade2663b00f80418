// What a GPU did, by the queues in which it did it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>

#include "trace/read/line.hpp"

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

std::string gpu_name(const QueueKey& key);  // "GPU 0"
// To the programmer, a queue is a stream: it has CUPTI's number, as in other tools, and the handle
// by which calls name it. "stream 7"; empty: it has no number.
std::string stream_number(const QueueKey& key);
// "0x55d0c8a1", "default stream"; `work` is one of the queue's lines. Empty: the line names none,
// as that of a copy that waits; another line may.
std::string handle_name(const Line& work);
// "stream 7 (0x55d0c8a1)", by all that is known.
std::string stream_name(const QueueKey& key, const std::string& handle);

// "copy HtoD 4.00 MiB", "fill 1.00 KiB", "graph 3"; of a kernel nothing, as it has a name.
std::string work_name(const Line& work, const Names& names);

}  // namespace cudabpf::analyze
