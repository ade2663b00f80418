#include "util/page/svg.hpp"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "util/text/markup.hpp"
#include "util/text/printable.hpp"

namespace cudabpf {

namespace {

// A number as short as possible, exact to a hundredth: there may be many.
class Short {
 public:
  explicit Short(double number) : text_(fmt::format("{:.2f}", number)) {
    text_.erase(text_.find_last_not_of('0') + 1);
    if (text_.back() == '.') text_.pop_back();
  }
  std::string_view text() const { return text_; }

 private:
  std::string text_;
};

std::string foreign(std::string_view text) { return as_markup(printable_lines(text)); }

}  // namespace

void Svg::rect(double x, double y, double width, double height, std::string_view fill,
               std::string_view tooltip) {
  fmt::format_to(std::back_inserter(text_),
                 R"(<rect x="{}" y="{}" width="{}" height="{}" fill="{}")", Short(x).text(),
                 Short(y).text(), Short(width).text(), Short(height).text(), fill);
  end("rect", tooltip);
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view stroke, double width) {
  fmt::format_to(std::back_inserter(text_),
                 R"(<line x1="{}" y1="{}" x2="{}" y2="{}" stroke="{}" stroke-width="{:g}")",
                 Short(x1).text(), Short(y1).text(), Short(x2).text(), Short(y2).text(), stroke,
                 width);
  end("line", {});
}

void Svg::begin(std::string_view element, std::span<const Point> points) {
  fmt::format_to(std::back_inserter(text_), "<{} points=\"", element);
  for (auto [x, y] : points)
    fmt::format_to(std::back_inserter(text_), "{},{} ", Short(x).text(), Short(y).text());
}

void Svg::polygon(std::span<const Point> points, std::string_view fill, std::string_view tooltip) {
  begin("polygon", points);
  fmt::format_to(std::back_inserter(text_), "\" fill=\"{}\"", fill);
  end("polygon", tooltip);
}

void Svg::polyline(std::span<const Point> points, std::string_view stroke,
                   std::string_view tooltip) {
  begin("polyline", points);
  fmt::format_to(std::back_inserter(text_), "\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"",
                 stroke);
  end("polyline", tooltip);
}

void Svg::circle(double x, double y, double radius, std::string_view fill) {
  fmt::format_to(std::back_inserter(text_), R"(<circle cx="{}" cy="{}" r="{:g}" fill="{}")",
                 Short(x).text(), Short(y).text(), radius, fill);
  end("circle", {});
}

void Svg::text(double x, double y, std::string_view text, double size, Anchor anchor,
               std::string_view fill) {
  constexpr std::string_view ANCHORS[] = {"start", "middle", "end"};
  fmt::format_to(std::back_inserter(text_),
                 R"(<text x="{}" y="{}" font-size="{:g}" text-anchor="{}" fill="{}">{}</text>)"
                 "\n",
                 Short(x).text(), Short(y).text(), size, ANCHORS[static_cast<int>(anchor)], fill,
                 foreign(text));
}

void Svg::end(std::string_view element, std::string_view tooltip) {
  if (tooltip.empty())
    text_ += "/>\n";
  else
    fmt::format_to(std::back_inserter(text_), "><title>{}</title></{}>\n", foreign(tooltip),
                   element);
}

Svg::Anchor Svg::fitting(double x, std::string_view text, double size) const {
  double half = 0.3 * size * static_cast<double>(text.size());
  return x + half > width_ ? Anchor::end : x < half ? Anchor::start : Anchor::middle;
}

std::string Svg::take() {
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\">\n"
      "<title>{2}</title>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{3}</svg>\n",
      width_, height_, foreign(title_), std::exchange(text_, {}));
}

}  // namespace cudabpf
