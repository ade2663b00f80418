#include "util/page/time_scale.hpp"

#include <algorithm>

namespace cudabpf {

std::uint64_t time_of(const std::vector<TimeSpan>& spans) {
  std::uint64_t time = 0;
  for (const TimeSpan& span : spans) time += span.time();
  return time;
}

// Multiplies first: exact for hours, so that a time at a column's beginning is in that column.
double TimeScale::Piece::position(std::uint64_t ns) const {
  if (begin == end) return static_cast<double>(at);
  double part = static_cast<double>(ns - begin) * static_cast<double>(width);
  return static_cast<double>(at) + part / static_cast<double>(time());
}

TimeScale::TimeScale(const std::vector<TimeSpan>& spans, std::size_t width, std::size_t fold)
    : width_(width), fold_(fold), time_(std::max<std::uint64_t>(time_of(spans), 1)) {
  std::size_t folds = (spans.size() - 1) * fold, used = 0;
  std::size_t room = width > folds ? width - folds : 0;
  for (const TimeSpan& span : spans) {
    double part = static_cast<double>(span.time()) / static_cast<double>(time_);
    Piece piece{span, 0, static_cast<std::size_t>(part * static_cast<double>(room))};
    piece.width = std::max<std::size_t>(piece.width, 1);
    used += piece.width;
    pieces_.push_back(piece);
  }
  // The longest piece takes the error of rounding.
  Piece& longest =
      *std::max_element(pieces_.begin(), pieces_.end(),
                        [](const auto& a, const auto& b) { return a.width < b.width; });
  longest.width = longest.width + room > used ? longest.width + room - used : 1;
  for (std::size_t i = 1; i < pieces_.size(); i++)
    pieces_[i].at = pieces_[i - 1].at + pieces_[i - 1].width + fold;
}

double TimeScale::position(std::uint64_t ns) const {
  auto after =
      std::upper_bound(pieces_.begin(), pieces_.end(), ns,
                       [](std::uint64_t time, const Piece& piece) { return time < piece.begin; });
  if (after == pieces_.begin()) return static_cast<double>(pieces_.front().at);
  const Piece& piece = *(after - 1);
  return piece.position(std::min(ns, piece.end));
}

}  // namespace cudabpf
