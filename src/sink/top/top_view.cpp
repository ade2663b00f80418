#include "sink/top/top_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "util/text/printable.hpp"
#include "util/text/utf8.hpp"

namespace cudabpf {

namespace {

using Code = Key::Code;
using Shown = std::vector<const TopProcess*>;
constexpr std::size_t MAX_PROMPT = 64;  // characters

bool is_function(const Key& key, char32_t number) {
  return key.code == Code::function && key.character == number;
}
bool is_letter(const Key& key, std::u32string_view letters) {
  return key.code == Code::character && letters.find(key.character) != letters.npos;
}

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  for (char& c : small)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return small;
}

// Searches the text as it is shown, so that users find what they see.
bool has_text(const TopProcess& process, const std::string& text) {
  std::string all =
      fmt::format("{} {} {} {}", process.pid, process.name, process.pod, process.container);
  return in_small_letters(printable(all)).find(in_small_letters(text)) != std::string::npos;
}

void drop_last_character(std::string& text) {
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0) == 0x80) text.pop_back();
  if (!text.empty()) text.pop_back();
}

}  // namespace

Shown TopView::processes(const TopInterval& interval) const {
  Shown shown;
  for (const TopProcess& process : interval.processes)
    if (filter_.empty() || has_text(process, filter_)) shown.push_back(&process);
  const TopColumn& column = top_column(sorted_by_);
  std::stable_sort(shown.begin(), shown.end(), [&](const TopProcess* a, const TopProcess* b) {
    if (a->ended != b->ended) return b->ended;
    return inverted_ ? sorts_before(column, *b, *a) : sorts_before(column, *a, *b);
  });
  return shown;
}

std::size_t TopView::selected(const Shown& shown) const {
  if (pid_)
    for (std::size_t i = 0; i < shown.size(); i++)
      if (shown[i]->pid == *pid_) return i;
  return shown.empty() ? 0 : std::min(at_, shown.size() - 1);
}

TopRequest TopView::press(const Key& key, const TopInterval& interval, std::size_t rows) {
  if (is_function(key, 10)) return TopRequest::end;
  if (key == Key{Code::control, 'l'}) return TopRequest::redraw;
  switch (mode_) {
    case Mode::table:
      return press_in_table(key, interval, rows);
    case Mode::help:
      mode_ = Mode::table;
      break;
    case Mode::sort:
    case Mode::columns:
      press_in_list(key);
      break;
    case Mode::filter:
    case Mode::search:
      press_in_prompt(key, interval);
      break;
  }
  return TopRequest::nothing;
}

TopRequest TopView::press_in_table(const Key& key, const TopInterval& interval, std::size_t rows) {
  switch (key.code) {
    case Code::character:
      return press_letter(key.character, interval);
    case Code::function:
      switch (key.character) {
        case 1:
          mode_ = Mode::help;
          break;
        case 2:
          choose(Mode::columns);
          break;
        case 3:
          mode_ = Mode::search;
          break;
        case 4:
          mode_ = Mode::filter;
          break;
        case 6:
          choose(Mode::sort);
          break;
      }
      return TopRequest::nothing;
    case Code::enter:
      expand(interval);
      return TopRequest::nothing;
    default:
      move(key, interval, rows);
      return TopRequest::nothing;
  }
}

TopRequest TopView::press_letter(char32_t letter, const TopInterval& interval) {
  switch (letter) {
    case 'q':
      return TopRequest::end;
    case 'w':
      return TopRequest::write;
    case '?':
    case 'h':
      mode_ = Mode::help;
      break;
    case 'g':
      all_gpus_ = !all_gpus_;
      break;
    case 'C':
      choose(Mode::columns);
      break;
    case '/':
      mode_ = Mode::search;
      break;
    case '\\':
      mode_ = Mode::filter;
      break;
    case '<':
    case '>':
      choose(Mode::sort);
      break;
    case 'I':
    case 'R':
      inverted_ = !inverted_;
      break;
    case ' ':
    case 'p':
    case 'z':
    case 'Z':
      paused_ = !paused_;
      break;
    case '+':
      expand(interval);
      break;
    case 'j':
      move({Code::down}, interval, 1);
      break;
    case 'k':
      move({Code::up}, interval, 1);
      break;
    default:
      break;
  }
  return TopRequest::nothing;
}

void TopView::move(const Key& key, const TopInterval& interval, std::size_t rows) {
  Shown shown = processes(interval);
  std::size_t at = selected(shown), page = std::max<std::size_t>(rows, 1);
  auto up = [&](std::size_t by) { select(shown, at - std::min(at, by)); };
  switch (key.code) {
    case Code::up:
      return up(1);
    case Code::page_up:
      return up(page);
    case Code::down:
      return select(shown, at + 1);
    case Code::page_down:
      return select(shown, at + page);
    case Code::home:
      return select(shown, 0);
    case Code::end:
      return select(shown, shown.size());
    default:
      return;
  }
}

void TopView::select(const Shown& shown, std::size_t at) {
  if (shown.empty()) return;
  at_ = std::min(at, shown.size() - 1);
  pid_ = shown[at_]->pid;
}

void TopView::expand(const TopInterval& interval) {
  Shown shown = processes(interval);
  if (shown.empty()) return;
  std::size_t at = selected(shown);
  select(shown, at);
  if (!expanded_.erase(shown[at]->pid)) expanded_.insert(shown[at]->pid);
}

void TopView::choose(Mode mode) {
  mode_ = mode;
  chosen_ = mode == Mode::sort ? static_cast<std::size_t>(sorted_by_) : 0;
}

void TopView::press_in_list(const Key& key) {
  std::size_t last = top_columns().size() - 1;
  bool choosing_sort = mode_ == Mode::sort;
  if (key.code == Code::up || is_letter(key, U"k")) {
    chosen_ -= std::min<std::size_t>(chosen_, 1);
  } else if (key.code == Code::down || is_letter(key, U"j")) {
    chosen_ = std::min(chosen_ + 1, last);
  } else if (key.code == Code::home || key.code == Code::page_up) {
    chosen_ = 0;
  } else if (key.code == Code::end || key.code == Code::page_down) {
    chosen_ = last;
  } else if (key.code == Code::enter || is_letter(key, U" ")) {
    TopColumn::Id id = top_columns()[chosen_].id;
    if (choosing_sort) {
      sorted_by_ = id;
      mode_ = Mode::table;
    } else if (id != TopColumn::Id::pid && id != TopColumn::Id::name) {
      hidden_.flip(chosen_);
    }
  } else if (key.code == Code::escape || is_letter(key, U"qC<>") ||
             is_function(key, choosing_sort ? 6 : 2)) {
    mode_ = Mode::table;
  }
}

void TopView::press_in_prompt(const Key& key, const TopInterval& interval) {
  bool searching = mode_ == Mode::search;
  std::string& text = searching ? search_ : filter_;
  if (searching && is_function(key, 3)) {
    select_next_found(interval, selected(processes(interval)) + 1);
  } else if (key.code == Code::enter || is_function(key, 4)) {
    mode_ = Mode::table;
  } else if (key.code == Code::escape) {
    text.clear();
    mode_ = Mode::table;
  } else if (key.code == Code::backspace) {
    drop_last_character(text);
  } else if (key.code == Code::character && width_of(text) < MAX_PROMPT) {
    text += utf8_of(key.character);
    if (searching) select_next_found(interval, selected(processes(interval)));
  }
}

// Searches from there on, and wraps around.
void TopView::select_next_found(const TopInterval& interval, std::size_t from) {
  Shown shown = processes(interval);
  if (search_.empty()) return;
  for (std::size_t i = 0; i < shown.size(); i++) {
    std::size_t at = (from + i) % shown.size();
    if (has_text(*shown[at], search_)) return select(shown, at);
  }
}

}  // namespace cudabpf
