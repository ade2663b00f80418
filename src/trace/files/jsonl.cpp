#include "trace/files/jsonl.hpp"

#include <algorithm>

#include "trace/header.hpp"
#include "trace/write/event_lines.hpp"
#include "trace/write/gpu_lines.hpp"
#include "trace/write/range_lines.hpp"
#include "trace/write/stack_lines.hpp"
#include "util/limited.hpp"
#include "util/system/clock.hpp"

namespace cudabpf {

namespace {
// Lines reach the file at least this often, for people who watch it grow.
constexpr std::uint64_t HAND_OVER_NS = 100'000'000;
// The most bytes that a file's last line can take.
constexpr std::uint64_t END_SIZE = 2048;
}  // namespace

JsonlSink::JsonlSink(JsonlOptions options, std::unique_ptr<Output> file)
    : options_(std::move(options)),
      file_(std::move(file)),
      output_(*file_),
      block_(output_.take()) {}

JsonlSink::JsonlSink(JsonlOptions options, TraceOutput& output)
    : options_(std::move(options)), output_(output), block_(output_.take()) {}

Result<std::unique_ptr<JsonlSink>> JsonlSink::open(JsonlOptions options) {
  if (options.rotate_size && options.rotate_size < MIN_ROTATE_SIZE)
    return Error{"--rotate-size is too small: a file of a trace takes at least 16 KiB",
                 {},
                 exit_code::USAGE};
  options.output.rotates = options.rotate_size || options.rotate_ns;
  options.output.file_bytes = options.rotate_size;
  auto output = TRY(Output::open(options.output));
  return std::unique_ptr<JsonlSink>(new JsonlSink(std::move(options), std::move(output)));
}

void JsonlSink::begin(const Session& session) {
  session_ = session;
  part_.number = options_.output.rotates ? 1 : 0;
  std::string header = beginning();
  bytes_in_part_ = header.size();
  output_.start(std::move(header), part_, session.monotonic_ns);
}

void JsonlSink::call(const Call& call) {
  if (call.graph || call.communicator || call.range || call.stack) explain(call);
  char* at = room(call_line_.bound(call));
  added(call_line_.write(at, call));
  in_part_.counts.add(call);
  written_until_ = std::max(written_until_, call.ts + call.duration);
}

// A file says what each launched graph holds, and what each communicator, each range and each stack
// is, before the first line that names it there, and when more is known of it.
void JsonlSink::explain(const Call& call) {
  std::size_t size = call_line_.bound(call);
  add_together(size, [&] {
    std::string lines = range_names(call.range, call.ts) + stack_of(call);
    if (call.graph && is_new(graphs_in_part_, call.graph->number, 1))
      lines += graph_line(*call.graph, call.ts);
    auto communicator = [&](const Communicator* of) {
      if (is_new(communicators_in_part_, of->number, of->version))
        lines += communicator_line(*of, call.ts);
    };
    if (call.communicator) communicator(call.communicator);
    for (const Communicator* of : call.also_made) communicator(of);
    return lines;
  });
}

// Lines that explain one of at most `size` bytes are in the same file. lines(): those that this
// file has not yet.
template <typename Lines>
void JsonlSink::add_together(std::size_t size, Lines&& lines) {
  std::string before = lines();
  if (lines_in_part_ > 0 && is_full(before.size() + size)) {
    end_part({});
    before = lines();
  }
  if (before.empty()) return;
  auto count = static_cast<std::uint64_t>(std::count(before.begin(), before.end(), '\n'));
  added(json::put(room(before.size()), before), count);
}

bool JsonlSink::is_new(InPart& known, std::uint64_t number, std::uint32_t version) {
  constexpr std::size_t MAX_REMEMBERED = 1 << 16;
  if (known.size() >= MAX_REMEMBERED) known.clear();
  auto [at, is_new] = known.try_emplace(number, version);
  bool changed = at->second != version;
  at->second = version;
  return is_new || changed;
}

// Those around it come first.
std::string JsonlSink::range_names(const RangePath* path, std::uint64_t ts) {
  std::vector<const RangePath*> added;
  for (; path && is_new(ranges_in_part_, path->number, 1); path = path->around.get())
    added.push_back(path);
  std::string lines;
  for (auto one = added.rbegin(); one != added.rend(); one++) lines += range_name_line(**one, ts);
  return lines;
}

std::string JsonlSink::stack_of(const Call& call) {
  if (!call.stack || !is_new(stacks_in_part_, call.stack->number, 1)) return {};
  return stack_line(*call.stack, call.ts);
}

void JsonlSink::python(const PythonFound& found) { add(python_line(found)); }

void JsonlSink::range(const NamedRange& range) {
  std::string line = range_line(range);
  add_together(line.size(), [&] { return range_names(range.path.get(), range.ts); });
  add(line);
}

void JsonlSink::gpu_error(const GpuError& error) { add(error_line(error)); }

void JsonlSink::gpu_sample(const GpuSample& sample) { add(sample_line(sample)); }

void JsonlSink::gpu_operation(const GpuOperation& work) {
  char* at = room(work_bound(work));
  added(put_work(at, work));
}

void JsonlSink::gpu_times(const GpuTimes& times) { add(times_line(times)); }
void JsonlSink::gpu_window(const GpuWindow& window) { add(window_line(window)); }

void JsonlSink::driver_call(const DriverCall& call) {
  add(driver_line(call));
  in_part_.counts.add(call);
  written_until_ = std::max(written_until_, call.ts + call.duration);
}

void JsonlSink::process(const Process& process) {
  add(process_line(process));
  if (!file_) remember(process);
}

void JsonlSink::remember(const Process& process) {
  constexpr std::size_t MAX = 4096, LONGEST = 8192;  // lines hold less of a text than that
  if (process.op == Process::Op::exit) {
    running_.erase(process.pid);
    more_running_ &= !running_.empty();
    return;
  }
  if (!has_room_for(running_, process.pid, MAX)) {
    more_running_ = true;
    return;
  }
  Process& known = running_[process.pid] = process;
  known.op = Process::Op::start;
  for (std::string* text : {&known.cmdline, &known.exe, &known.cgroup})
    if (text->size() > LONGEST) text->resize(LONGEST);
}

// What a part begins with.
std::string JsonlSink::beginning() const {
  std::string lines = header_line(session_, part_);
  for (const auto& [pid, process] : running_) {
    Process there_before = process;
    there_before.ts = part_.since;
    lines += process_line(there_before);
  }
  if (more_running_)
    lines += lost_line(
        {Loss::table_full, std::nullopt, 0, part_.since, "processes that run when a part begins"});
  return lines;
}

void JsonlSink::library(const Library& library) {
  add(library_line(library));
  session_.libraries.push_back(library);
}

void JsonlSink::lost(const LossEvent& loss) {
  add(lost_line(loss));
  if (loss.count) in_part_.losses[static_cast<std::size_t>(loss.reason)] += *loss.count;
}

// Makes room at the end of the block for a line of at most `size` bytes.
char* JsonlSink::room(std::size_t size) {
  if (block_.capacity - block_.size < size) {
    hand_over();
    if (block_.capacity < size) {  // a line that is larger than a block gets one of its own
      block_.bytes = std::make_unique_for_overwrite<char[]>(size);
      block_.capacity = size;
    }
  }
  return block_.bytes.get() + block_.size;
}

// Lines have been written where room() said; the last ends at `end`.
void JsonlSink::added(const char* end, std::uint64_t lines) {
  const char* begin = block_.bytes.get() + block_.size;
  auto size = static_cast<std::size_t>(end - begin);
  if (lines_in_part_ > 0 && is_full(size)) {
    std::string line(begin, size);
    return end_part(line);
  }
  block_.size += size;
  block_.lines += lines;
  lines_in_part_ += lines;
  bytes_in_part_ += size;
}

// Whether this many more bytes do not fit into this file.
bool JsonlSink::is_full(std::size_t more) const {
  if (!options_.rotate_size) return false;
  double stored = static_cast<double>(bytes_in_part_ + more) * output_.compression();
  return stored + END_SIZE > static_cast<double>(options_.rotate_size);
}

void JsonlSink::add(const std::string& line) {
  char* at = room(line.size());
  added(json::put(at, line));
}

void JsonlSink::hand_over() {
  output_.put(std::move(block_));
  block_ = output_.take();
  handed_over_ns_ = now_ns(CLOCK_MONOTONIC);
}

void JsonlSink::turn_over(std::string write_because, const OpenCallsNow* open) {
  LineBlock::WriteKept write{.because = std::move(write_because)};
  if (open)
    open->each([&](const Call& call, std::uint64_t) {
      write.unfinished += range_names(call.range, call.ts) + stack_of(call);
      if (call.communicator) write.unfinished += communicator_line(*call.communicator, call.ts);
      std::size_t before = write.unfinished.size();
      write.unfinished.resize(before + call_line_.bound(call));
      char* end = call_line_.write(write.unfinished.data() + before, call);
      write.unfinished.resize(static_cast<std::size_t>(end - write.unfinished.data()));
      write.counts.add(call);
    });
  end_part({}, std::move(write));
}

// When a part that begins now begins in the time of the trace: what ended before is in those before
// it. While calls are being written, they come from rings, and may have ended some time ago.
std::uint64_t JsonlSink::begin_of_next(std::uint64_t now) const {
  if (written_until_ == at_last_flush_) return now;
  return std::max(part_.since, std::min(now, written_until_));
}

// Ends this part, and begins another with the given line.
void JsonlSink::end_part(std::string_view first_of_next, LineBlock::WriteKept write) {
  std::uint64_t now = since_start(), next = begin_of_next(now);
  // What is to be written because something has happened lasts until now, with the calls that are
  // open.
  in_part_.duration_ns = (write.because.empty() ? next : now) - part_.since;
  auto turn = std::make_unique<LineBlock::FileEndsHere>();
  turn->end.part = part_;
  turn->end.last = false;
  turn->end.totals = in_part_;
  part_ = {part_.number ? part_.number + 1 : 0, next};
  turn->next = part_;
  turn->next_header = beginning();
  turn->write = std::move(write);
  in_part_ = {};
  graphs_in_part_.clear();
  communicators_in_part_.clear();
  ranges_in_part_.clear();
  stacks_in_part_.clear();
  bytes_in_part_ = turn->next_header.size();
  lines_in_part_ = 0;
  block_.file_end = std::move(turn);
  hand_over();
  if (first_of_next.empty()) return;
  json::put(room(first_of_next.size()), first_of_next);
  block_.size += first_of_next.size();
  block_.lines++;
  lines_in_part_++;
  bytes_in_part_ += first_of_next.size();
}

void JsonlSink::flush() {
  if (options_.rotate_ns && begin_of_next(since_start()) - part_.since >= options_.rotate_ns)
    end_part({});
  at_last_flush_ = written_until_;
  if (block_.lines && now_ns(CLOCK_MONOTONIC) - handed_over_ns_ >= HAND_OVER_NS) hand_over();
}

void JsonlSink::end(const Totals& totals) {
  auto turn = std::make_unique<LineBlock::FileEndsHere>();
  turn->end.part = part_;
  turn->end.totals = totals;
  if (part_.since) {
    // The last file may have begun when the trace was over, while its last records were written.
    turn->end.whole = totals;
    turn->end.whole->duration_ns = std::max(totals.duration_ns, part_.since);
    in_part_.duration_ns = turn->end.whole->duration_ns - part_.since;
    turn->end.totals = in_part_;
  }
  block_.file_end = std::move(turn);
  output_.put(std::move(block_));
  output_.stop();
}

TraceWritten JsonlSink::written() const {
  return {file_->path(), file_->files(), file_->lines(),      file_->bytes(),
          file_->lost(), file_->ended(), file_->reader_gone()};
}

std::uint64_t JsonlSink::since_start() const {
  std::uint64_t now = now_ns(CLOCK_MONOTONIC);
  return now > session_.monotonic_ns ? now - session_.monotonic_ns : 0;
}

}  // namespace cudabpf
