#include "analyze/lanes/call_category.hpp"

#include <array>
#include <string_view>
#include <utility>

#include "analyze/work.hpp"

namespace cudabpf::analyze {

namespace {

// Several types share a category, or a picture would have too many colours.
constexpr std::pair<std::string_view, Category> CATEGORY_OF_TYPE[] = {
    {"init", Category::init},
    {"context", Category::context},
    {"module", Category::module},
    {"memory", Category::memory},
    {"transfer", Category::transfer},
    {"kernel", Category::kernel},
    {"graph", Category::graph},
    {"sync", Category::sync},
    {"collective", Category::collective},
    {"group", Category::collective},
};

}  // namespace

const CategoryLook& look_of(Category category) {
  static constexpr std::array<CategoryLook, CATEGORIES + 2> LOOKS = {{
      {"init", "I", "i", "35", "#7b5fa8"},
      {"context", "C", "c", "95", "#b58fd8"},
      {"module", "L", "l", "33", "#c8963c"},
      {"memory", "M", "m", "34", "#2f6fb8"},
      {"transfer", "T", "t", "36", "#1f93a2"},
      {"kernel", "K", "k", "32", "#3f9b45"},
      {"graph", "G", "g", "92", "#6fae35"},
      {"collective", "N", "n", "94", "#5a1fe0"},
      {"wait", "░", "·", "31", "#f4c9c5", true},
      {"waiting copy", "▒", "-", "36", "#b5e3ea", true},
      {"captured", "P", "p", "93", "#a9a25a"},
      {"other", "O", "o", "37", "#8c8c8c"},
      {"unfinished", "U", "u", "91", "#ff2020"},
      {"driver", "D", "d", "90", "#555555"},
      {"range", "R", "r", "37", "#9aa5b1"},
  }};
  return LOOKS[static_cast<std::size_t>(category)];
}

CallCategories::CallCategories(Names& names) {
  for (auto [type, category] : CATEGORY_OF_TYPE) {
    Name name = names.add(type);
    if (name.id >= by_type_.size()) by_type_.resize(name.id + 1, Category::other);
    by_type_[name.id] = category;
  }
}

Category CallCategories::of(const Line& line) const {
  if (line.kind == LineKind::gpu_operation) return category_of_work(line);
  if (line.unfinished) return Category::unfinished;
  if (line.kind == LineKind::driver) return Category::driver;
  if (line.work == Work::recorded) return Category::captured;
  if (line.meaning->counted == CountedAs::copies && waits(line.work, line))
    return Category::waiting_copy;
  return line.type.id < by_type_.size() ? by_type_[line.type.id] : Category::other;
}

Category category_of_work(const Line& work) {
  if (work.communicates) return Category::collective;
  if (work.op == Type::kernel) return Category::kernel;
  if (work.op == Type::graph) return Category::graph;
  return work.op == Op::set ? Category::memory : Category::transfer;
}

}  // namespace cudabpf::analyze
