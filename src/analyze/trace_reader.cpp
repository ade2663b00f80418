#include "analyze/trace_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "cudabpf/event.hpp"
#include "util/exit_codes.hpp"
#include "util/saturating.hpp"
#include "util/text/json_text.hpp"

namespace cudabpf::analyze {

namespace {

constexpr std::size_t MAX_MALFORMED_LISTED = 5;
// There are a dozen; any beyond this many are counted as one.
constexpr std::size_t MAX_REASONS = 100;
constexpr const char* OTHER_REASONS = "(other reasons)";

// The list may come from a hostile trace: keeps the first few texts, and the beginning of each.
std::vector<std::string> shortened_list(const std::vector<std::string>& texts) {
  constexpr std::size_t MAX = 16, LONGEST = 64;
  std::vector<std::string> list;
  for (std::size_t i = 0; i < std::min(MAX, texts.size()); i++)
    list.push_back(texts[i].substr(0, LONGEST));
  return list;
}

bool is_degraded(std::string_view reason) {
  const LossInfo* known = find_loss(reason);
  return known && known->degraded;
}

}  // namespace

std::string TraceFacts::Loss::text(std::string_view reason) const {
  constexpr std::size_t LONGEST = 24;  // known reasons are shorter
  std::string name = shortened(std::string(reason), LONGEST);
  if (!count) return name + " (how many is not known)";
  return fmt::format("{}{} {}", uncounted ? "at least " : "", with_commas(count), name);
}

Result<std::unique_ptr<TraceReader>> TraceReader::open(std::vector<std::string> paths,
                                                       Progress progress, OpenFile open_file) {
  std::unique_ptr<TraceReader> reader(
      new TraceReader(std::move(paths), std::move(progress), std::move(open_file)));
  TRY(reader->open_next());
  return reader;
}

TraceReader::TraceReader(std::vector<std::string> paths, Progress progress, OpenFile open_file)
    : progress_(std::move(progress)), open_file_(std::move(open_file)) {
  facts_.paths = files_ = std::move(paths);
}

void TraceReader::want(Part part, std::string name, std::string_view ranges) {
  part.recorded_from = facts_.part.recorded_from;
  part.of_ranges = !ranges.empty();
  derived_.ranges().want(ranges);
  facts_.ranges = derived_.ranges().wanted();
  facts_.part = part;
  facts_.part_name = std::move(name);
}

Result<> TraceReader::open_next() {
  const std::string& path = files_[file_++];
  batch_ = {};
  ahead_ = {};
  source_ = TRY(TraceSource::open(TRY(open_file_(path)), input_name(path)));
  at_ = 0;
  ended_ = half_line_ = false;
  losses_here_.clear();
  TraceSource::Block block;
  if (!source_->next(block) || !block.size)
    return Error{
        fmt::format("{} is not a cudabpf trace: {}", input_name(path),
                    source_->broken().empty() ? "there is nothing in it" : source_->broken()),
        {}};
  std::string_view first(block.bytes.get(), block.size);
  std::size_t begin = preamble(first);
  number_ = static_cast<std::uint64_t>(std::count(first.begin(), first.begin() + begin, '\n'));
  TRY(take_header(first.substr(begin, first.find('\n', begin) - begin)));
  ahead_ = std::make_unique<LinesAhead>(*source_, std::move(block), begin, number_, parser_);
  return ok();
}

Result<> TraceReader::take_header(std::string_view text) {
  std::string path = input_name(files_[file_ - 1]);
  // Parsed as analyses will see it: a file that does not begin with a header is refused.
  Line line;
  bool is_header = parser_.parse(text, line) && line.kind == LineKind::header;
  if (!is_header || line.header->format != "cudabpf-trace")
    return Error{fmt::format("{} is not a cudabpf trace: {}", path, why_no_header(text)),
                 "a trace is what `cudabpf run`, `attach` or `cudabpf` writes"};
  const TraceHeader& header = *line.header;
  const std::string& version = header.format_version;
  if (!version.starts_with("2."))
    return Error{fmt::format("{} is a trace of format {}; this cudabpf reads 2.x", path,
                             version.empty() ? "without a version" : version),
                 "a newer cudabpf reads it"};
  unsigned part = header.part.number;
  if (file_ > 1 && (header.clocks != clocks_ || part <= part_)) {
    std::string before = input_name(files_[file_ - 2]);
    return Error{header.clocks != clocks_
                     ? fmt::format("{} is of another trace than {}", path, before)
                 : part && part_ && part != part_
                     ? fmt::format("{} is part {} of the trace, and {} is part {}", path, part,
                                   before, part_)
                     : fmt::format("{} is the same part of the trace as {}", path, before),
                 "give the files of one trace, in their order", exit_code::USAGE};
  }
  clocks_ = header.clocks;
  since_ = header.part.since;
  if (file_ == 1) {
    facts_.part.recorded_from = since_;
    facts_.header = header;
    facts_.left_out = shortened_list(header.left_out);
    facts_.not_recorded.header(header);
    note_merged(header.merged);
  }
  if (part > 1 && part_ + 1 != part)
    facts_.missing.push_back(part_ + 2 >= part
                                 ? fmt::format("part {}", part - 1)
                                 : fmt::format("parts {} to {}", part_ + 1, part - 1));
  part_ = part;
  return ok();
}

// What a merge says is missing of the traces that it was made of is missing here.
void TraceReader::note_merged(const std::vector<MergedTrace>& merged) {
  for (const MergedTrace& one : merged) {
    for (const std::string& file : one.cut_off) facts_.cut_off.push_back(file);
    for (const std::string& part : one.missing) facts_.missing.push_back(part);
    if (!one.malformed) continue;
    facts_.malformed = saturating_sum(facts_.malformed, one.malformed);
    if (facts_.first_malformed.size() < MAX_MALFORMED_LISTED)
      facts_.first_malformed.push_back(one.file);
  }
}

Result<const Line*> TraceReader::next() {
  for (;;) {
    if (at_ == batch_.count) {
      if (progress_ && !progress_(source_->read(), source_->file_size()))
        return Error{input_name(files_[file_ - 1]) + ": reading it was given up", {}};
      at_ = 0;
      if (ahead_->next(batch_)) continue;
      end_file();
      if (file_ == files_.size()) {
        progress_ = {};
        facts_.ranges = derived_.ranges().wanted();
        return nullptr;
      }
      TRY(open_next());
      continue;
    }
    auto& [line, scanned, whole] = batch_.items[at_++];
    number_ = line.number;
    bool good = scanned || parser_.read_any(line.text, line);
    if (!whole && !good) {  // it was still being written
      half_line_ = true;
      continue;
    }
    facts_.lines++;
    facts_.bytes += line.text.size() + 1;
    if (!good) {
      malformed();
      continue;
    }
    note(line);
    if (derives_) derived_.fill_in(line);
    facts_.put_away = derived_.processes().put_away();
    facts_.calls_in_part += line.kind == LineKind::call && facts_.part.has(line);
    return &line;
  }
}

void TraceReader::malformed() {
  facts_.malformed++;
  if (facts_.first_malformed.size() < MAX_MALFORMED_LISTED)
    facts_.first_malformed.push_back(fmt::format("{}:{}", input_name(files_[file_ - 1]), number_));
}

void TraceReader::note(const Line& line) {
  if (line.kind != LineKind::header && line.kind != LineKind::end)
    facts_.last_ts = std::max(facts_.last_ts, line.end());
  facts_.calls += line.kind == LineKind::call;
  facts_.operations += line.kind == LineKind::driver;
  switch (line.kind) {
    case LineKind::other:
      facts_.unknown++;
      break;
    case LineKind::lost: {
      TraceFacts::Loss* known = loss_of(names().text(line.reason));
      TraceFacts::Loss& loss = known ? *known : losses_here_[OTHER_REASONS];
      loss.degraded = known && names().text(line.severity) == "degraded";
      loss.count += line.count;
      loss.uncounted |= !line.has(Field::count);
      break;
    }
    case LineKind::end: {
      const TraceEnd& end = *line.ending;
      ended_ = true;
      note_losses(end.totals);
      if (!end.last) break;
      facts_.end = end;
      facts_.recorded_duration = end.whole
                                     ? end.whole->duration_ns.value_or(0)
                                     : saturating_sum(since_, end.totals.duration_ns.value_or(0));
      break;
    }
    case LineKind::library:
      facts_.not_recorded.library(line);
      for (std::string_view kind : facts_.not_recorded.kinds())
        if (!facts_.leaves_out(kind)) facts_.left_out.emplace_back(kind);
      break;
    case LineKind::process:
      note_attached(line);
      break;
    case LineKind::gpu_times:
      facts_.not_recorded.gpu_times(line);
      break;
    case LineKind::python:
      facts_.not_recorded.python(line);
      break;
    case LineKind::gpu_window:
      facts_.not_recorded.gpu_window(line);
      break;
    default:
      break;
  }
}

void TraceReader::note_attached(const Line& line) {
  constexpr std::size_t MAX_ATTACHED = 4, MAX_COMMAND = 200;
  if (facts_.header.mode != "attach") return;
  std::span pids = facts_.header.pids;
  pids = pids.first(std::min(pids.size(), MAX_ATTACHED));
  if (facts_.attached.contains(line.pid) ||
      std::find(pids.begin(), pids.end(), line.pid) == pids.end())
    return;
  std::string command = text_in(parsed(line.text), "cmdline").substr(0, MAX_COMMAND);
  facts_.attached.try_emplace(line.pid, fmt::format("{}{}{}", names().text(line.comm),
                                                    command.empty() ? "" : ": ", command));
}

TraceFacts::Loss* TraceReader::loss_of(std::string_view reason) {
  auto known = losses_here_.find(std::string(reason));
  if (known != losses_here_.end()) return &known->second;
  if (losses_here_.size() >= MAX_REASONS || reason.size() > LineParser::MAX_NAME) return nullptr;
  auto& loss = losses_here_[std::string(reason)];
  loss.degraded = is_degraded(reason);
  return &loss;
}

// A file's lines report losses, and its end sums them up: the sum is larger if one of the lines is
// missing.
void TraceReader::note_losses(const TraceTotals& totals) {
  std::uint64_t others = 0;
  for (const auto& [reason, count] : totals.losses) {
    if (TraceFacts::Loss* loss = loss_of(reason))
      loss->count = std::max(loss->count, count);
    else
      others += count;
  }
  if (!others) return;
  TraceFacts::Loss& loss = losses_here_[OTHER_REASONS];
  loss.count = std::max(loss.count, others);
}

void TraceReader::end_file() {
  std::string path = input_name(files_[file_ - 1]);
  for (const auto& [reason, here] : losses_here_) {
    auto& loss = facts_.losses[reason];
    loss.degraded = here.degraded;
    loss.count += here.count;
    loss.uncounted |= here.uncounted;
  }
  bool may_go_on = expects_more_ && !ended_ && file_ == files_.size() &&
                   (source_->broken().empty() || source_->ends_in_frame()) && expects_more_(facts_);
  if (may_go_on) return;
  if (!source_->broken().empty())
    facts_.cut_off.push_back(fmt::format("{}: {}", path, source_->broken()));
  else if (half_line_)
    facts_.cut_off.push_back(fmt::format("{}: it ends within line {}", path, number_));
  else if (!ended_)
    facts_.cut_off.push_back(path + ": it has no end");
  if (part_ && file_ == files_.size() && ended_ && !facts_.end)
    facts_.missing.push_back(fmt::format("what comes after part {}", part_));
}

}  // namespace cudabpf::analyze
