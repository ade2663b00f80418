#include "collect/kernel_log.hpp"

#include <fcntl.h>

#include <cerrno>
#include <string_view>

#include "cudabpf/xid.hpp"

namespace cudabpf {

Result<KernelLog> KernelLog::open() {
  Fd fd(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd || lseek(fd.get(), 0, SEEK_END) < 0) return errno_error("/dev/kmsg");
  return KernelLog(std::move(fd));
}

std::vector<GpuError> KernelLog::read_errors(std::uint64_t& overruns) {
  std::vector<GpuError> errors;
  char record[8192];  // "6,1234,5678901,-;text\n", then lines that begin with a blank
  for (;;) {
    ssize_t size = ::read(fd_.get(), record, sizeof(record));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EPIPE) {  // reading goes on at the oldest record left
      overruns++;
      continue;
    }
    if (size <= 0) return errors;
    std::string_view line(record, static_cast<std::size_t>(size));
    line = line.substr(0, line.find('\n'));
    if (auto error = parse_xid(line.substr(line.find(';') + 1))) errors.push_back(*error);
  }
}

}  // namespace cudabpf
