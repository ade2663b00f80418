#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analyze/timeline/timeline.hpp"
#include "util/console/terminal.hpp"
#include "util/page/chart.hpp"
#include "util/page/table.hpp"

namespace cudabpf::analyze {

namespace {

constexpr std::size_t LABEL_WIDTH = 25;
constexpr std::size_t THREADS_SHOWN = 32, STREAMS_SHOWN = 16, GAPS_SHOWN = 5;

// Characters with their colours; a colour is switched on once for a run of characters.
class Painter {
 public:
  explicit Painter(bool color) : color_(color) {}
  void put(std::string_view text, std::string_view escape) {
    if (color_ && escape != last_) {
      text_ += escape.empty() ? "\033[0m" : fmt::format("\033[0;{}m", escape);
      last_ = escape;
    }
    text_ += text;
  }
  std::string take() {
    put("", "");
    return std::move(text_);
  }

 private:
  bool color_;
  std::string text_, last_;
};

// --- one column per span of time

// The letter of the type that took most of each column, in lower case if calls took less than half
// of it.
std::string lane_of(const std::vector<Timeline::Busy>& columns, std::uint64_t column, bool color) {
  Painter painter(color);
  for (const auto& busy : columns) {
    if (!busy.total()) {
      painter.put(" ", "");
      continue;
    }
    const CategoryLook& look = look_of(busy.most());
    bool full = busy.total() * 2 >= column;
    char letter = full ? look.letter : static_cast<char>(look.letter | 0x20);
    painter.put({&letter, 1}, full ? fmt::format("7;{}", look.escape) : std::string(look.escape));
  }
  return painter.take();
}

void add_row(Page& page, const std::string& label, const std::string& cells) {
  page.painted(fmt::format("{:<{}}{}", printable(label), LABEL_WIDTH, cells));
}

template <typename Count>
void add_density(Page& page, const std::vector<Timeline::Busy>& columns, std::string_view name,
                 Count&& count) {
  std::vector<std::uint64_t> counts;
  counts.reserve(columns.size());
  for (const auto& busy : columns) counts.push_back(count(busy));
  std::uint64_t most = *std::max_element(counts.begin(), counts.end());
  if (!most) return;
  add_row(page, fmt::format("    {}, ≤{}", name, human_count(most)), spark(counts, most));
}

void add_thread(Page& page, const Timeline& timeline, const Timeline::Thread& thread) {
  std::uint64_t span = timeline.to() - timeline.from();
  auto columns = timeline.columns(thread, page.width() - LABEL_WIDTH);
  std::uint64_t busy = thread.all.total();
  std::string part = thread.all.calls ? fmt::format("{:>3.0f} %", share(busy, span)) : "no calls";
  add_row(page, fmt::format("  thread {} {}", thread.tid, part),
          lane_of(columns, span / columns.size(), page.color()));
  add_density(page, columns, "launches", [](const auto& column) { return column.launches; });
  add_density(page, columns, "ioctls", [](const auto& column) { return column.ioctls; });
}

void add_stream(Page& page, const Timeline& timeline, const Timeline::Stream& stream) {
  auto counts = timeline.columns(stream, page.width() - LABEL_WIDTH);
  add_row(page, "  " + name_of(stream),
          spark(counts, *std::max_element(counts.begin(), counts.end())));
}

void add_legend(Page& page) {
  Painter painter(page.color());
  std::size_t used = 0;
  for (std::size_t i = 0; i < CATEGORIES; i++) {
    const CategoryLook& look = look_of(static_cast<Category>(i));
    std::size_t size = 4 + look.name.size();
    if (used + size > page.width()) {
      painter.put("\n", "");
      used = 0;
    }
    used += size;
    painter.put("  ", "");
    painter.put({&look.letter, 1}, fmt::format("7;{}", look.escape));
    painter.put(fmt::format(" {}", look.name), "");
  }
  page.painted(painter.take());
  page.paragraph(
      "The type of call that took most of a column; small letters: calls took less than half of "
      "it. Blank: no call. %: of the time in calls. ≤: how many the tallest column stands for. A "
      "stream's row: the calls that put something on it.",
      2);
}

void add_time_axis(Page& page, const Timeline& timeline, std::size_t label) {
  TextAxis axis = time_axis(timeline.from(), timeline.to(), page.width() - label, page.moments());
  page.line(std::string(label, ' ') + axis.line);
  page.line(std::string(label, ' ') + axis.labels);
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
              {page.at(timeline.from() + gap.begin), human_time(gap.time)});
  }
  table.add_to(page);
}

void add_lanes(Page& page, const Timeline& timeline) {
  std::size_t threads = 0, streams = 0, of_streams = 0;
  for (const auto& process : timeline.processes()) {
    of_streams += process.streams.size();
    if (process.threads.empty() || threads == THREADS_SHOWN) continue;
    if (!page.empty()) page.blank();
    page.heading(name_of(timeline, process));
    for (std::size_t index : process.threads)
      if (threads < THREADS_SHOWN) {
        add_thread(page, timeline, timeline.thread(index));
        threads++;
      }
    for (std::size_t index : process.streams)
      if (streams < STREAMS_SHOWN) {
        add_stream(page, timeline, timeline.stream(index));
        streams++;
      }
  }
  add_time_axis(page, timeline, LABEL_WIDTH);
  if (threads < timeline.threads() || streams < of_streams)
    page.line(fmt::format("  not shown: {}, {}",
                          count_of(timeline.threads() - threads, "more thread", "more threads"),
                          count_of(of_streams - streams, "more stream", "more streams")));
  add_legend(page);
  add_gaps(page, timeline);
}

// --- one line per call

struct Placed {
  const Timeline::Piece* piece;
  std::size_t depth;
};

// Each call, and below it what happened inside it, in the order in which they began.
std::vector<Placed> placed(const std::vector<Timeline::Piece>& pieces) {
  using Piece = const Timeline::Piece*;
  std::vector<Piece> order;
  std::set<std::uint64_t> calls;
  std::map<std::uint64_t, std::vector<Piece>> inside;  // by the call that they are in
  for (const auto& piece : pieces) {
    order.push_back(&piece);
    if (piece.id) calls.insert(piece.id);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](Piece a, Piece b) { return a->begin < b->begin; });
  for (Piece piece : order)
    if (calls.contains(piece->inside)) inside[piece->inside].push_back(piece);
  std::vector<Placed> placed;
  std::set<Piece> done;
  auto place = [&](auto& self, Piece piece, std::size_t depth) -> void {
    if (!done.insert(piece).second) return;
    placed.push_back({piece, depth});
    if (!piece->id) return;
    for (Piece within : inside[piece->id]) self(self, within, depth + 1);
  };
  for (Piece piece : order)
    if (!calls.contains(piece->inside)) place(place, piece, 0);
  for (Piece piece : order) place(place, piece, 0);  // calls that claim to be inside each other
  return placed;
}

void add_piece(Page& page, const Timeline& timeline, const Placed& placed, std::size_t label) {
  constexpr std::size_t TIME_WIDTH = 10;
  const Timeline::Piece& piece = *placed.piece;
  std::string name = std::string(2 + 2 * placed.depth, ' ') +
                     printable(std::string(timeline.names().text(piece.name)));
  std::size_t used = width_of(name) + 1;
  if (piece.what && used + 8 < label)  // what it was about often differs at its end alone
    name += " " + cut_in_the_middle(printable(timeline.what_of(piece)), label - 2 - used);
  name = shortened(name, label - 2);
  std::size_t width = page.width() - label - TIME_WIDTH;
  auto span = static_cast<double>(timeline.to() - timeline.from());
  auto column_of = [&](std::uint64_t ns) {
    return static_cast<double>(ns) / span * static_cast<double>(width);
  };
  auto begin = std::min(static_cast<std::size_t>(column_of(piece.begin)), width - 1);
  auto end = static_cast<std::size_t>(std::lround(column_of(piece.end)));
  std::string bar;
  for (std::size_t i = begin; i < std::min(end, width); i++) bar += "█";
  if (bar.empty()) bar = "▏";
  Painter painter(page.color());
  painter.put(bar, look_of(piece.category).escape);
  std::size_t drawn = std::max<std::size_t>(std::min(end, width), begin + 1);
  std::string time = piece.category == Category::unfinished ? "unfinished"
                     : piece.timed                          ? human_time(piece.duration)
                                                            : "?";
  page.painted(fmt::format("{:<{}}{}{}{}{:>{}}", name, label, std::string(begin, ' '),
                           painter.take(), std::string(width - drawn, ' '), time, TIME_WIDTH));
}

void add_pieces(Page& page, const Timeline& timeline) {
  std::size_t label = std::max<std::size_t>(34, page.width() / 3);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Timeline::Piece>> by_thread;
  for (const auto& piece : timeline.pieces()) by_thread[{piece.pid, piece.tid}].push_back(piece);
  for (const auto& [thread, pieces] : by_thread) {
    auto process = std::find_if(timeline.processes().begin(), timeline.processes().end(),
                                [pid = thread.first](const auto& one) { return one.pid == pid; });
    if (!page.empty()) page.blank();
    page.heading(fmt::format("{}, thread {}", name_of(timeline, *process), thread.second));
    for (const Placed& one : placed(pieces)) add_piece(page, timeline, one, label);
  }
  add_time_axis(page, timeline, label);
}

}  // namespace

std::string name_of(const Timeline& timeline, const Timeline::Process& process) {
  std::string name = fmt::format("process {}", process.pid);
  if (process.comm) name += " " + printable(std::string(timeline.names().text(process.comm)));
  return name;
}

void add_timeline(Page& page, const Timeline& timeline) {
  if (timeline.from() >= timeline.trace_duration() && timeline.from())
    page.line(fmt::format("The trace ends at {}.", page.at(timeline.trace_duration())));
  else if (!timeline.threads())
    page.line(fmt::format("No calls between {} and {}.", page.at(timeline.from()),
                          page.at(timeline.to())));
  else if (timeline.pieces().empty())
    add_lanes(page, timeline);
  else
    add_pieces(page, timeline);
  if (timeline.left_out_of_threads())
    page.line(fmt::format("  {} of more threads than can be kept apart are left out",
                          count_of(timeline.left_out_of_threads(), "call", "calls")));
  if (timeline.left_out_of_streams())
    page.line(fmt::format("  {} on more streams than can be kept apart are left out of their rows",
                          count_of(timeline.left_out_of_streams(), "call", "calls")));
}

}  // namespace cudabpf::analyze
