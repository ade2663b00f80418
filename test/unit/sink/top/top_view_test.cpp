#include "sink/top/top_view.hpp"

#include <catch2/catch_test_macros.hpp>

#include "support/sample_top.hpp"

using namespace cudabpf;
using Code = Key::Code;
using Mode = TopView::Mode;
using Pids = std::vector<std::uint32_t>;

namespace {

constexpr std::size_t PAGE = 3;

// By time in CUDA: 5, 3, 9, 1, 7.
TopInterval five() {
  TopInterval interval;
  interval.processes = {top_process(5, "worker", 10, 500, 1), top_process(3, "Alpha", 50, 400, 5),
                        top_process(9, "worker", 30, 300, 2), top_process(1, "beta", 20, 200, 4),
                        top_process(7, "gamma", 40, 100, 3)};
  return interval;
}

struct Watched {
  TopInterval interval = five();
  TopView view;

  TopRequest press(const Key& key) { return view.press(key, interval, PAGE); }
  void type(std::string_view letters) {
    for (char letter : letters) press({Code::character, static_cast<char32_t>(letter)});
  }
  TopRequest press_function(char32_t number) { return press({Code::function, number}); }
  Pids pids() const {
    Pids pids;
    for (const TopProcess* process : view.processes(interval)) pids.push_back(process->pid);
    return pids;
  }
  std::uint32_t selected() const {
    auto shown = view.processes(interval);
    return shown.at(view.selected(shown))->pid;
  }
  // In the list of columns that is open.
  void choose(TopColumn::Id id) {
    press({Code::home});
    for (std::size_t i = 0; i < static_cast<std::size_t>(id); i++) press({Code::down});
  }
};

}  // namespace

TEST_CASE("keys select a process, and stop at the ends") {
  Watched top;
  CHECK(top.selected() == 5);
  top.press({Code::down});
  CHECK(top.selected() == 3);
  top.type("jj");
  CHECK(top.selected() == 1);
  top.press({Code::up});
  top.type("k");
  CHECK(top.selected() == 3);
  top.press({Code::page_down});
  CHECK(top.selected() == 7);
  top.press({Code::down});
  CHECK(top.selected() == 7);
  top.press({Code::page_up});
  CHECK(top.selected() == 3);
  top.press({Code::home});
  top.press({Code::up});
  CHECK(top.selected() == 5);
  top.press({Code::end});
  CHECK(top.selected() == 7);
}

TEST_CASE("a selected process stays so, wherever the next interval has it") {
  Watched top;
  top.press({Code::down});
  std::swap(top.interval.processes[1].figures.time_ns, top.interval.processes[4].figures.time_ns);
  CHECK(top.selected() == 3);
  CHECK(top.view.selected(top.view.processes(top.interval)) == 4);
  top.interval.processes.erase(top.interval.processes.begin() + 1);  // it has ended
  CHECK(top.selected() == 7);                                        // the process in its place
  top.interval.processes.clear();
  CHECK(top.view.selected({}) == 0);
  for (Code code : {Code::up, Code::down, Code::page_down, Code::end, Code::enter})
    top.press({code});
}

TEST_CASE("processes are sorted by the column that is chosen, and inverted") {
  struct Keys {
    Key open, close;
  };
  for (const Keys& keys : {Keys{{Code::function, 6}, {Code::enter}},
                           Keys{{Code::character, '<'}, {Code::character, ' '}},
                           Keys{{Code::character, '>'}, {Code::enter}}}) {
    Watched top;
    CHECK(top.pids() == Pids{5, 3, 9, 1, 7});
    auto sort_by = [&](TopColumn::Id id) {
      top.press(keys.open);
      CHECK(top.view.mode() == Mode::sort);
      top.choose(id);
      top.press(keys.close);
      CHECK(top.view.mode() == Mode::table);
      CHECK(top.view.sorted_by() == id);
      return top.pids();
    };
    CHECK(sort_by(TopColumn::Id::calls) == Pids{3, 7, 9, 1, 5});
    CHECK(sort_by(TopColumn::Id::held) == Pids{3, 1, 7, 9, 5});
    CHECK(sort_by(TopColumn::Id::pid) == Pids{1, 3, 5, 7, 9});
    CHECK(sort_by(TopColumn::Id::name) == Pids{3, 1, 7, 5, 9});
    top.type("I");
    CHECK(top.pids() == Pids{9, 5, 7, 1, 3});
    top.type("R");
    CHECK(top.pids() == Pids{3, 1, 7, 5, 9});
    top.press(keys.open);
    top.press({Code::down});
    top.press({Code::escape});
    CHECK(top.view.sorted_by() == TopColumn::Id::name);
  }
}

TEST_CASE("a filter shows only processes with the text, in small or capital letters") {
  Watched top;
  top.press_function(4);
  CHECK(top.view.mode() == Mode::filter);
  top.type("AL");
  CHECK(top.pids() == Pids{3});
  top.press({Code::backspace});
  CHECK(top.pids() == Pids{3, 1, 7});
  top.type("q");  // no key now
  CHECK(top.pids().empty());
  top.press({Code::backspace});
  top.press({Code::enter});
  CHECK(top.view.mode() == Mode::table);
  CHECK(top.view.filter() == "A");
  top.press({Code::end});
  CHECK(top.selected() == 7);
  top.type("\\");
  top.press({Code::escape});
  CHECK(top.pids().size() == 5);
  top.type("\\");
  top.press({Code::character, U'é'});
  CHECK(top.view.filter() == "é");
  top.press({Code::backspace});
  CHECK(top.view.filter().empty());
  top.type(std::string(1000, 'x'));
  CHECK(top.view.filter().size() == 64);
}

TEST_CASE("a search selects a process with the text, and F3 the next one") {
  Watched top;
  top.type("/w");
  CHECK(top.view.mode() == Mode::search);
  CHECK(top.selected() == 5);
  top.press_function(3);
  CHECK(top.selected() == 9);
  top.press_function(3);
  CHECK(top.selected() == 5);
  top.press({Code::backspace});
  top.type("gam");
  CHECK(top.selected() == 7);
  top.type("nobody");
  CHECK(top.selected() == 7);
  CHECK(top.pids().size() == 5);
  top.press({Code::escape});
  CHECK(top.view.mode() == Mode::table);
  CHECK(top.view.search().empty());
}

TEST_CASE("keys pause, expand and choose columns") {
  Watched top;
  for (char key : std::string_view(" pzZ")) {
    top.type({&key, 1});
    CHECK(top.view.paused());
    top.type({&key, 1});
    CHECK_FALSE(top.view.paused());
  }
  top.press({Code::down});
  top.press({Code::enter});
  CHECK(top.view.is_expanded(3));
  CHECK_FALSE(top.view.is_expanded(5));
  top.type("+");
  CHECK_FALSE(top.view.is_expanded(3));

  for (const Key& open : {Key{Code::function, 2}, Key{Code::character, 'C'}}) {
    top.press(open);
    CHECK(top.view.mode() == Mode::columns);
    CHECK(top.view.shows(TopColumn::Id::held));
    top.choose(TopColumn::Id::held);
    top.type(" ");
    CHECK_FALSE(top.view.shows(TopColumn::Id::held));
    top.press({Code::enter});
    CHECK(top.view.shows(TopColumn::Id::held));
    top.choose(TopColumn::Id::name);
    top.type(" ");
    CHECK(top.view.shows(TopColumn::Id::name));  // there must be one
    top.press({Code::escape});
    CHECK(top.view.mode() == Mode::table);
  }
}

TEST_CASE("keys request the end, help, drawing again and a file") {
  Watched top;
  CHECK(top.press({Code::character, 'q'}) == TopRequest::end);
  CHECK(top.press_function(10) == TopRequest::end);
  CHECK(top.press({Code::control, 'l'}) == TopRequest::redraw);
  CHECK(top.press({Code::character, 'w'}) == TopRequest::write);
  CHECK(top.press({Code::character, 'x'}) == TopRequest::nothing);
  for (const Key& key :
       {Key{Code::function, 1}, Key{Code::character, '?'}, Key{Code::character, 'h'}}) {
    top.press(key);
    CHECK(top.view.mode() == Mode::help);
    CHECK(top.press({Code::character, 'q'}) == TopRequest::nothing);
    CHECK(top.view.mode() == Mode::table);
  }
}
