#include "analyze/lanes/gpu_queues.hpp"

#include <fmt/format.h>

#include "analyze/derived/streams.hpp"
#include "util/console/terminal.hpp"

namespace cudabpf::analyze {

QueueKey queue_of(const Line& work) {
  QueueKey key;
  if (work.has(Field::ordinal) && work.ordinal >= 0) key.device = work.ordinal;
  if (work.has(Field::queue))
    key.queue = work.queue;
  else
    key.stream = work.stream;
  return key;
}

std::string gpu_name(const QueueKey& key) {
  return key.device < 0 ? "GPU not known" : fmt::format("GPU {}", key.device);
}

std::string stream_number(const QueueKey& key) {
  return key.queue < 0 ? "" : fmt::format("stream {}", key.queue);
}

std::string handle_name(const Line& work) {
  if (!work.has(Field::stream)) return {};
  if (work.stream == DEFAULT_STREAM || work.stream == LEGACY_STREAM) return "default stream";
  if (work.stream == PER_THREAD_STREAM) return "a thread's default stream";
  return fmt::format("{:#x}", work.stream);
}

std::string stream_name(const QueueKey& key, const std::string& handle) {
  std::string number = stream_number(key);
  if (!number.empty()) return handle.empty() ? number : fmt::format("{} ({})", number, handle);
  if (handle.empty()) return "stream not known";
  return handle.starts_with("0x") ? "stream " + handle : handle;
}

std::string work_name(const Line& work, const Names& names) {
  if (work.kernel) return {};
  std::string_view op = names.text(work.op);
  std::string name(op == "set" ? "fill" : op);
  if (work.direction) name += fmt::format(" {}", names.text(work.direction));
  if (work.has(Field::size)) name += " " + human_bytes(work.size);
  if (work.has(Field::graph)) name += fmt::format(" {}", work.graph);
  return name;
}

}  // namespace cudabpf::analyze
