// The timeline on a terminal, in lanes: a column for each span of time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "analyze/timeline/timeline_page.hpp"
#include "util/console/terminal.hpp"
#include "util/page/chart.hpp"
#include "util/page/table.hpp"

namespace cudabpf::analyze {

namespace {

constexpr std::size_t LABEL_WIDTH = 25;
constexpr std::size_t THREADS_SHOWN = 32, STREAMS_SHOWN = 16, QUEUES_SHOWN = 16, GAPS_SHOWN = 5;

using BusyColumns = std::vector<Timeline::Busy>;

class Lanes {
 public:
  Lanes(Page& page, const Timeline& timeline, const std::vector<TimeSpan>& spans)
      : page_(page),
        timeline_(timeline),
        scale_(spans, page.width() - LABEL_WIDTH, FOLD_WIDTH),
        painter_(page.color()) {}

  // Lines added from now on are of this process, which is named above the first of them.
  void begin(const Timeline::Process& process) { process_ = &process; }
  // … are of no process.
  void begin_gpus() { process_ = nullptr; }

  // The phases of the thread that launches most, if it is this process's.
  void add_phases(const Timeline::Process& process) {
    const Execution& execution = timeline_.execution();
    if (!execution.thread() || execution.thread()->process != process.number) return;
    std::vector<std::string> cells(scale_.width(), " ");
    bool any = false;
    for (const Phase* phase : windows(execution.phases())) {
      if (phase->end <= scale_.begin() || phase->begin >= scale_.end()) continue;
      any = true;
      write_span(cells, phase->begin, phase->end, phase->name);
    }
    if (any) add_row("  phases", cells);
  }

  // A mark where each iteration begins, with its number where there is room.
  void add_iterations(const Timeline::Process& process) {
    const Execution& execution = timeline_.execution();
    const auto& each = execution.iterations().each;
    if (!execution.thread() || execution.thread()->process != process.number || each.empty())
      return;
    std::vector<std::string> cells(scale_.width(), " ");
    std::size_t shown = 0;
    for (std::size_t i = 0; i < each.size(); i++) {
      if (each[i].end <= scale_.begin() || each[i].begin >= scale_.end()) continue;
      shown++;
      write_span(cells, each[i].begin, each[i].end, fmt::format("{}", i + 1));
    }
    if (shown) add_row(fmt::format("  iterations, {}", human_count(shown)), cells);
  }

  // What the thread was doing by the program's own account, the outermost ranges first.
  void add_ranges(const Timeline::Thread& thread) {
    for (std::size_t depth = 0; depth < thread.ranges.size(); depth++) {
      std::vector<std::string> cells(scale_.width(), " ");
      std::uint64_t shown = 0;
      for (const Bar& bar : thread.ranges[depth]) {
        if (bar.end <= scale_.begin() || bar.begin >= scale_.end()) continue;
        Alike all = bar.total();
        shown += all.count;
        std::string_view name = bar.is_one() ? timeline_.names().text(bar.parts()[0].name) : "";
        write_span(cells, bar.begin, bar.end, printable(name), "─");
      }
      if (shown)
        add_row(fmt::format("  {}ranges, {}", depth ? "  " : "", human_count(shown)), cells);
    }
  }

  // False: the thread has nothing to show here.
  bool add_thread(const Timeline::Thread& thread, bool with_counts) {
    BusyColumns columns = busy_columns(thread, scale_);
    std::uint64_t busy = 0, calls = 0, ioctls = 0;
    for (const auto& column : columns) {
      busy += column.total();
      calls += column.calls;
      ioctls += column.ioctls;
    }
    if (!busy && !calls && !ioctls) return false;
    note_seen(columns);
    std::string part =
        busy ? fmt::format("{:>3.0f} %", share(busy, scale_.time())) : std::string("no calls");
    std::string label = fmt::format("  thread {} {}", thread.tid, part);
    name_process();
    page_.painted(fmt::format("{:<{}}{}", label, LABEL_WIDTH, lane_of(columns)));
    if (!with_counts) return true;
    add_density(columns, "launches", [](const auto& column) { return column.launches; });
    add_density(columns, "ioctls", [](const auto& column) { return column.ioctls; });
    return true;
  }

  bool add_stream(const Timeline::Stream& stream) {
    auto counts = count_columns(stream.bars, scale_);
    std::uint64_t most = *std::max_element(counts.begin(), counts.end());
    if (most) add_sparks("  " + name_of(stream), counts, most);
    return most;
  }

  // When the process's GPU times were recorded, if they were not always.
  void add_windows(const Timeline::Process& process) {
    recorded_ = process.windows.empty() ? scale_.time() : 0;
    std::vector<std::string> cells(scale_.width(), " ");
    for (const TimeSpan& window : process.windows) {
      if (window.end <= scale_.begin() || window.begin >= scale_.end()) continue;
      write_span(cells, window.begin, window.end, "", "─", "─");
      for (const TimeScale::Piece& piece : scale_.pieces()) {
        std::uint64_t from = std::max(window.begin, piece.begin);
        recorded_ += std::max(std::min(window.end, piece.end), from) - from;
      }
    }
    if (process.windows.empty()) return;
    has_windows_ = true;
    add_row("  GPU times recorded", cells);
  }

  // False: the queue has nothing to show here.
  bool add_queue(const Timeline::Queue& queue) {
    constexpr std::uint64_t PERCENT = 100;
    BusyColumns columns = busy_columns(queue, scale_);
    std::uint64_t busy = 0;
    for (const auto& column : columns) busy += column.total();
    if (!busy) return false;
    note_seen(columns);
    std::string label = "  " + short_name(queue);
    if (recorded_) label += fmt::format(" {:>3.0f} %", share(std::min(busy, recorded_), recorded_));
    name_process();
    page_.painted(fmt::format("{:<{}}{}", label, LABEL_WIDTH, lane_of(columns)));
    std::vector<std::uint64_t> shares(columns.size());
    for (const TimeScale::Piece& piece : scale_.pieces())
      for (std::size_t at = piece.at; at < piece.at + piece.width; at++)
        shares[at] = std::min(PERCENT, static_cast<std::uint64_t>(std::ceil(
                                           share(columns[at].total(), piece.time_of_column()))));
    add_sparks("    " + queue.handle, shares, PERCENT);
    return true;
  }

  // False: it has no sample here.
  bool add_gpu(std::uint32_t device, const GpuActivity& activity) {
    constexpr std::uint64_t PERCENT = 100;
    auto means = activity.columns(scale_);
    if (std::all_of(means.begin(), means.end(), [](std::uint64_t mean) { return !mean; }))
      return false;
    add_sparks(fmt::format("  GPU {}, SM activity", device), means, PERCENT);
    return true;
  }

  void add_axis() {
    TextAxis axis = time_axis(scale_, page_.moments());
    page_.line(std::string(LABEL_WIDTH, ' ') + axis.line);
    page_.line(std::string(LABEL_WIDTH, ' ') + axis.labels);
  }

  const TimeScale& scale() const { return scale_; }
  const std::set<Category>& seen() const { return seen_; }
  bool has_windows() const { return has_windows_; }

 private:
  void name_process() {
    if (!process_) return;
    if (!page_.empty()) page_.blank();
    page_.heading(name_of(timeline_, *process_));
    process_ = nullptr;
  }

  void note_seen(const BusyColumns& columns) {
    for (const auto& column : columns)
      for (std::size_t i = 0; i < CATEGORIES; i++)
        if (column.time[i]) seen_.insert(static_cast<Category>(i));
  }

  void add_row(const std::string& label, std::vector<std::string>& cells) {
    std::string row;
    break_at_folds(cells);
    for (const std::string& cell : cells) row += cell;
    name_process();
    page_.painted(fmt::format("{:<{}}{}", label, LABEL_WIDTH, row));
  }

  void break_at_folds(std::vector<std::string>& cells) const {
    const auto& pieces = scale_.pieces();
    for (std::size_t i = 0; i + 1 < pieces.size(); i++) {
      std::size_t at = pieces[i].at + pieces[i].width;
      cells[at] = FOLD;
      for (std::size_t more = 1; more < FOLD_WIDTH; more++) cells[at + more].clear();
    }
  }

  // "│name" from where a span of time begins, as much of it as fits, and what fills the rest.
  void write_span(std::vector<std::string>& cells, std::uint64_t begin, std::uint64_t end,
                  const std::string& name, const std::string& fill = " ",
                  const std::string& first = "│") const {
    const auto& pieces = scale_.pieces();
    const auto* piece = &pieces.back();  // the first that it reaches into
    for (std::size_t i = pieces.size(); i--;)
      if (pieces[i].end > begin) piece = &pieces[i];
    auto column = [&](std::uint64_t ns) {
      double at = piece->position(std::clamp(ns, piece->begin, piece->end));
      return static_cast<std::size_t>(at);
    };
    std::size_t last = piece->at + piece->width - 1, at = std::min(column(begin), last);
    // The name stands before the first fold.
    std::size_t until = end >= piece->end ? last + 1 : std::max(column(end), at + 1);
    if (begin >= scale_.begin()) cells[at++] = first;
    if (at >= until) return;
    std::fill(cells.begin() + static_cast<std::ptrdiff_t>(at),
              cells.begin() + static_cast<std::ptrdiff_t>(until), fill);
    std::string text = shortened(name, until - at);
    if (text == "…" || (text != name && is_number(name))) return;
    for (std::size_t i = 0; i < text.size() && at < until; at++) {
      std::size_t size = first_character(std::string_view(text).substr(i)).size;
      cells[at] = text.substr(i, size);
      i += size;
    }
  }
  static bool is_number(const std::string& text) {
    return text.find_first_not_of("0123456789") == std::string::npos;
  }

  // What took most of each column, lighter if calls took less than half of it.
  std::string lane_of(const BusyColumns& columns) {
    const auto& pieces = scale_.pieces();
    for (std::size_t i = 0; i < pieces.size(); i++) {
      if (i) painter_.put(FOLD, "90");
      std::uint64_t time = pieces[i].time() / pieces[i].width;
      for (std::size_t at = pieces[i].at; at < pieces[i].at + pieces[i].width; at++)
        put_column(columns[at], time);
    }
    return painter_.take();
  }

  void put_column(const Timeline::Busy& busy, std::uint64_t time) {
    if (!busy.total()) return painter_.put(" ", "");
    const CategoryLook& look = look_of(busy.most());
    bool full = busy.total() * 2 >= time;
    // Work is a block of its colour, waiting only coloured.
    painter_.put(full ? look.full : look.part,
                 full && !look.waits ? fmt::format("7;{}", look.escape) : std::string(look.escape));
  }

  template <typename Count>
  void add_density(const BusyColumns& columns, std::string_view name, Count&& count) {
    std::vector<std::uint64_t> counts;
    counts.reserve(columns.size());
    for (const auto& busy : columns) counts.push_back(count(busy));
    std::uint64_t most = *std::max_element(counts.begin(), counts.end());
    if (most) add_sparks(fmt::format("    {}, ≤{}", name, human_count(most)), counts, most);
  }

  void add_sparks(const std::string& label, const std::vector<std::uint64_t>& counts,
                  std::uint64_t most) {
    std::vector<std::string> cells;
    cells.reserve(counts.size());
    for (std::uint64_t count : counts) cells.push_back(spark({&count, 1}, most));
    add_row(label, cells);
  }

  Page& page_;
  const Timeline& timeline_;
  TimeScale scale_;
  Painter painter_;
  const Timeline::Process* process_ = nullptr;  // that is not named yet
  std::set<Category> seen_;
  // For how long GPU times of the process were recorded in what is shown, and whether those of any
  // were not always.
  std::uint64_t recorded_ = 0;
  bool has_windows_ = false;
};

void add_legend(Page& page, const std::set<Category>& seen, bool streams, bool queues) {
  Painter painter(page.color());
  std::size_t used = 0;
  for (Category category : seen) {
    const CategoryLook& look = look_of(category);
    std::size_t size = 4 + look.name.size();
    if (used + size > page.width()) {
      painter.put("\n", "");
      used = 0;
    }
    used += size;
    painter.put("  ", "");
    painter.put(look.full,
                look.waits ? std::string(look.escape) : fmt::format("7;{}", look.escape));
    painter.put(fmt::format(" {}", look.name), "");
  }
  page.painted(painter.take());
  std::string note =
      "Each letter is the kind of call that took most of its column (small, · or -: less than half "
      "of it; blank: no call). %: share of the time spent in calls. ≤: how many the tallest column "
      "stands for.";
  if (streams) note += " Stream rows show when work was submitted, not when it ran.";
  if (queues)
    note +=
        " GPU rows show what ran when, as measured; below each the stream's handle, and how busy "
        "it "
        "was, up to 100 %.";
  page.paragraph(note, 2);
}

// Each thread's longest time without a call, if it has one.
void add_gaps(Page& page, const Timeline& timeline) {
  std::vector<const Timeline::Thread*> threads;
  for (std::size_t i = 0; i < timeline.threads(); i++)
    if (timeline.thread(i).gap.time) threads.push_back(&timeline.thread(i));
  if (threads.empty()) return;
  std::stable_sort(threads.begin(), threads.end(),
                   [](const auto* a, const auto* b) { return a->gap.time > b->gap.time; });
  Table table("longest gap between calls", {{"at"}, {"time"}});
  for (std::size_t i = 0; i < std::min(threads.size(), GAPS_SHOWN); i++) {
    const Timeline::Gap& gap = threads[i]->gap;
    table.row(fmt::format("thread {}: {} to {}", threads[i]->tid, timeline.names().text(gap.after),
                          timeline.names().text(gap.before)),
              {page.at(gap.begin), human_time(gap.time)});
  }
  table.add_to(page);
}

// The whole run: its phases, and what their thread did. Returns which colours it has.
std::set<Category> add_overview(Page& page, const Timeline& timeline, const TimelineView& view) {
  Lanes lanes(page, timeline, view.whole);
  const ThreadWork& busiest = *timeline.execution().thread();
  for (const auto& process : timeline.processes()) {
    if (process.number != busiest.process) continue;
    lanes.begin(process);
    lanes.add_phases(process);
    for (std::size_t index : process.threads)
      if (timeline.thread(index).tid == busiest.tid)
        lanes.add_thread(timeline.thread(index), false);
  }
  lanes.add_axis();
  page.blank();
  page.heading(fmt::format("inference, from {} to {}", page.at(view.shown.front().begin),
                           page.at(view.shown.back().end)));
  return lanes.seen();
}

void add_gpu_lanes(Page& page, const Timeline& timeline, Lanes& lanes) {
  std::size_t before = page.size();
  if (!timeline.gpus().empty()) {
    page.blank();
    page.heading("GPUs, from NVML (all processes)");
  }
  lanes.begin_gpus();
  bool any = false;
  for (const auto& [device, activity] : timeline.gpus()) any |= lanes.add_gpu(device, activity);
  if (!any) page.cut(before);
}

void add_lanes(Page& page, const Timeline& timeline, const TimelineView& view) {
  std::set<Category> seen;
  if (!view.whole.empty()) seen = add_overview(page, timeline, view);
  Lanes lanes(page, timeline, view.shown);
  std::size_t threads = 0, streams = 0, queues = 0, replaced = 0;
  for (const auto* of : timeline.by_host()) {
    const Timeline::Process& process = *of;
    if (process.empty() || threads == THREADS_SHOWN) continue;
    lanes.begin(process);
    if (view.whole.empty()) lanes.add_phases(process);
    lanes.add_iterations(process);
    for (std::size_t index : process.threads) {
      if (threads == THREADS_SHOWN) break;
      lanes.add_ranges(timeline.thread(index));
      threads += lanes.add_thread(timeline.thread(index), true);
    }
    lanes.add_windows(process);
    for (std::size_t index : process.queues)
      if (queues < QUEUES_SHOWN) queues += lanes.add_queue(timeline.gpu_queue(index));
    if (!process.queues.empty()) {
      replaced += process.streams.size();
      continue;
    }
    for (std::size_t index : process.streams)
      if (streams < STREAMS_SHOWN) streams += lanes.add_stream(timeline.stream(index));
  }
  add_gpu_lanes(page, timeline, lanes);
  lanes.add_axis();
  std::string note = note_of_view(timeline, view, page.moments());
  if (!note.empty()) page.paragraph(note, 2);
  std::vector<std::string> hidden;
  if (std::size_t more = timeline.threads() - threads)
    hidden.push_back(count_of(more, "thread", "threads"));
  if (std::size_t more = timeline.streams() - streams - replaced)
    hidden.push_back(count_of(more, "stream", "streams"));
  if (std::size_t more = timeline.gpu_queues() - queues)
    hidden.push_back(count_of(more, "stream of a GPU", "streams of GPUs"));
  if (!hidden.empty())
    page.paragraph(fmt::format("{} not shown (empty, or no space)", fmt::join(hidden, ", ")), 2);
  seen.insert(lanes.seen().begin(), lanes.seen().end());
  // Where nothing is measured, the legend is always the same.
  add_legend(page, seen, streams || !timeline.gpu_queues(), queues);
  if (lanes.has_windows())
    page.paragraph(
        "GPU times were recorded in windows, the lines above GPU rows. Nothing is known of the "
        "time "
        "between them: it is no idle time, and % is of the windows.",
        2);
  add_gaps(page, timeline);
}

}  // namespace

std::string name_of(const Timeline& timeline, const Timeline::Process& process) {
  std::string name = fmt::format("process {}", process.pid);
  if (process.comm) name += " " + printable(std::string(timeline.names().text(process.comm)));
  if (process.host) name += " on " + printable(std::string(timeline.names().text(process.host)));
  return name;
}

void add_timeline(Page& page, const Timeline& timeline) {
  if (timeline.from() >= timeline.trace_duration() && timeline.from())
    page.line(fmt::format("The trace ends at {}.", page.at(timeline.trace_duration())));
  else if (!timeline.threads() && !timeline.gpu_queues())
    page.line(fmt::format("No calls between {} and {}.", page.at(timeline.from()),
                          page.at(timeline.to())));
  else if ((timeline.threads() && timeline.pieces().empty()) || !timeline.has_few_operations())
    add_lanes(page, timeline, view_of(timeline, page.width() - LABEL_WIDTH));
  else
    add_pieces(page, timeline);
  if (timeline.left_out_of_threads())
    page.paragraph(fmt::format("{} of more threads than can be kept apart are left out",
                               count_of(timeline.left_out_of_threads(), "call", "calls")),
                   2);
  if (timeline.left_out_of_streams())
    page.paragraph(
        fmt::format("{} on more streams than can be kept apart are left out of their rows",
                    count_of(timeline.left_out_of_streams(), "call", "calls")),
        2);
  if (timeline.left_out_of_queues())
    page.paragraph(fmt::format("{} in more streams than can be kept apart are left out",
                               count_of(timeline.left_out_of_queues(), "piece of a GPU's work",
                                        "pieces of GPUs' work")),
                   2);
}

}  // namespace cudabpf::analyze
