#include "trace/read/trace_source.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "trace/read/line_parser.hpp"
#include "util/system/privileges.hpp"

namespace cudabpf::analyze {

namespace {

constexpr std::size_t BLOCK = std::size_t{1} << 20;
constexpr std::size_t BLOCKS_AHEAD = 4;
constexpr std::string_view ZSTD_MAGIC = "\x28\xb5\x2f\xfd";

ssize_t read_some(int fd, char* to, std::size_t size) {
  ssize_t got = 0;
  do got = ::read(fd, to, size);
  while (got < 0 && errno == EINTR);
  return got;
}

// What a file that is not a trace seems to be, judging by how it begins.
std::string what_begins(std::string_view head) {
  constexpr std::pair<std::string_view, std::string_view> KNOWN[] = {
      {"\x1f\x8b", "a gzip file: decompress it first"},
      {"\xfd"
       "7zXZ",
       "an xz file: decompress it first"},
      {"PK\x03\x04", "a zip file"},
      {"\x7f"
       "ELF",
       "a program"},
      {"SQLite format 3", "an SQLite database, as nsys exports them"},
      {"QDSTRM", "a report of nsys"},
      {"%PDF", "a PDF"},
      {"<", "XML or HTML"},
      {"#!", "a script"},
      {"\xff\xfe", "text in UTF-16: make it UTF-8 first"},
      {"\xfe\xff", "text in UTF-16: make it UTF-8 first"},
  };
  for (auto [begin, what] : KNOWN)
    if (head.starts_with(begin)) return std::string(what);
  if (head.find("\"traceEvents\"") != std::string_view::npos || head.starts_with("["))
    return "a Chrome trace, which cannot be read back";
  std::size_t bytes = std::min<std::size_t>(head.size(), 512);
  bool binary = std::any_of(head.begin(), head.begin() + static_cast<std::ptrdiff_t>(bytes),
                            [](char c) { return static_cast<unsigned char>(c) < 9; });
  if (binary) return "binary data";
  if (head.empty()) return "blank lines";
  return head.starts_with("{") ? "other JSON" : "text";
}

}  // namespace

std::size_t preamble(std::string_view text) {
  constexpr std::string_view BYTE_ORDER_MARK = "\xef\xbb\xbf";
  std::size_t size = text.starts_with(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK.size() : 0;
  return std::min(text.find_first_not_of(" \t\r\n", size), text.size());
}

std::string input_name(const std::string& path) { return path == "-" ? "standard input" : path; }

Result<Fd> open_trace_file(const std::string& path) {
  Fd fd;
  {
    privileges::Raised others({CAP_DAC_READ_SEARCH});
    fd = Fd(path == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                        : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  }
  if (!fd)
    return errno_error(input_name(path),
                       errno == EACCES ? "a trace belongs to the user who took it" : std::string());
  return fd;
}

Result<std::unique_ptr<TraceSource>> TraceSource::open(Fd fd, const std::string& name) {
  struct stat file {};
  if (::fstat(fd.get(), &file) != 0) return errno_error(name);
  if (S_ISDIR(file.st_mode)) return Error{name + " is a folder", "name the trace in it"};
  std::string head(4096, '\0');
  std::size_t size = 0;
  while (size < head.size()) {
    ssize_t got = read_some(fd.get(), head.data() + size, head.size() - size);
    if (got < 0) return errno_error(name);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  head.resize(size);
  if (head.empty())
    return Error{name + " is empty", "the capture may have been cut off before it began"};
  bool compressed = head.starts_with(ZSTD_MAGIC);
  // How a trace begins; a compressed one's beginning is checked when its lines are read.
  std::string_view begin = std::string_view(head).substr(preamble(head));
  bool seems_trace = begin.starts_with("{\"") && begin.find("\"type\":") != begin.npos;
  if (!compressed && !seems_trace)
    return Error{name + " is not a cudabpf trace: it looks like " + what_begins(begin), {}};
  auto known_size = S_ISREG(file.st_mode) ? static_cast<std::uint64_t>(file.st_size) : 0;
  std::unique_ptr<TraceSource> source(new TraceSource(std::move(fd), known_size, compressed));
  source->head_ = std::move(head);
  source->thread_ = std::thread([raw = source.get()] { raw->run(); });
  return source;
}

TraceSource::TraceSource(Fd fd, std::uint64_t file_size, bool compressed)
    : fd_(std::move(fd)), file_size_(file_size), compressed_(compressed) {}

TraceSource::~TraceSource() {
  give_up();
  if (thread_.joinable()) thread_.join();
}

void TraceSource::give_up() {
  {
    std::lock_guard lock(mutex_);
    unwanted_ = true;
  }
  changed_.notify_all();
}

std::uint64_t TraceSource::read() const {
  std::lock_guard lock(mutex_);
  return read_;
}

bool TraceSource::next(Block& block) {
  std::unique_lock lock(mutex_);
  if (block.bytes) spare_.push_back(std::move(block));
  changed_.wait(lock, [&] { return !ready_.empty() || done_ || unwanted_; });
  if (ready_.empty() || unwanted_) return false;
  block = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return true;
}

void TraceSource::run() {
  if (compressed_)
    read_compressed();
  else
    read_plain();
  hand_over(true);
  std::lock_guard lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

std::size_t TraceSource::fill(char* to, std::size_t size) {
  std::size_t got = 0;
  if (!head_.empty()) {
    got = std::min(size, head_.size());
    std::memcpy(to, head_.data(), got);
    head_.erase(0, got);
  } else {
    ssize_t count = read_some(fd_.get(), to, size);
    if (count < 0) broken_ = std::strerror(errno);
    got = count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  std::lock_guard lock(mutex_);
  read_ += got;
  return unwanted_ ? 0 : got;
}

void TraceSource::read_plain() {
  for (;;) {
    char* to = room(BLOCK / 4);
    std::size_t got = fill(to, filling_.capacity - LineParser::PADDING - filling_.size);
    if (!got) return;
    filled(got);
    if (filling_.capacity - LineParser::PADDING - filling_.size < BLOCK / 4 && !hand_over(false))
      return;
  }
}

void TraceSource::read_compressed() {
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  std::vector<char> input(ZSTD_DStreamInSize());
  std::size_t wanted = 0;  // 0: at the end of a frame
  std::size_t silent = 0;  // bytes read since some gave text: frames may have none, and be long
  while (std::size_t got = fill(input.data(), input.size())) {
    silent += got;
    ZSTD_inBuffer in{input.data(), got, 0};
    bool more = true;  // the decompressor may hold back output that had no room
    while (more) {
      char* to = room(BLOCK / 4);
      ZSTD_outBuffer out{to, filling_.capacity - LineParser::PADDING - filling_.size, 0};
      wanted = ZSTD_decompressStream(context.get(), &out, &in);
      if (ZSTD_isError(wanted) != 0) {
        broken_ = ZSTD_getErrorName(wanted);
        return;
      }
      filled(out.pos);
      if (out.pos) silent = 0;
      more = in.pos < in.size || out.pos == out.size;
      if (filling_.size > BLOCK / 2 && !hand_over(false)) return;
    }
    if (silent <= MAX_LINE) continue;
    silent = 0;
    if (!line_end_)
      hand_over_nothing();
    else if (!hand_over(false))
      return;
  }
  if (!wanted || !broken_.empty()) return;
  broken_ = "it ends within a compressed frame";
  ends_in_frame_ = true;
}

char* TraceSource::room(std::size_t wanted) {
  std::size_t needed = filling_.size + wanted + LineParser::PADDING;
  if (!filling_.bytes) {
    std::lock_guard lock(mutex_);
    if (!spare_.empty()) {
      filling_ = std::move(spare_.front());
      spare_.pop_front();
    }
    filling_.size = 0;
  }
  if (filling_.capacity < needed) {
    std::size_t capacity = std::max(needed, std::max(BLOCK, filling_.capacity * 2));
    auto larger = std::make_unique_for_overwrite<char[]>(capacity);
    if (filling_.size) std::memcpy(larger.get(), filling_.bytes.get(), filling_.size);
    filling_.bytes = std::move(larger);
    filling_.capacity = capacity;
  }
  return filling_.bytes.get() + filling_.size;
}

void TraceSource::filled(std::size_t size) {
  std::string_view added(filling_.bytes.get() + filling_.size, size);
  std::size_t newline = added.rfind('\n');
  if (newline != std::string_view::npos) line_end_ = filling_.size + newline + 1;
  filling_.size += size;
  // If a line is too long, only its beginning is kept, made malformed by a byte that no text has.
  if (filling_.size - line_end_ > MAX_LINE) {
    filling_.size = line_end_ + MAX_LINE;
    filling_.bytes[filling_.size - 1] = '\xff';
    hand_over_nothing();
  }
}

// The end may be far off: a reader that waits for it can give up at each of these.
void TraceSource::hand_over_nothing() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ready_.size() < BLOCKS_AHEAD || unwanted_; });
  ready_.emplace_back();
  changed_.notify_all();
}

// Hands over whole lines; what follows the last of them begins the next block.
bool TraceSource::hand_over(bool at_end) {
  std::size_t whole = at_end ? filling_.size : line_end_;
  if (!whole) return true;  // a line that is longer than a block
  Block block = std::move(filling_);
  std::size_t rest = block.size - whole;
  filling_ = {};
  line_end_ = 0;
  if (rest) {
    std::memcpy(room(rest), block.bytes.get() + whole, rest);
    filling_.size = rest;
  }
  block.size = whole;
  // What is read from the padding must not depend on what the memory held before.
  std::memset(block.bytes.get() + whole, '\n', LineParser::PADDING);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ready_.size() < BLOCKS_AHEAD || unwanted_; });
  ready_.push_back(std::move(block));
  changed_.notify_all();
  return !unwanted_;
}

}  // namespace cudabpf::analyze
