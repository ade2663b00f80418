#include "collect/bpf/tracepoints.hpp"

#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#include "collect/bpf/kernel_files.hpp"
#include "util/system/fd.hpp"

namespace cudabpf {

namespace {

// Reads a tracepoint's file `what` in tracefs.
Result<std::string> read_file(const std::string& category, const std::string& name,
                              const char* what) {
  auto text = read_tracefs(fmt::format("events/{}/{}/{}", category, name, what));
  if (!text) return errno_error(fmt::format("tracepoint {}:{}", category, name));
  return text;
}

}  // namespace

Result<std::uint64_t> tracepoint_id(const std::string& category, const std::string& name) {
  auto text = TRY(read_file(category, name, "id"));
  return std::strtoull(text.c_str(), nullptr, 10);
}

Result<TracepointFields> tracepoint_fields(const std::string& category, const std::string& name) {
  return parse_tracepoint_fields(TRY(read_file(category, name, "format")));
}

Result<Link> attach_tracepoint(bpf_program* program, const std::string& category,
                               const std::string& name, std::uint64_t cookie) {
  auto id = TRY(tracepoint_id(category, name));
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = PERF_TYPE_TRACEPOINT;
  attributes.config = id;
  // The CPU does not matter: a program on a tracepoint runs on any CPU that hits it.
  Fd event(
      static_cast<int>(syscall(SYS_perf_event_open, &attributes, -1, 0, -1, PERF_FLAG_FD_CLOEXEC)));
  if (!event) return errno_error(fmt::format("opening the tracepoint {}:{}", category, name));
  LIBBPF_OPTS(bpf_perf_event_opts, options, .bpf_cookie = cookie);
  Link link(bpf_program__attach_perf_event_opts(program, event.get(), &options));
  if (!link) return errno_error(fmt::format("attaching to the tracepoint {}:{}", category, name));
  event.release();  // the link owns it now
  return link;
}

}  // namespace cudabpf
