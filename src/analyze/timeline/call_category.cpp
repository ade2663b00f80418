#include "analyze/timeline/call_category.hpp"

#include <string_view>
#include <utility>

#include "analyze/work.hpp"

namespace cudabpf::analyze {

namespace {

// Several types share a category, or a picture would have too many colours.
constexpr std::pair<std::string_view, Category> CATEGORY_OF_TYPE[] = {
    {"init", Category::init},     {"context", Category::context},   {"module", Category::module},
    {"memory", Category::memory}, {"transfer", Category::transfer}, {"kernel", Category::kernel},
    {"graph", Category::graph},   {"sync", Category::sync},
};

}  // namespace

CallCategories::CallCategories(Names& names) {
  for (auto [type, category] : CATEGORY_OF_TYPE) {
    Name name = names.add(type);
    if (name.id >= by_type_.size()) by_type_.resize(name.id + 1, Category::other);
    by_type_[name.id] = category;
  }
}

Category CallCategories::of(const Line& call) const {
  if (call.unfinished) return Category::unfinished;
  if (call.work == Work::recorded) return Category::captured;
  if (call.meaning->counted == CountedAs::copies && waits(call.work, call))
    return Category::waiting_copy;
  return call.type.id < by_type_.size() ? by_type_[call.type.id] : Category::other;
}

}  // namespace cudabpf::analyze
