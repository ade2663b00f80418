#include "analyze/containers.hpp"

#include "analyze/json_text.hpp"

namespace cudabpf::analyze {

void Containers::process(const Line& line) {
  auto process = nlohmann::json::parse(line.text, nullptr, false);
  if (!process.is_object() || text_in(process, "op") == "exit") return;
  auto container = process.find("container");
  if (container == process.end() || !container->is_object()) {
    by_pid_.erase(line.pid);  // another process had that pid
    return;
  }
  by_pid_.set(line.pid, names_.add(text_in(*container, "runtime") + " " +
                                   text_in(*container, "id").substr(0, 12)));
}

Name Containers::of(std::uint32_t pid) const {
  if (Name container = by_pid_.of(pid)) return container;
  return by_pid_.full() ? not_known_ : none_;
}

}  // namespace cudabpf::analyze
