#include "analyze/timeline/timeline_bars.hpp"

#include <algorithm>
#include <tuple>

namespace cudabpf::analyze {

void Alike::add(const Alike& more) {
  count += more.count;
  launches += more.launches;
  untimed += more.untimed;
  time += more.time;
}

Bar::Bar(const Bar& other)
    : TimeSpan(other),
      inside(other.inside),
      first_(other.first_),
      several_(other.several_ ? std::make_unique<Several>(*other.several_) : nullptr) {}

void Bar::absorb(const Bar& other) {
  if (!several_) {
    several_ = std::make_unique<Several>();
    several_->parts.push_back(first_);
    several_->covered = first_.time;
  }
  std::uint64_t since = std::max(end, other.begin);
  if (other.end > since) several_->covered += std::min(other.covered(), other.end - since);
  begin = std::min(begin, other.begin);
  end = std::max(end, other.end);
  inside += other.inside;
  for (const Alike& part : other.parts()) take(part);
  if (other.several_) several_->others.add(other.several_->others);
}

void Bar::take(const Alike& part) {
  auto& parts = several_->parts;
  auto same = std::find_if(parts.begin(), parts.end(), [&](const Alike& one) {
    return one.name == part.name && one.what == part.what && one.category == part.category;
  });
  if (same != parts.end())
    same->add(part);
  else if (parts.size() < MAX_PARTS)
    parts.push_back(part);
  else
    several_->others.add(part);
}

std::span<const Alike> Bar::parts() const {
  if (several_) return several_->parts;
  return {&first_, 1};
}

Alike Bar::total() const {
  if (!several_) return first_;
  std::array<Alike, CATEGORIES + 1> by_category;
  for (const Alike& part : several_->parts)
    by_category[static_cast<std::size_t>(part.category)].add(part);
  by_category[static_cast<std::size_t>(Category::other)].add(several_->others);
  auto most =
      std::max_element(by_category.begin(), by_category.end(), [](const Alike& a, const Alike& b) {
        return std::tie(a.time, a.count) < std::tie(b.time, b.count);
      });
  Alike total;
  for (const Alike& one : by_category) total.add(one);
  total.category = static_cast<Category>(most - by_category.begin());
  return total;
}

void Bar::take_in(const Bar& within) {
  Alike total = within.total();
  inside += within.inside + total.count;
  first_.launches += total.launches;
}

}  // namespace cudabpf::analyze
