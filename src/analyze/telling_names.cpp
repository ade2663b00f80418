#include "analyze/telling_names.hpp"

#include <algorithm>

#include "util/demangle/demangle.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

namespace {

constexpr int DEEPEST = 4;                 // arguments of arguments
constexpr std::size_t MAX_READ = 1 << 13;  // of a made-up name; real ones reach 5,000
constexpr std::size_t MAX_ARGUMENTS = 64;  // looked at; real ones have fewer

using NameTexts = std::vector<std::string_view>;

// Whole characters of it.
std::string_view readable(std::string_view name) {
  if (name.size() <= MAX_READ) return name;
  std::size_t end = MAX_READ;
  while (end && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) end--;
  return name.substr(0, end);
}

bool all_same(const auto& texts) {
  return std::all_of(texts.begin(), texts.end(),
                     [&](const auto& text) { return text == texts.front(); });
}

std::string without_scopes(std::string_view argument) {
  bool is_type = argument.find("::") != std::string_view::npos || argument.ends_with('>');
  return is_type ? short_name(argument) : std::string(argument);
}

std::string without_lambdas(const std::string& name) {
  std::size_t lambda = name.find("::{lambda");
  return lambda ? name.substr(0, lambda) : name;
}

// "kernel" says nothing; "gemvx::kernel" does.
std::string function_name(std::string_view full) {
  std::string name = short_name(full);
  if (name != "kernel" && name != "Kernel" && name != "device_kernel" && name != "globalKernel")
    return name;
  std::size_t scope_end = full.find("::" + name);
  if (scope_end == std::string_view::npos) return name;
  std::size_t before = full.find_last_of(": >)", scope_end - 1);
  std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
  return std::string(full.substr(begin, scope_end - begin)) + "::" + name;
}

// The arguments of all texts, place by place: first types and functions, then numbers.
std::vector<NameTexts> telling_first(const std::vector<NameTexts>& arguments, std::size_t places) {
  std::vector<NameTexts> all;
  for (std::size_t place = 0; place < places; place++) {
    all.emplace_back();
    for (const NameTexts& of : arguments) all.back().push_back(place < of.size() ? of[place] : "");
  }
  std::stable_partition(all.begin(), all.end(), [](const NameTexts& here) {
    return std::any_of(here.begin(), here.end(), [](std::string_view argument) {
      return argument.find("::") != std::string_view::npos;
    });
  });
  return all;
}

std::vector<std::string> differences(const NameTexts& texts, int depth);

// What best distinguishes these arguments, which are not all the same.
std::vector<std::string> parts_of(const NameTexts& arguments, int depth) {
  std::vector<std::string> names, parts;
  for (std::string_view argument : arguments) {
    names.push_back(without_scopes(argument));
    parts.push_back(without_lambdas(names.back()));
  }
  if (all_same(parts) && depth < DEEPEST) parts = differences(arguments, depth + 1);
  return all_same(parts) ? names : parts;
}

// For each, the template arguments that distinguish it from the others, and no more.
std::vector<std::string> differences(const NameTexts& texts, int depth) {
  std::vector<NameTexts> arguments;
  std::size_t most = 0;
  for (std::string_view text : texts) {
    NameTexts all = template_arguments(text);
    arguments.emplace_back(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(
                                                          std::min(all.size(), MAX_ARGUMENTS)));
    most = std::max(most, arguments.back().size());
  }
  std::vector<std::string> different(texts.size());
  for (const NameTexts& here : telling_first(arguments, most)) {
    HashMap<std::string, std::vector<std::size_t>> alike;
    for (std::size_t i = 0; i < different.size(); i++) alike[different[i]].push_back(i);
    if (alike.size() == different.size()) break;
    for (const auto& [so_far, places] : alike) {
      NameTexts differing;
      for (std::size_t place : places) differing.push_back(here[place]);
      if (all_same(differing)) continue;
      std::vector<std::string> parts = parts_of(differing, depth);
      for (std::size_t i = 0; i < places.size(); i++)
        if (!parts[i].empty()) different[places[i]] += (so_far.empty() ? "" : ", ") + parts[i];
    }
  }
  return different;
}

}  // namespace

std::vector<std::string> telling_names(const std::vector<std::string_view>& names) {
  std::vector<std::string> telling;
  HashMap<std::string, std::vector<std::size_t>> namesakes;
  for (std::size_t i = 0; i < names.size(); i++) {
    telling.push_back(function_name(readable(names[i])));
    namesakes[telling.back()].push_back(i);
  }
  for (const auto& [name, places] : namesakes) {
    NameTexts full;
    for (std::size_t place : places) full.push_back(readable(names[place]));
    if (all_same(full)) continue;
    std::vector<std::string> different = differences(full, 0);
    for (std::size_t i = 0; i < places.size(); i++)
      if (!different[i].empty()) telling[places[i]] += "<" + different[i] + ">";
  }
  return telling;
}

}  // namespace cudabpf::analyze
