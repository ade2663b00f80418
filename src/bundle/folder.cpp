#include "bundle/folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "util/sha256.hpp"

namespace cudabpf::bundle {

namespace {

constexpr const char* MANIFEST = "manifest.json";
constexpr const char* TAPE = "tape.jsonl";
constexpr const char* DATA = "data";
constexpr const char* MEMORY = "memory";
constexpr const char* IMAGES = "images";
constexpr std::uint64_t MAX_MANIFEST = std::uint64_t{256} << 20;
constexpr std::uint64_t MAX_IMAGE = std::uint64_t{2} << 30;
constexpr std::size_t MAX_LINE = std::size_t{64} << 20;  // a graph's nodes are in one

Result<> write_at(const Fd& file, std::string_view bytes, std::uint64_t offset,
                  const std::string& name) {
  while (!bytes.empty()) {
    ssize_t written = pwrite(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno_error("write " + name);
    bytes.remove_prefix(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return ok();
}

// Reads until `to` is full, or the file ends.
Result<std::size_t> read_at(const Fd& file, std::string& to, std::uint64_t offset,
                            const std::string& name) {
  std::size_t filled = 0;
  while (filled < to.size()) {
    ssize_t got = pread(file.get(), to.data() + filled, to.size() - filled,
                        static_cast<off_t>(offset + filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("read " + name);
    if (!got) break;
    filled += static_cast<std::size_t>(got);
  }
  return filled;
}

Result<Fd> made(const Fd& folder, const char* name, const std::string& path) {
  Fd file(openat(folder.get(), name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return errno_error("create " + path + '/' + name);
  return file;
}

// A regular file, and its size: opening what else a name may be could wait for ever.
struct Opened {
  Fd file;
  std::uint64_t size = 0;
};
Result<Opened> opened(const Fd& folder, const std::string& name, const std::string& path) {
  Opened found;
  found.file =
      Fd(openat(folder.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!found.file || fstat(found.file.get(), &status) != 0)
    return errno_error("open " + path + '/' + name);
  if (!S_ISREG(status.st_mode)) return Error{path + '/' + name + " is no regular file", {}};
  found.size = static_cast<std::uint64_t>(status.st_size);
  return found;
}

Result<Fd> opened_folder(int at, const std::string& name) {
  Fd folder(openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return errno_error("open " + name);
  return folder;
}

bool is_empty(const std::string& path) {
  DIR* folder = opendir(path.c_str());
  if (!folder) return false;
  std::size_t entries = 0;
  while (readdir(folder)) entries++;
  closedir(folder);
  return entries == 2;  // itself, and the one above
}

}  // namespace

Result<FolderWriter> FolderWriter::create(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && (errno != EEXIST || !is_empty(path)))
    return errno == EEXIST
               ? Error{path + " is there already, and is not an empty folder", "name another one"}
               : errno_error("create " + path);
  FolderWriter writer(path);
  writer.folder_ = TRY(opened_folder(AT_FDCWD, path));
  if (fchmod(writer.folder_.get(), 0700) != 0) return errno_error("change the mode of " + path);
  if (mkdirat(writer.folder_.get(), IMAGES, 0700) != 0)
    return errno_error("create " + path + '/' + IMAGES);
  writer.images_ = TRY(opened_folder(writer.folder_.get(), IMAGES));
  writer.tape_ = TRY(made(writer.folder_, TAPE, path));
  writer.data_ = TRY(made(writer.folder_, DATA, path));
  writer.memory_ = TRY(made(writer.folder_, MEMORY, path));
  return writer;
}

Result<std::uint32_t> FolderWriter::add_image(ImageKind kind, std::string_view bytes) {
  Image image{sha256_hex(bytes), kind, bytes.size()};
  std::string name = file_of(image);
  auto [place, is_new] =
      image_places_.try_emplace(name, static_cast<std::uint32_t>(known_images_.size()));
  if (!is_new) return place->second;
  Fd file = TRY(made(images_, name.c_str(), path_ + '/' + IMAGES));
  TRY(write_at(file, bytes, 0, name));
  known_images_.push_back(std::move(image));
  return place->second;
}

Result<bool> FolderWriter::has_page(const std::optional<std::uint32_t>& place,
                                    std::string_view page) const {
  std::string there(PageRun::PAGE, '\0');
  if (!place) return there == page;
  auto read = TRY(read_at(memory_, there, *place * PageRun::PAGE, path_ + '/' + MEMORY));
  return read == there.size() && there == page;
}

Result<Extent> FolderWriter::add_data(std::string_view bytes) {
  TRY(write_at(data_, bytes, data_size_, path_ + '/' + DATA));
  Extent extent{data_size_, bytes.size()};
  data_size_ += bytes.size();
  return extent;
}

Result<std::optional<std::uint32_t>> FolderWriter::add_page(std::string_view page) {
  if (std::ranges::all_of(page, [](char byte) { return byte == 0; }))
    return std::optional<std::uint32_t>();
  TRY(write_at(memory_, page, memory_pages_ * PageRun::PAGE, path_ + '/' + MEMORY));
  return std::optional(memory_pages_++);
}

Result<> FolderWriter::add(const Operation& operation) {
  std::string line = line_of(operation);
  off_t end = lseek(tape_.get(), 0, SEEK_END);
  if (end < 0) return errno_error("write " + path_ + '/' + TAPE);
  TRY(write_at(tape_, line, static_cast<std::uint64_t>(end), path_ + '/' + TAPE));
  operations_++;
  return ok();
}

Result<> FolderWriter::finish(Manifest manifest) {
  manifest.images = std::move(known_images_);
  manifest.operations = operations_;
  manifest.data_size = data_size_;
  manifest.memory_pages = memory_pages_;
  constexpr const char* UNFINISHED = "manifest.json.part";
  Fd file = TRY(made(folder_, UNFINISHED, path_));
  TRY(write_at(file, manifest_text(manifest), 0, path_ + '/' + MANIFEST));
  for (const Fd* written : {&file, &tape_, &data_, &memory_})
    if (fsync(written->get()) != 0) return errno_error("write " + path_);
  if (renameat(folder_.get(), UNFINISHED, folder_.get(), MANIFEST) != 0)
    return errno_error("write " + path_ + '/' + MANIFEST);
  return ok();
}

Result<Folder> Folder::open(const std::string& path) {
  Folder folder(path);
  Fd directory = TRY(opened_folder(AT_FDCWD, path));
  Opened manifest = TRY(opened(directory, MANIFEST, path));
  if (manifest.size > MAX_MANIFEST) return folder.broken(MANIFEST, "is larger than it may be");
  std::string text(manifest.size, '\0');
  text.resize(TRY(read_at(manifest.file, text, 0, MANIFEST)));
  auto read = manifest_in(text);
  if (!read) return Error{path + ": " + read.error().message, read.error().hint};
  folder.manifest_ = std::move(*read);
  folder.images_ = TRY(opened_folder(directory.get(), IMAGES));
  folder.tape_ = std::move(TRY(opened(directory, TAPE, path)).file);
  Opened data = TRY(opened(directory, DATA, path)), memory = TRY(opened(directory, MEMORY, path));
  if (data.size < folder.manifest_.data_size) return folder.broken(DATA, "is cut off");
  // A page at the end of the file is whole, too.
  if (memory.size < folder.manifest_.memory_pages * PageRun::PAGE)
    return folder.broken(MEMORY, "is cut off");
  folder.data_ = std::move(data.file);
  folder.memory_ = std::move(memory.file);
  return folder;
}

Error Folder::broken(std::string_view file, std::string_view why) const {
  return {fmt::format("{}/{} {}", path_, file, why), "capture it again"};
}

Result<std::string> Folder::image(std::size_t place) const {
  const Image& image = manifest_.images.at(place);
  std::string file_name = file_of(image), name = std::string(IMAGES) + '/' + file_name;
  Opened file = TRY(opened(images_, file_name, path_ + '/' + IMAGES));
  if (file.size != image.size || file.size > MAX_IMAGE)
    return broken(name, "has another size than the manifest says");
  std::string bytes = TRY(part_of(file.file, name.c_str(), {0, image.size}));
  if (sha256_hex(bytes) != image.hash) return broken(name, "is not what its name says");
  return bytes;
}

Result<std::string> Folder::part_of(const Fd& file, const char* name, const Extent& extent) const {
  std::string bytes(extent.size, '\0');
  if (TRY(read_at(file, bytes, extent.offset, path_ + '/' + name)) != bytes.size())
    return broken(name, "is cut off");
  return bytes;
}

Result<std::string> Folder::data(const Extent& extent) const {
  return part_of(data_, DATA, extent);
}

Result<std::string> Folder::page(std::uint32_t number) const {
  return part_of(memory_, MEMORY, {number * PageRun::PAGE, PageRun::PAGE});
}

Result<bool> Folder::read_more() {
  constexpr std::size_t STEP = std::size_t{1} << 20;
  read_.erase(0, std::exchange(at_, 0));
  std::size_t size = read_.size();
  read_.resize(size + STEP);
  ssize_t got = 0;
  do got = read(tape_.get(), read_.data() + size, STEP);
  while (got < 0 && errno == EINTR);
  read_.resize(size + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  if (got < 0) return errno_error("read " + path_ + '/' + TAPE);
  return got > 0;
}

Result<std::optional<Operation>> Folder::next() {
  std::size_t end = read_.find('\n', at_);
  while (end == std::string::npos) {
    std::size_t known = read_.size() - at_;
    if (known > MAX_LINE) return broken(TAPE, "has a line that is longer than it may be");
    if (!TRY(read_more())) {
      if (known) return broken(TAPE, "is cut off");
      if (lines_ != manifest_.operations)
        return broken(TAPE, fmt::format("has {} operations, and the manifest says {}", lines_,
                                        manifest_.operations));
      return std::optional<Operation>();
    }
    end = read_.find('\n', known);
  }
  std::string_view line = std::string_view(read_).substr(at_, end - at_);
  lines_++;
  auto operation = operation_in(line, manifest_);
  if (!operation)
    return broken(TAPE, fmt::format("line {}: {}", lines_, operation.error().message));
  at_ = end + 1;
  return std::optional(std::move(*operation));
}

}  // namespace cudabpf::bundle
