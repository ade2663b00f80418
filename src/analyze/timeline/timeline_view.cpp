#include "analyze/timeline/timeline_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "util/console/terminal.hpp"

namespace cudabpf::analyze {

namespace {

constexpr std::uint64_t FOLDED_PART = 20;  // a fold is longer than this part of what is shown
constexpr std::size_t ROOM_OF_FOLD = 8;    // characters

// The bars of all calls or, if there are none, of requests to the driver; and those of GPUs.
std::vector<TimeSpan> all_spans(const Timeline& timeline) {
  std::vector<TimeSpan> spans;
  auto add = [&](const BarRow& row) {
    // A call without a duration is more than nothing, or there would be spans without time.
    for (const Bar& bar : row) spans.push_back({bar.begin, std::max(bar.end, bar.begin + 1)});
  };
  for (LaneRow row : {CALLS, NESTED, DRIVER}) {
    for (std::size_t i = 0; i < timeline.threads(); i++) add(timeline.thread(i).bars[row]);
    if (row == CALLS) add(timeline.more_calls());
    if (!spans.empty()) break;
  }
  for (std::size_t i = 0; i < timeline.gpu_queues(); i++) add(timeline.gpu_queue(i).bars);
  std::sort(spans.begin(), spans.end(),
            [](const TimeSpan& a, const TimeSpan& b) { return a.begin < b.begin; });
  return spans;
}

// Between these spans, which are in the order in which they began.
std::vector<TimeSpan> blanks_between(const std::vector<TimeSpan>& spans) {
  std::vector<TimeSpan> blanks;
  std::uint64_t end = spans.front().end;
  for (const TimeSpan& span : spans) {
    if (span.begin > end) blanks.push_back({end, span.begin});
    end = std::max(end, span.end);
  }
  return blanks;
}

}  // namespace

std::vector<TimeSpan> folded(TimeSpan all, std::vector<TimeSpan> blanks, std::size_t most) {
  std::erase_if(blanks, [&](const TimeSpan& blank) {
    return blank.begin <= all.begin || blank.end >= all.end;
  });
  std::size_t longest = std::min(blanks.size(), most);
  std::partial_sort(blanks.begin(), blanks.begin() + static_cast<std::ptrdiff_t>(longest),
                    blanks.end(),
                    [](const TimeSpan& a, const TimeSpan& b) { return a.time() > b.time(); });
  std::uint64_t shown = all.time();
  std::size_t folds = 0;
  while (folds < longest && blanks[folds].time() > shown / FOLDED_PART)
    shown -= blanks[folds++].time();
  blanks.resize(folds);
  std::sort(blanks.begin(), blanks.end(),
            [](const TimeSpan& a, const TimeSpan& b) { return a.begin < b.begin; });
  std::vector<TimeSpan> spans;
  std::uint64_t begin = all.begin;
  for (const TimeSpan& blank : blanks) {
    spans.push_back({begin, blank.begin});
    begin = blank.end;
  }
  spans.push_back({begin, all.end});
  return spans;
}

TimelineView view_of(const Timeline& timeline, std::size_t width) {
  std::size_t most = std::min(MAX_FOLDS, width / ROOM_OF_FOLD);
  TimelineView view{{{timeline.from(), timeline.to()}}, {}};
  std::vector<TimeSpan> spans = all_spans(timeline);
  if (timeline.is_exact() || spans.empty()) return view;
  std::vector<TimeSpan> blanks = blanks_between(spans);
  TimeSpan all{spans.front().begin, 0};
  for (const TimeSpan& span : spans) all.end = std::max(all.end, span.end);
  all.end = std::max(all.end, all.begin + 1);
  view.shown = folded(all, blanks, most);
  const Iterations& iterations = timeline.execution().iterations();
  TimeSpan inference{std::max(iterations.warm, all.begin), std::min(iterations.end, all.end)};
  if (iterations.found == Iterations::Found::none || inference.begin >= inference.end ||
      !timeline.pieces().empty())
    return view;
  std::vector<TimeSpan> part = folded(inference, std::move(blanks), most);
  if (time_of(part) >= time_of(view.shown) / 2) return view;
  view.whole = std::move(view.shown);
  view.shown = std::move(part);
  return view;
}

std::string note_of_view(const Timeline& timeline, const TimelineView& view,
                         const Moments& moments) {
  if (timeline.is_exact()) return {};
  const auto& spans = view.whole.empty() ? view.shown : view.whole;
  std::string folds;
  auto fold = [&](const std::string& what) { folds += (folds.empty() ? "" : ", ") + what; };
  std::uint64_t before = spans.front().begin, end = spans.back().end;
  std::uint64_t after = timeline.to() > end ? timeline.to() - end : 0;
  std::uint64_t least = time_of(spans) / FOLDED_PART;
  if (before > least) fold(human_time(before) + " before the first call");
  for (std::size_t i = 0; i + 1 < spans.size(); i++)
    fold(fmt::format("{} at {}", human_time(spans[i + 1].begin - spans[i].end),
                     moments.at(spans[i].end)));
  if (after > least) fold(human_time(after) + " after the last call");
  if (folds.empty() && view.whole.empty()) return {};
  std::string_view why =
      timeline.gpu_queues() ? "Skipped (no CUDA calls, no GPU work)" : "Skipped (no CUDA calls)";
  std::string note = folds.empty() ? "" : fmt::format("{}: {}. ", why, folds);
  return note + "--from 0 shows all, to scale.";
}

std::vector<const Phase*> windows(const Phases& phases) {
  std::vector<const Phase*> windows;
  for (const Phase& phase : phases.phases)
    if (phase.seen && phase.end > phase.begin) windows.push_back(&phase);
  return windows;
}

namespace {

std::size_t column_of(const TimeScale::Piece& piece, std::uint64_t ns) {
  return std::min(static_cast<std::size_t>(piece.position(ns)), piece.at + piece.width - 1);
}

// Calls add(column, part) with the columns that the span reaches into, and how much of it is there.
template <typename Add>
void spread(const TimeSpan& span, const TimeScale& scale, Add&& add) {
  for (const TimeScale::Piece& piece : scale.pieces()) {
    std::uint64_t begin = std::max(span.begin, piece.begin), end = std::min(span.end, piece.end);
    if (begin > end || (begin == end && span.begin < span.end)) continue;
    if (begin == end) return add(column_of(piece, begin), 1.0);
    double from = piece.position(begin), to = piece.position(end);
    if (from == to) return add(column_of(piece, begin), 1.0);  // too short to be more than a moment
    double part = static_cast<double>(end - begin) / static_cast<double>(span.time());
    for (std::size_t column = column_of(piece, begin);
         static_cast<double>(column) < to && column < piece.at + piece.width; column++) {
      auto left = std::max(static_cast<double>(column), from);
      auto right = std::min(static_cast<double>(column + 1), to);
      add(column, part * (right - left) / (to - from));
    }
  }
}

// Calls add(column) with the column in which the bar is counted, if it is one of these. That is
// where its call began; several are counted in their middle, as columns are wider.
template <typename Add>
void count_in(const Bar& bar, const TimeScale& scale, Add&& add) {
  std::uint64_t at = bar.is_one() ? bar.begin : bar.begin + (bar.end - bar.begin) / 2;
  for (const TimeScale::Piece& piece : scale.pieces())
    if (at >= piece.begin && at <= piece.end) return add(column_of(piece, at));
}

}  // namespace

namespace {

using BusyColumns = std::vector<Timeline::Busy>;

// Adds a bar that was busy for `time` of `where`.
void add_bar(BusyColumns& columns, const Bar& bar, const TimeSpan& where, std::uint64_t time,
             const TimeScale& scale) {
  Alike total = bar.total();
  double each = total.time ? static_cast<double>(time) / static_cast<double>(total.time) : 0;
  spread(where, scale, [&](std::size_t column, double part) {
    auto& times = columns[column].time;
    auto add = [&](Category category, const Alike& one) {
      times[static_cast<std::size_t>(category)] +=
          static_cast<std::uint64_t>(std::llround(part * each * static_cast<double>(one.time)));
    };
    for (const Alike& one : bar.parts()) add(one.category, one);
    if (const Alike* others = bar.others()) add(Category::other, *others);
    // A call without a duration is shown, but takes no known time.
    if (!total.time) times[static_cast<std::size_t>(total.category)]++;
  });
  count_in(bar, scale, [&](std::size_t column) {
    columns[column].calls += total.count;
    columns[column].launches += total.launches;
  });
}

}  // namespace

std::vector<Timeline::Busy> busy_columns(const QueueBars& queue, const TimeScale& scale) {
  BusyColumns columns(scale.width());
  queue.each_time([&](const Bar& bar, const TimeSpan& where, std::uint64_t time) {
    add_bar(columns, bar, where, time, scale);
  });
  return columns;
}

std::vector<Timeline::Busy> busy_columns(const Timeline::OfThread& thread, const TimeScale& scale) {
  BusyColumns columns(scale.width());
  for (const Bar& bar : thread.bars[CALLS]) add_bar(columns, bar, bar, bar.total().time, scale);
  for (const Bar& bar : thread.bars[DRIVER])
    count_in(bar, scale,
             [&](std::size_t column) { columns[column].ioctls += bar.total().launches; });
  return columns;
}

std::vector<std::uint64_t> count_columns(const BarRow& row, const TimeScale& scale) {
  std::vector<std::uint64_t> counts(scale.width());
  for (const Bar& bar : row)
    count_in(bar, scale, [&](std::size_t column) { counts[column] += bar.total().count; });
  return counts;
}

}  // namespace cudabpf::analyze
