// The timeline on a terminal while there are few calls: a line for each.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analyze/timeline/timeline_page.hpp"
#include "util/console/terminal.hpp"
#include "util/page/chart.hpp"

namespace cudabpf::analyze {

namespace {

constexpr std::size_t TIME_WIDTH = 10;

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

// What is shown of it: its name and room after that, when it was, and how long.
struct BarLine {
  std::string label;
  TimeSpan span;
  std::string time;
};

void add_bar(Page& page, const TimeScale& scale, const BarLine& line, const CategoryLook& look) {
  std::size_t width = scale.width();
  auto begin = std::min(static_cast<std::size_t>(scale.position(line.span.begin)), width - 1);
  auto end = static_cast<std::size_t>(std::lround(scale.position(line.span.end)));
  std::string bar;
  for (std::size_t i = begin; i < std::min(end, width); i++) bar += look.waits ? look.full : "█";
  if (bar.empty()) bar = "▏";
  Painter painter(page.color());
  painter.put(bar, look.escape);
  std::size_t drawn = std::max<std::size_t>(std::min(end, width), begin + 1);
  page.painted(fmt::format("{}{}{}{}{:>{}}", line.label, std::string(begin, ' '), painter.take(),
                           std::string(width - drawn, ' '), line.time, TIME_WIDTH));
}

void add_piece(Page& page, const Timeline& timeline, const TimeScale& scale, const Placed& placed,
               std::size_t label) {
  const Timeline::Piece& piece = *placed.piece;
  std::string name(timeline.names().text(piece.name));
  if (piece.launch && piece.what)
    name = timeline.short_name(piece.what);
  else if (piece.what)
    name += " " + timeline.what_of(piece);
  name = shortened(std::string(2 + 2 * placed.depth, ' ') + printable(name), label - 2);
  std::string time = piece.category == Category::unfinished ? "unfinished"
                     : piece.timed                          ? human_time(piece.duration)
                                                            : "?";
  add_bar(page, scale, {fmt::format("{:<{}}", name, label), {piece.begin, piece.end}, time},
          look_of(piece.category));
}

void add_work(Page& page, const Timeline& timeline, const TimeScale& scale,
              const QueuedOperation& work, std::size_t label) {
  std::string name = shortened("  " + printable(timeline.name_of(work)), label - 2);
  TimeSpan shown{std::max(work.span.begin, timeline.from()),
                 std::min(work.span.end, timeline.to())};
  std::string time = work.line.has(Field::duration) ? human_time(work.span.time()) : "?";
  add_bar(page, scale, {fmt::format("{:<{}}", name, label), shown, time},
          look_of(category_of_work(work.line)));
}

// Each thing that the GPUs did, as measured.
void add_operations(Page& page, const Timeline& timeline, const TimeScale& scale,
                    std::size_t label) {
  for (const auto& process : timeline.processes())
    for (std::size_t index : process.queues) {
      if (!page.empty()) page.blank();
      page.heading(
          fmt::format("{}, {}", name_of(timeline, process), full_name(timeline.gpu_queue(index))));
      for (const QueuedOperation& work : timeline.gpu_operations())
        if (work.queue == index) add_work(page, timeline, scale, work, label);
    }
}

}  // namespace

void Painter::put(std::string_view text, std::string_view escape) {
  if (color_ && escape != last_) {
    text_ += escape.empty() ? "\033[0m" : fmt::format("\033[0;{}m", escape);
    last_ = escape;
  }
  text_ += text;
}

std::string Painter::take() {
  put("", "");
  return std::move(text_);
}

void add_pieces(Page& page, const Timeline& timeline) {
  std::size_t label = std::max<std::size_t>(std::min(34U, page.width() / 2), page.width() / 3);
  std::size_t width = page.width() - label - TIME_WIDTH;
  TimelineView view = view_of(timeline, width);
  TimeScale scale(view.shown, width, FOLD_WIDTH);
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::vector<Timeline::Piece>> by_thread;
  for (const auto& piece : timeline.pieces())
    by_thread[{piece.process, piece.tid}].push_back(piece);
  for (const auto& [thread, pieces] : by_thread) {
    auto process =
        std::find_if(timeline.processes().begin(), timeline.processes().end(),
                     [number = thread.first](const auto& one) { return one.number == number; });
    if (!page.empty()) page.blank();
    page.heading(fmt::format("{}, thread {}", name_of(timeline, *process), thread.second));
    for (const Placed& one : placed(pieces)) add_piece(page, timeline, scale, one, label);
  }
  add_operations(page, timeline, scale, label);
  TextAxis axis = time_axis(scale, page.moments());
  page.line(std::string(label, ' ') + axis.line);
  page.line(std::string(label, ' ') + axis.labels);
  std::string note = note_of_view(timeline, view, page.moments());
  if (!note.empty()) page.paragraph(note, 2);
}

}  // namespace cudabpf::analyze
