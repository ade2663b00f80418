// A picture in SVG that opens in any browser: shapes and text, no scripts.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace cudabpf {

class Svg {
 public:
  enum class Anchor { start, middle, end };

  Svg(double width, double height, std::string_view title)
      : width_(width), height_(height), title_(title) {}
  // For pictures whose height depends on their contents.
  void set_height(double height) { height_ = height; }

  // `tooltip` is shown while the mouse rests on the shape; empty: nothing is.
  void rect(double x, double y, double width, double height, std::string_view fill,
            std::string_view tooltip = {});
  void line(double x1, double y1, double x2, double y2, std::string_view stroke, double width = 1);
  using Point = std::pair<double, double>;
  void polygon(std::span<const Point> points, std::string_view fill, std::string_view tooltip = {});
  void polyline(std::span<const Point> points, std::string_view stroke,
                std::string_view tooltip = {});
  void circle(double x, double y, double radius, std::string_view fill);
  void text(double x, double y, std::string_view text, double size = 12,
            Anchor anchor = Anchor::start, std::string_view fill = "#222222");

  // The anchor at `x` with which the text is not cut off at the picture's edge.
  Anchor fitting(double x, std::string_view text, double size) const;

  std::string take();

 private:
  void begin(std::string_view element, std::span<const Point> points);
  void end(std::string_view element, std::string_view tooltip);

  double width_, height_;
  std::string title_, text_;
};

}  // namespace cudabpf
