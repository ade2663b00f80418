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

  Svg(double width, double height, std::string_view title);

  // What `tooltip` says is shown where the mouse rests; empty: nothing.
  void rect(double x, double y, double width, double height, std::string_view fill,
            std::string_view tooltip = {});
  void line(double x1, double y1, double x2, double y2, std::string_view stroke, double width = 1);
  using Point = std::pair<double, double>;
  void polygon(std::span<const Point> points, std::string_view fill, std::string_view tooltip = {});
  void circle(double x, double y, double radius, std::string_view fill);
  void text(double x, double y, std::string_view text, double size = 12,
            Anchor anchor = Anchor::start, std::string_view fill = "#222222");

  // How so long a text is anchored at `x` without being cut off at the edge of the picture.
  Anchor fitting(double x, std::string_view text, double size) const;

  std::string take();

  // Text of anybody's making as XML takes it.
  static std::string escaped(std::string_view text);

 private:
  void end(std::string_view element, std::string_view tooltip);

  double width_;
  std::string text_;
};

}  // namespace cudabpf
