#include "serve/route.hpp"

#include <algorithm>
#include <optional>

namespace cudabpf::serve {

namespace {

constexpr std::string_view REPORT = "/report/", HEX = "0123456789ABCDEF";

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// One part of a path; nothing: it names no file or folder.
std::optional<std::string> decoded(std::string_view part) {
  std::string text;
  for (std::size_t i = 0; i < part.size(); i++) {
    if (part[i] != '%') {
      text += part[i];
      continue;
    }
    if (part.size() - i < 3) return std::nullopt;
    int high = digit(part[i + 1]), low = digit(part[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    text += static_cast<char>(high << 4 | low);
    i += 2;
  }
  bool leads_elsewhere = text.empty() || text == "." || text == ".." ||
                         text.find('/') != text.npos || text.find('\0') != text.npos;
  return leads_elsewhere ? std::nullopt : std::optional(text);
}

// The path names a file, perhaps in a folder.
std::optional<std::string> decoded_name(std::string_view path) {
  std::size_t slash = path.find('/');
  auto first = decoded(path.substr(0, slash));
  if (!first || slash == path.npos) return first;
  std::string_view rest = path.substr(slash + 1);
  auto second = rest.find('/') == rest.npos ? decoded(rest) : std::nullopt;
  return second ? std::optional(*first + "/" + *second) : std::nullopt;
}

bool stays(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._~/").find(c) != std::string_view::npos;
}

}  // namespace

std::string_view path_in(std::string_view target) { return target.substr(0, target.find('?')); }

std::string_view token_in(std::string_view target) {
  constexpr std::string_view NAME = "token=";
  std::size_t at = target.find('?');
  while (at < target.size()) {
    std::string_view rest = target.substr(at + 1);
    if (rest.starts_with(NAME)) return rest.substr(NAME.size(), rest.find('&') - NAME.size());
    at = target.find('&', at + 1);
  }
  return {};
}

Route route_of(std::string_view target) {
  std::string_view path = path_in(target);
  if (path == "/") return {Route::To::list, {}};
  if (path == "/traces.json") return {Route::To::traces, {}};
  if (!path.starts_with(REPORT)) return {};
  auto name = decoded_name(path.substr(REPORT.size()));
  return name ? Route{Route::To::report, *name} : Route{};
}

std::string link_to_report(std::string_view name) {
  std::string link(REPORT.substr(1));
  for (char c : name) {
    if (stays(c)) {
      link += c;
    } else {
      auto byte = static_cast<unsigned char>(c);
      link += {'%', HEX[byte >> 4], HEX[byte & 15]};
    }
  }
  return link;
}

}  // namespace cudabpf::serve
