#include "util/page/svg.hpp"

#include <fmt/format.h>

#include <iterator>

#include "util/text/printable.hpp"

namespace cudabpf {

Svg::Svg(double width, double height, std::string_view title) : width_(width) {
  fmt::format_to(std::back_inserter(text_),
                 "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
                 "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\">\n"
                 "<title>{2}</title>\n"
                 "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
                 width, height, escaped(title));
}

void Svg::rect(double x, double y, double width, double height, std::string_view fill,
               std::string_view tooltip) {
  fmt::format_to(std::back_inserter(text_),
                 R"(<rect x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}" fill="{}")", x, y,
                 width, height, fill);
  end("rect", tooltip);
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view stroke, double width) {
  fmt::format_to(
      std::back_inserter(text_),
      R"(<line x1="{:.2f}" y1="{:.2f}" x2="{:.2f}" y2="{:.2f}" stroke="{}" stroke-width="{:g}")",
      x1, y1, x2, y2, stroke, width);
  end("line", {});
}

void Svg::polygon(std::span<const Point> points, std::string_view fill, std::string_view tooltip) {
  text_ += "<polygon points=\"";
  for (auto [x, y] : points) fmt::format_to(std::back_inserter(text_), "{:.2f},{:.2f} ", x, y);
  fmt::format_to(std::back_inserter(text_), "\" fill=\"{}\"", fill);
  end("polygon", tooltip);
}

void Svg::circle(double x, double y, double radius, std::string_view fill) {
  fmt::format_to(std::back_inserter(text_), R"(<circle cx="{:.2f}" cy="{:.2f}" r="{:g}" fill="{}")",
                 x, y, radius, fill);
  end("circle", {});
}

void Svg::text(double x, double y, std::string_view text, double size, Anchor anchor,
               std::string_view fill) {
  constexpr std::string_view ANCHORS[] = {"start", "middle", "end"};
  fmt::format_to(
      std::back_inserter(text_),
      R"(<text x="{:.2f}" y="{:.2f}" font-size="{:g}" text-anchor="{}" fill="{}">{}</text>)"
      "\n",
      x, y, size, ANCHORS[static_cast<int>(anchor)], fill, escaped(text));
}

void Svg::end(std::string_view element, std::string_view tooltip) {
  if (tooltip.empty())
    text_ += "/>\n";
  else
    fmt::format_to(std::back_inserter(text_), "><title>{}</title></{}>\n", escaped(tooltip),
                   element);
}

Svg::Anchor Svg::fitting(double x, std::string_view text, double size) const {
  double half = 0.3 * size * static_cast<double>(text.size());
  return x + half > width_ ? Anchor::end : x < half ? Anchor::start : Anchor::middle;
}

std::string Svg::take() {
  text_ += "</svg>\n";
  return std::move(text_);
}

std::string Svg::escaped(std::string_view text) {
  std::string out;
  for (char c : printable_lines(text)) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

}  // namespace cudabpf
