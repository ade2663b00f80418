// Where times lie along a picture in which long stretches may be folded away: an axis of pieces,
// all to the same scale, with a fold of some columns between every two.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cudabpf {

struct TimeSpan {
  std::uint64_t begin = 0, end = 0;  // ns
  std::uint64_t time() const { return end - begin; }
  bool operator==(const TimeSpan&) const = default;
};
// How long they are together.
std::uint64_t time_of(const std::vector<TimeSpan>& spans);

class TimeScale {
 public:
  struct Piece : TimeSpan {
    std::size_t at = 0, width = 0;            // columns, or pixels
    double position(std::uint64_t ns) const;  // of a time in it
    std::uint64_t time_of_column() const { return std::max<std::uint64_t>(time() / width, 1); }
  };

  // `spans` follow one another; each gets one column at least, also a mere moment.
  TimeScale(const std::vector<TimeSpan>& spans, std::size_t width, std::size_t fold);

  const std::vector<Piece>& pieces() const { return pieces_; }
  std::size_t width() const { return width_; }
  std::size_t fold() const { return fold_; }
  std::uint64_t begin() const { return pieces_.front().begin; }
  std::uint64_t end() const { return pieces_.back().end; }
  std::uint64_t time() const { return time_; }  // of all pieces
  // A time in a fold, or outside, is at the nearest edge before it.
  double position(std::uint64_t ns) const;

 private:
  std::vector<Piece> pieces_;
  std::size_t width_, fold_;
  std::uint64_t time_;
};

}  // namespace cudabpf
