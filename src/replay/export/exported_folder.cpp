#include "replay/export/exported_folder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "util/system/fd.hpp"

namespace cudabpf::replay {

Result<> write_text(const std::string& folder, const std::string& name, const std::string& text) {
  std::string path = folder + '/' + name;
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return errno_error("create " + path, {}, exit_code::OUTPUT_FAILED);
  for (std::string_view rest = text; !rest.empty();) {
    ssize_t written = ::write(file.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno_error("write " + path, {}, exit_code::OUTPUT_FAILED);
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  return ok();
}

std::uint64_t bytes_in(const std::vector<Occurrence::Part>& parts) {
  std::uint64_t size = 0;
  for (const Occurrence::Part& part : parts) size += part.range.size();
  return size;
}

std::string image_file(const bundle::Image& image) { return "images/" + bundle::file_of(image); }

}  // namespace cudabpf::replay
