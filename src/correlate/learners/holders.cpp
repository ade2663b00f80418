#include "correlate/learners/holders.hpp"

namespace cudabpf {

std::string_view holder_name(std::string_view file) {
  constexpr std::string_view SO = ".so.";
  std::size_t at = file.find(SO);
  if (at == file.npos) return file;
  std::size_t end = file.find_first_not_of("0123456789", at + SO.size());
  return end == file.npos || file[end] != '.' ? file : file.substr(0, end);
}

// A call of the driver that it makes itself has the holder of that around it: this is whose code
// asked for both.
void Holders::on_record(const Record& record) {
  const abi::cb_head& head = *record.head;
  CallStack* calls = open_.find(thread_of(head));
  Frame* frame = calls ? calls->innermost_at(head.sp, head.drops) : nullptr;
  if (!frame || !frame->function->allocates()) return;
  frame->holder = holder_name(record.text);
  if (frame->parent)
    calls->each([&](const Frame& around) {
      if (around.id == frame->parent && around.function->allocates()) frame->holder = around.holder;
    });
}

}  // namespace cudabpf
