#include "merge/merged_stream.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "util/console/log.hpp"
#include "util/system/pipe.hpp"
#include "util/system/threads.hpp"

namespace cudabpf::merge {

MergedStream::~MergedStream() {
  if (thread_.joinable()) thread_.join();
}

Result<Fd> MergedStream::start() {
  Pipe pipe = TRY(make_pipe());
  thread_ = thread_without_signals(
      [this, to = std::move(pipe.to_write)]() mutable { run(std::move(to)); });
  return std::move(pipe.to_read);
}

// If a trace cannot be read any further, the merge has no end, and its reader says so.
void MergedStream::run(Fd to) {
  std::string lines;
  for (;;) {
    lines.clear();
    auto more = merger_->next(lines);
    if (!more) log::warning("{}", more.error().message);
    if (!more || !*more || !write_all(to, lines)) return;
  }
}

Result<std::unique_ptr<analyze::TraceReader>> open_merged(
    const std::vector<Files>& traces,
    const std::function<analyze::TraceReader::Progress()>& progress) {
  auto stream = std::make_shared<MergedStream>(TRY(Merger::open(traces, progress)));
  Files all;
  for (const Files& files : traces) all.insert(all.end(), files.begin(), files.end());
  std::string name = fmt::format("the merge of {} and {} more", analyze::input_name(all.front()),
                                 traces.size() - 1);
  auto reader = TRY(analyze::TraceReader::open(
      {name}, progress(), [stream](const std::string&) { return stream->start(); }));
  reader->is_made_of(std::move(all));
  return reader;
}

}  // namespace cudabpf::merge
