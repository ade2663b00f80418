#include "collect/tracepoints.hpp"

#include <bpf/libbpf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#include "util/fd.hpp"

namespace cudabpf {

namespace {

// A tracefs of our own, visible to nobody else, where no other is mounted.
Fd detached_tracefs() {
  Fd context(fsopen("tracefs", FSOPEN_CLOEXEC));
  if (!context || fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) return {};
  return Fd(fsmount(context.get(), FSMOUNT_CLOEXEC, 0));
}

Fd open_id(const std::string& category, const std::string& name) {
  std::string path = fmt::format("events/{}/{}/id", category, name);
  for (const char* folder : {"/sys/kernel/tracing/", "/sys/kernel/debug/tracing/"})
    if (Fd id(open((folder + path).c_str(), O_RDONLY | O_CLOEXEC)); id) return id;
  static const Fd OWN = detached_tracefs();
  if (!OWN) return {};
  return Fd(openat(OWN.get(), path.c_str(), O_RDONLY | O_CLOEXEC));
}

}  // namespace

Result<std::uint64_t> tracepoint_id(const std::string& category, const std::string& name) {
  Fd file = open_id(category, name);
  char text[32] = {};
  if (!file || read(file.get(), text, sizeof(text) - 1) <= 0)
    return errno_error(fmt::format("tracepoint {}:{}", category, name));
  return std::strtoull(text, nullptr, 10);
}

Result<bpf_link*> attach_tracepoint(bpf_program* program, const std::string& category,
                                    const std::string& name) {
  auto id = tracepoint_id(category, name);
  if (!id) return id.error();
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = PERF_TYPE_TRACEPOINT;
  attributes.config = *id;
  // The processor does not matter: a program on a tracepoint runs wherever it is hit.
  Fd event(
      static_cast<int>(syscall(SYS_perf_event_open, &attributes, -1, 0, -1, PERF_FLAG_FD_CLOEXEC)));
  if (!event) return errno_error(fmt::format("opening the tracepoint {}:{}", category, name));
  bpf_link* link = bpf_program__attach_perf_event(program, event.get());
  if (!link) return errno_error(fmt::format("attaching to the tracepoint {}:{}", category, name));
  event.release();  // the link's now
  return link;
}

}  // namespace cudabpf
