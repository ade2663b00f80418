#include "collect/kernel_log.hpp"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "cudabpf/xid.hpp"

namespace cudabpf {

std::optional<GpuError> error_in_record(std::string_view record) {
  std::string_view line = record.substr(0, record.find('\n'));
  return parse_xid(line.substr(line.find(';') + 1));
}

Result<KernelLog> KernelLog::open() {
  Fd fd(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd || lseek(fd.get(), 0, SEEK_END) < 0) return errno_error("/dev/kmsg");
  return KernelLog(std::move(fd));
}

std::vector<GpuError> KernelLog::read_errors(std::uint64_t& overruns) {
  std::vector<GpuError> errors;
  char record[8192];
  for (;;) {
    ssize_t size = ::read(fd_.get(), record, sizeof(record));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EPIPE) {  // reading goes on at the oldest record left
      overruns++;
      continue;
    }
    if (size <= 0) return errors;
    if (auto error = error_in_record({record, static_cast<std::size_t>(size)}))
      errors.push_back(std::move(*error));
  }
}

}  // namespace cudabpf
