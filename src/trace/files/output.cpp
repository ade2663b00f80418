#include "trace/files/output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "trace/end.hpp"
#include "trace/write/event_lines.hpp"
#include "util/console/log.hpp"
#include "util/console/terminal.hpp"
#include "util/system/clock.hpp"
#include "util/system/privileges.hpp"
#include "util/system/threads.hpp"

namespace cudabpf {

namespace {

constexpr auto FRAME_CHECK = std::chrono::milliseconds(250);

std::uint64_t now() { return now_ns(CLOCK_MONOTONIC); }

std::uint64_t count_lines(std::string_view bytes) {
  return static_cast<std::uint64_t>(std::count(bytes.begin(), bytes.end(), '\n'));
}

// "t.jsonl.zst", "-2" -> "t-2.jsonl.zst"
std::string with_infix(const std::string& path, const std::string& infix) {
  std::filesystem::path name = std::filesystem::path(path).filename(), extension;
  if (name.extension() == ".zst") {
    extension = ".zst";
    name = name.stem();
  }
  return std::filesystem::path(path).replace_filename(
      name.stem().string() + infix + name.extension().string() + extension.string());
}

constexpr std::string_view BEGUN = "%t";

// Whether a file's name is this one, in which BEGUN may stand for any time.
bool is_named(std::string_view name, std::string_view expected) {
  constexpr std::string_view TIME = "00000000T000000";
  std::size_t at = expected.find(BEGUN);
  if (at == expected.npos) return name == expected;
  std::string_view before = expected.substr(0, at), after = expected.substr(at + BEGUN.size());
  if (name.size() != before.size() + TIME.size() + after.size() || !name.starts_with(before) ||
      !name.ends_with(after))
    return false;
  return std::equal(
      TIME.begin(), TIME.end(), name.begin() + static_cast<std::ptrdiff_t>(at),
      [](char like, char is) { return like == 'T' ? is == 'T' : is >= '0' && is <= '9'; });
}

}  // namespace

std::string numbered_path(const std::string& path, unsigned number) {
  return number > 1 ? with_infix(path, fmt::format("-{}", number)) : path;
}

std::string rotated_path(const std::string& path, unsigned number, const std::string& begun) {
  std::filesystem::path rotated = with_infix(path, fmt::format(".{:04}", number));
  if (begun.empty()) return rotated;
  std::string name = rotated.filename();
  if (auto at = name.find(BEGUN); at != name.npos) name.replace(at, BEGUN.size(), begun);
  return rotated.replace_filename(name);
}

std::vector<RotatedFile> rotated_files(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::vector<RotatedFile> files;
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator(folder.empty() ? "." : folder, ignored)) {
    std::string name = entry.path().filename();
    // The number may follow any dot: try each, and see whether it yields this very name.
    for (std::size_t dot = name.find('.'); dot != std::string::npos;
         dot = name.find('.', dot + 1)) {
      unsigned number = 0;
      std::from_chars(name.data() + dot + 1, name.data() + name.size(), number);
      if (number &&
          is_named(name, std::filesystem::path(rotated_path(path, number)).filename().string()))
        files.push_back({number, folder / name});
    }
  }
  std::sort(files.begin(), files.end(), [](const RotatedFile& a, const RotatedFile& b) {
    return std::tie(a.number, a.path) < std::tie(b.number, b.path);
  });
  return files;
}

Output::Output(OutputOptions options, bool compresses)
    : options_(std::move(options)), compresses_(compresses) {
  constexpr double USUAL = 0.1;  // until the real ratio is known
  if (compresses_) compression_ = USUAL;
}

Output::~Output() { Output::stop(); }

Result<std::unique_ptr<Output>> Output::open(OutputOptions options) {
  bool to_stream = options.path == "-" || options.stream >= 0;
  if ((to_stream || options.path == NULL_DEVICE) && options.rotates)
    return Error{fmt::format("{} cannot be rotated", to_stream ? "standard output" : NULL_DEVICE),
                 "use -o to name a file, or leave out --rotate-…", exit_code::USAGE};
  if (options.own_choice && !to_stream) TRY(make_parent_folder(options.path));
  bool compresses = !to_stream && options.path.ends_with(".zst");
  std::unique_ptr<Output> output(new Output(std::move(options), compresses));
  if (output->options_.rotates) {
    output->part_.number = 1;
    for (const RotatedFile& file : rotated_files(output->options_.path))
      output->taken_ = std::max(output->taken_, file.number);
  }
  TRY(output->open_file());
  return output;
}

Result<> Output::open_file() {
  if (options_.path == "-" || options_.stream >= 0) {
    int fd = ::fcntl(options_.stream >= 0 ? options_.stream : STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) return errno_error("cannot write the trace to standard output");
    path_ = std::string("-");  // g++ 12 takes the plain assignment for an overlapping copy
    file_ = TraceFile::stream(Fd(fd), options_.hurry_fd);
  } else {
    // A file that the user named is replaced; one that cudabpf names or numbers never is.
    bool may_replace = !options_.rotates && !options_.own_choice;
    while (!file_) {
      path_ = new_path();
      auto file = TraceFile::create(path_, may_replace, options_.hurry_fd);
      if (file)
        file_ = std::move(*file);
      else if (may_replace || ::access(path_.c_str(), F_OK) != 0)
        return file.error();
      else
        taken_++;
    }
    delete_old();
  }
  files_++;
  return ok();
}

std::string Output::new_path() const {
  if (part_.number)
    return rotated_path(options_.path, taken_ + part_.number,
                        file_timestamp(now_ns(CLOCK_REALTIME)));
  return numbered_path(options_.path, taken_ + 1);
}

// The file that has just been opened stays, and may still grow.
void Output::delete_old() const {
  if (!options_.keep && !options_.keep_bytes) return;
  std::uint64_t room = options_.keep_bytes - std::min(options_.keep_bytes, options_.file_bytes);
  std::uint64_t kept = 0;
  auto files = rotated_files(options_.path);
  std::for_each(files.rbegin(), files.rend(), [&](const RotatedFile& file) {
    if (file.path == path_) return;
    std::error_code error;
    auto size = std::filesystem::file_size(file.path, error);
    kept += error ? 0 : size;
    bool is_old = options_.keep && file.number + options_.keep <= taken_ + part_.number;
    bool is_too_much = options_.keep_bytes && kept > room;
    if ((!is_old && !is_too_much) || ::unlink(file.path.c_str()) != 0) return;
    if (options_.logs)
      log::note("{} is deleted ({})", file.path, is_old ? "--keep" : "--keep-size");
  });
}

std::optional<std::filesystem::space_info> Output::space() const {
  if (options_.path == "-" || options_.path == NULL_DEVICE || options_.stream >= 0)
    return std::nullopt;
  return space_for(options_.path);
}

void Output::start(std::string header, const FilePart& part, std::uint64_t trace_start_ns) {
  header_ = std::move(header);
  part_ = part;
  trace_start_ns_ = trace_start_ns;
  writer_ = thread_without_signals([this] { run(); });
}

void Output::stop() {
  if (!writer_.joinable()) return;
  blocks_.close();
  writer_.join();
}

void Output::run() {
  privileges::keep_only(privileges::own_rights());
  ready(true);
  while (!blocks_.is_done()) {
    auto block = blocks_.next(frames_.open() ? std::optional(FRAME_CHECK) : std::nullopt);
    if (block) accept(*block);
    if (frames_.due(now())) close_frame();
    if (block) blocks_.give_back(std::move(*block));
  }
  close_frame();
  if (file_ && !file_->finish()) lose(1);
}

void Output::accept(const LineBlock& block) {
  if (block.lines) {
    std::string_view lines(block.bytes.get(), block.size);
    if (compresses_) {
      frames_.add(lines, block.lines, now());
    } else {
      deliver(lines, block.lines, true);
    }
  }
  if (block.file_end) end_file(*block.file_end);
}

void Output::close_frame() {
  if (!frames_.open()) return;
  Frames::Frame frame = frames_.close();
  framed_in_ += frame.size;
  framed_out_ += frame.bytes.size();
  compression_ = static_cast<double>(framed_out_) / static_cast<double>(framed_in_);
  deliver(frame.bytes, frame.lines, false);
}

// Writes the lines, or as many as it can, and counts the rest as lost.
void Output::deliver(std::string_view bytes, std::uint64_t lines, bool divisible) {
  if (!ready(false)) return lose(lines);
  if (!divisible) {
    if (file_->append_whole(bytes)) return wrote(bytes.size(), lines);
    failed();
    return lose(lines);
  }
  std::size_t done = file_->append_lines(bytes);
  if (done == bytes.size()) return wrote(done, lines);
  failed();
  std::uint64_t left = count_lines(bytes.substr(done));
  wrote(done, lines - left);
  lose(left);
}

// True if lines can be written: the file exists, has its header, and says what is missing.
bool Output::ready(bool at_once) {
  if (closed_) return false;
  if (file_ && header_.empty() && !gap_.count) return true;
  if (!at_once && now() < retry_at_ns_) return false;
  if (catch_up()) return true;
  failed();
  return false;
}

bool Output::catch_up() {
  if (!file_ && !open_file()) return false;
  if (!header_.empty() && !put_line(header_)) return false;
  header_.clear();
  if (!gap_.count) return true;
  LossEvent loss;
  loss.reason = Loss::output;
  loss.count = gap_.count;
  loss.since = gap_.since_ns;
  loss.until = since_start();
  if (!put_line(lost_line(loss))) return false;
  gap_ = {};
  return true;
}

bool Output::put_line(const std::string& line) {
  std::string frame = compresses_ ? Frames::frame_of(line) : std::string();
  const std::string& bytes = compresses_ ? frame : line;
  if (!file_->append_whole(bytes)) return false;
  wrote(bytes.size(), 1);
  return true;
}

void Output::wrote(std::size_t bytes, std::uint64_t lines) {
  bytes_out_ += bytes;
  bytes_in_file_ += bytes;
  lines_ += lines;
  lines_in_file_ += lines;
}

void Output::lose(std::uint64_t lines) {
  if (!gap_.count) gap_.since_ns = since_start();
  gap_.count += lines;
  lost_ += lines;
  lost_in_file_ += lines;
}

// Writing failed; errno says why.
void Output::failed() {
  int why = errno;
  retry_at_ns_ = now() + options_.retry_ns;
  bool gave_up = file_ && file_->gave_up();
  closed_ = why == EPIPE || gave_up;
  if (warned_) return;
  warned_ = true;
  if (gave_up)
    log::warning("no program reads the trace from standard output; the rest is lost");
  else if (closed_)
    log::warning("the program that read the trace from standard output has gone; the rest is lost");
  else
    log::warning("cannot write the trace to {}: {}. Calls are counted as lost until it works again",
                 path_ == "-" ? "standard output" : path_, std::generic_category().message(why));
}

void Output::end_file(const LineBlock::FileEndsHere& file_end) {
  close_frame();
  if (ready(true)) {
    FileEnd end = file_end.end;
    constexpr auto OUTPUT = static_cast<std::size_t>(Loss::output);
    end.totals.losses[OUTPUT] += lost_in_file_;
    if (end.whole) end.whole->losses[OUTPUT] += lost_;
    end.lines = lines_in_file_ + 1;
    ended_ = put_line(end_line(end)) && file_->finish();
    if (!ended_) failed();
  }
  if (file_end.next_header.empty()) return;
  if (options_.logs && ended_)
    log::note(
        "{} is complete: {}, {}{}", path_, count_of(lines_in_file_, "line", "lines"),
        human_bytes(bytes_in_file_),
        lost_in_file_ ? fmt::format(", {} could not be written", with_commas(lost_in_file_)) : "");
  file_.reset();
  ended_ = false;
  part_ = file_end.next;
  header_ = file_end.next_header;
  lines_in_file_ = lost_in_file_ = bytes_in_file_ = 0;
  ready(true);
}

std::uint64_t Output::since_start() const {
  std::uint64_t at = now();
  return at > trace_start_ns_ ? at - trace_start_ns_ : 0;
}

}  // namespace cudabpf
