#include "analyze/stacks/stack_tree.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "analyze/columns.hpp"
#include "util/saturating.hpp"

namespace cudabpf::analyze {

namespace {

constexpr std::size_t MAX_NODES = 8192;  // of a tree

// What tells two stacks apart, the same each time that a trace is read.
std::vector<std::uint32_t> numbers_of(const StackWeights::Weighed& one) {
  std::vector<std::uint32_t> numbers;
  if (!one.place) return numbers;
  numbers.push_back(one.place->line.id);
  for (Name frame : one.place->frames) numbers.push_back(frame.id);
  return numbers;
}

// What a text is: web/src/tables/flame.ts has the same.
enum class TextKind : std::uint8_t { users, library, work };

// Each text once, with what it is.
class StackTexts {
 public:
  int of(std::string_view text, TextKind kind) {
    auto [at, is_new] =
        numbers_.try_emplace({std::string(text), kind}, static_cast<int>(texts_.size()));
    if (is_new) {
      texts_.emplace_back(text);
      kinds_.push_back(static_cast<unsigned>(kind));
    }
    return at->second;
  }
  Json texts() const { return texts_; }
  Json kinds() const { return kinds_; }

 private:
  std::map<std::pair<std::string, TextKind>, int> numbers_;
  Json texts_ = Json::array(), kinds_ = Json::array();
};

class StackTree {
 public:
  StackTree(StackTexts& texts, const Names& names) : texts_(texts), names_(names) {}

  void add(const StackWeights::Weighed& one) {
    std::size_t frames = one.place ? std::max<std::size_t>(one.place->frames.size(), 1) : 1;
    if (parents_.size() + frames + 2 > MAX_NODES) {
      left_out_ = saturating_sum(left_out_, one.weight);
      return;
    }
    parent_ = -1;
    weight_ = one.weight;
    if (!one.place) {
      step("(no line)", TextKind::library);
    } else if (one.place->frames.empty()) {
      step(names_.text(one.place->line), TextKind::users);
    } else {
      if (one.place->cut) step("…", TextKind::library);
      for (auto at = one.place->frames.rbegin(); at != one.place->frames.rend(); at++)
        frame(names_.text(*at));
    }
    step(one.what, TextKind::work);
  }
  Json json() const {
    return {{"parents", parents_},
            {"texts", text_numbers_},
            {"weights", weights_},
            {"left_out", left_out_}};
  }

 private:
  // "/home/me/train.py:12 step"
  void frame(std::string_view text) {
    bool of_library = is_of_library(text.substr(0, text.rfind(' ')));
    step(text, of_library ? TextKind::library : TextKind::users);
  }
  void step(std::string_view text, TextKind kind) {
    int number = texts_.of(text, kind);
    auto [at, is_new] = nodes_.try_emplace({parent_, number}, static_cast<int>(parents_.size()));
    if (is_new) {
      parents_.push_back(parent_);
      text_numbers_.push_back(number);
      weights_.push_back(0);
    }
    parent_ = at->second;
    std::uint64_t& weight = weights_[static_cast<std::size_t>(parent_)];
    weight = saturating_sum(weight, weight_);
  }

  StackTexts& texts_;
  const Names& names_;
  std::map<std::pair<int, int>, int> nodes_;  // by the parent and the text
  std::vector<int> parents_, text_numbers_;
  std::vector<std::uint64_t> weights_;
  std::uint64_t left_out_ = 0, weight_ = 0;
  int parent_ = -1;
};

struct UsersLine {
  std::string line;
  std::array<std::uint64_t, STACK_MEASURES.size()> weights{};
};

template <StackMeasure MEASURE>
constexpr auto weight_at =
    [](const UsersLine& of) { return of.weights[static_cast<std::size_t>(MEASURE)]; };

constexpr Column<UsersLine> LINE_COLUMNS[] = {
    {{"line"}, As::text, its<&UsersLine::line>, {1, "line", WIDE}},
    {{"host_us"}, As::time, weight_at<StackMeasure::host>, {2, "in calls", BAR}},
    {{"gpu_us"},
     As::time,
     [](const UsersLine& of) { return if_any(weight_at<StackMeasure::gpu>(of)); },
     {3, "on the GPU", BAR | IF_KNOWN}},
    {{"copied_bytes"},
     As::bytes,
     [](const UsersLine& of) { return if_any(weight_at<StackMeasure::copied>(of)); },
     {4, "copied and filled", IF_KNOWN}},
    {{"allocated_bytes"},
     As::bytes,
     [](const UsersLine& of) { return if_any(weight_at<StackMeasure::allocated>(of)); },
     {5, "allocated", IF_KNOWN}},
};

}  // namespace

Json stack_line_columns() { return page_columns(LINE_COLUMNS); }

Json stacks_json(const StackWeights& weights, const Names& names) {
  StackTexts texts;
  Json trees = Json::object();
  std::map<std::string, UsersLine> lines;
  bool any = false;
  for (std::size_t i = 0; i < STACK_MEASURES.size(); i++) {
    auto all = weights.of(static_cast<StackMeasure>(i));
    std::sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
      return std::tuple(b.weight, a.what, numbers_of(a)) <
             std::tuple(a.weight, b.what, numbers_of(b));
    });
    StackTree tree(texts, names);
    for (const auto& one : all) {
      any = any || one.place;
      tree.add(one);
      std::string line(one.place ? names.text(one.place->line) : "(no line)");
      UsersLine& sums = lines.try_emplace(line, UsersLine{line}).first->second;
      sums.weights[i] = saturating_sum(sums.weights[i], one.weight);
    }
    trees[std::string(STACK_MEASURES[i])] = tree.json();
  }
  if (!any) return nullptr;
  Json rows = Json::array();
  for (const auto& [text, line] : lines) rows.push_back(json_of(line, LINE_COLUMNS));
  return {{"texts", texts.texts()}, {"kinds", texts.kinds()}, {"trees", trees}, {"lines", rows}};
}

}  // namespace cudabpf::analyze
