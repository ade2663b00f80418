// The trace: one JSON object per line (docs/trace-format.md).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "cudabpf/sink.hpp"
#include "trace/files/output.hpp"
#include "trace/write/call_line.hpp"
#include "util/result.hpp"
#include "util/text/json.hpp"

namespace cudabpf {

struct JsonlOptions {
  OutputOptions output;           // `rotates` is set from the fields below
  std::uint64_t rotate_size = 0;  // bytes; 0: never
  std::uint64_t rotate_ns = 0;    // of time; 0: never
};

// What became of a trace.
struct TraceWritten {
  std::string path;  // of its last file; "-": stdout
  unsigned files = 0;
  std::uint64_t lines = 0;
  std::uint64_t bytes = 0;
  std::uint64_t lost = 0;    // events that could not be written
  bool complete = false;     // its last line was written
  bool reader_gone = false;  // of standard output, before that
};

class JsonlSink : public Sink {
 public:
  static constexpr std::uint64_t MIN_ROTATE_SIZE = 16 << 10;

  // Opens the file, so that the user's mistakes are reported now.
  static Result<std::unique_ptr<JsonlSink>> open(JsonlOptions options);
  // Its parts go to `output`, where each may be read without the others, as in memory. Uses only
  // the options for rotation.
  JsonlSink(JsonlOptions options, TraceOutput& output);

  void begin(const Session& session) override;
  void call(const Call& call) override;
  void driver_call(const DriverCall& call) override;
  void gpu_error(const GpuError& error) override;
  void gpu_sample(const GpuSample& sample) override;
  void gpu_operation(const GpuOperation& work) override;
  void gpu_times(const GpuTimes& times) override;
  void gpu_window(const GpuWindow& window) override;
  void range(const NamedRange& range) override;
  void python(const PythonFound& found) override;
  void tallied(const Tallies&) override {}  // a trace has calls
  void process(const Process& process) override;
  void library(const Library& library) override;
  void lost(const LossEvent& loss) override;
  void flush() override;
  void end(const Totals& totals) override;

  // Ends this part. `write_because`: why what is kept up to here is to be written. These calls are
  // open (null: none is): what is written has them as unfinished. The parts do not have them before
  // they end, so that no call is in two parts.
  void turn_over(std::string write_because, const OpenCallsNow* open);

  // These are for a sink that open() made. True: standard output was a pipe, and its reader has
  // gone, so everything from now on is lost.
  bool reader_gone() const { return file_->reader_gone(); }
  std::uint64_t bytes() const { return file_->bytes(); }  // written so far
  std::optional<std::filesystem::space_info> space() const { return file_->space(); }
  TraceWritten written() const;  // after end(); before begin(), its path is that of the first file

 private:
  JsonlSink(JsonlOptions options, std::unique_ptr<Output> file);

  // By number, what this part explains, and which version of it.
  using InPart = std::unordered_map<std::uint64_t, std::uint32_t>;

  void explain(const Call& call);
  template <typename Lines>
  void add_together(std::size_t size, Lines&& lines);
  static bool is_new(InPart& known, std::uint64_t number, std::uint32_t version);
  std::string stack_of(const Call& call);
  std::string range_names(const RangePath* path, std::uint64_t ts);
  char* room(std::size_t size);
  void added(const char* end, std::uint64_t lines = 1);
  bool is_full(std::size_t more) const;
  void add(const std::string& line);
  void hand_over();
  void end_part(std::string_view first_of_next, LineBlock::WriteKept write = {});
  std::string beginning() const;
  void remember(const Process& process);
  std::uint64_t begin_of_next(std::uint64_t now) const;
  std::uint64_t since_start() const;

  const JsonlOptions options_;
  std::unique_ptr<Output> file_;  // null: the lines go elsewhere
  TraceOutput& output_;
  CallLine call_line_;
  Session session_;  // with libraries that were found later: a new file's header lists them
  LineBlock block_;
  std::uint64_t handed_over_ns_ = 0;
  FilePart part_;
  // When the last of the calls ended that are written, and of those before the last flush().
  std::uint64_t written_until_ = 0, at_last_flush_ = 0;
  Totals in_part_;
  std::uint64_t lines_in_part_ = 0, bytes_in_part_ = 0;  // the header counts only in bytes
  InPart graphs_in_part_, communicators_in_part_, ranges_in_part_, stacks_in_part_;
  // Running processes, if a part can be read without those before it; and whether some are missing.
  std::map<std::uint32_t, Process> running_;
  bool more_running_ = false;
};

}  // namespace cudabpf
