#include "cli/run_answer.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "analyze/summary/summary.hpp"
#include "cli/reading_command.hpp"
#include "trace/files/frames.hpp"

namespace cudabpf::cli {

namespace {

constexpr std::uint64_t MAX_LINES = 1'000'000;  // a third of a second to read
constexpr std::uint64_t LARGE = std::uint64_t{8} << 20;
constexpr std::size_t SAMPLE = std::size_t{1} << 20;

bool is_file(const std::string& path) {
  std::error_code ignored;
  return path != "-" && std::filesystem::is_regular_file(path, ignored);
}

}  // namespace

std::string summary_at_end(const TraceWritten& written, const Terminal& terminal) {
  // What else the end says: where the trace is, what to type next.
  constexpr unsigned SCREEN = 24, OTHER_LINES = 8;
  if (written.files != 1 || written.lines > MAX_LINES || !is_file(written.path)) return {};
  // No progress bar is needed here; a user who cannot read the trace again gets no answer.
  if (!become_reader()) return {};
  auto reader = analyze::TraceReader::open({written.path});
  if (!reader) return {};
  analyze::Summary summary((*reader)->names(), {});
  if (!analyze::analyze(**reader, {&summary})) return {};
  Terminal shown = terminal;
  shown.height = std::max(terminal.height, SCREEN) - OTHER_LINES;
  Page page(shown);
  summary.add_to(page, false);
  return page.take();
}

double compresses_by(const TraceWritten& written) {
  bool is_one = written.files == 1 && is_file(written.path);
  if (!is_one || written.bytes < LARGE || written.path.ends_with(".zst")) return 0;
  std::error_code ignored;
  std::uintmax_t size = std::filesystem::file_size(written.path, ignored);
  if (ignored || size < LARGE) return 0;
  std::string sample(SAMPLE, '\0');
  std::ifstream file(written.path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>((size - SAMPLE) / 2));
  if (!file.read(sample.data(), static_cast<std::streamsize>(sample.size()))) return 0;
  return static_cast<double>(sample.size()) /
         static_cast<double>(std::max<std::size_t>(1, Frames::frame_of(sample).size()));
}

}  // namespace cudabpf::cli
