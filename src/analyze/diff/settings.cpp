#include "analyze/diff/settings.hpp"

#include <algorithm>
#include <optional>

#include "trace/header.hpp"

namespace cudabpf::analyze {

namespace {

std::string text_of(const std::string& text) { return text; }

std::string text_of(std::optional<bool> flag) {
  if (!flag) return "";
  return *flag ? "yes" : "no";
}

std::string text_of(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string text_of(const std::optional<std::vector<std::string>>& words) {
  return words ? text_of(*words) : "";
}

std::string text_of(const std::vector<Gpu>& gpus) {
  std::string text;
  for (const Gpu& gpu : gpus) text += (text.empty() ? "" : " ") + gpu.name;
  return text;
}

template <auto Field>
std::string text_in_header(const TraceHeader& header) {
  return text_of(header.*Field);
}

struct InHeader {
  std::string (*text)(const TraceHeader&);
  std::string_view what, so;
  Needs incomparable = {};
};
using Header = TraceHeader;
constexpr Needs OF_FUNCTIONS = Need::calls;
constexpr InHeader IN_HEADERS[] = {
    {text_in_header<&Header::profile>, "profile",
     "functions that only one of the profiles traces seem new or missing", OF_FUNCTIONS},
    {text_in_header<&Header::only>, "only",
     "functions that only one of the traces has seem new or missing", OF_FUNCTIONS},
    {text_in_header<&Header::exclude>, "exclude",
     "functions that only one of the traces has seem new or missing", OF_FUNCTIONS},
    {text_in_header<&Header::only_libraries>, "libraries",
     "functions that only one of the traces has seem new or missing", OF_FUNCTIONS},
    {text_in_header<&Header::returns>, "returns recorded",
     "one of the traces has neither durations nor results", Need::times | Need::results},
    {text_in_header<&Header::driver_traced>, "driver traced",
     "one of the traces has no ioctls, and tracing them takes time", Need::driver | Need::times},
    {text_in_header<&Header::driver_way>, "by",
     "what is traced of the driver, and what that costs, is not the same",
     Need::driver | Need::times},
    {text_in_header<&Header::gpu_timing>, "GPUs measured",
     "measuring GPUs takes time, and of graphs either the nodes are measured or the whole",
     Need::gpu_times | Need::times},
    {text_in_header<&Header::mode>, "mode", "they may be of different processes"},
    {text_in_header<&Header::follow>, "children traced",
     "one of the traces has no processes that were started", Needs::all()},
    {text_in_header<&Header::version>, "cudabpf", ""},
    {text_in_header<&Header::host>, "host", ""},
    {text_in_header<&Header::arch>, "architecture", ""},
    {text_in_header<&Header::gpus>, "GPUs", ""},
    {text_in_header<&Header::driver>, "NVIDIA driver", ""},
    {text_in_header<&Header::linux_release>, "Linux", ""},
    {text_in_header<&Header::command>, "command", ""},
};

// Each text once, in the order of the traces.
std::vector<std::string> different(const std::vector<const Settings*>& traces,
                                   std::size_t setting) {
  std::vector<std::string> texts;
  for (const Settings* of : traces)
    if (std::find(texts.begin(), texts.end(), (*of)[setting]) == texts.end())
      texts.push_back((*of)[setting]);
  return texts;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts)
    all += (&text == &texts.front() ? "" : ", ") + (text.empty() && texts.size() > 1 ? "-" : text);
  return all;
}

}  // namespace

Settings settings_in(const TraceHeader& header) {
  Settings settings;
  for (const InHeader& one : IN_HEADERS) settings.push_back(one.text(header));
  return settings;
}

std::vector<Setting> settings_unlike(const std::vector<const Settings*>& a,
                                     const std::vector<const Settings*>& b) {
  std::vector<Setting> unlike;
  for (std::size_t i = 0; i < std::size(IN_HEADERS); i++) {
    const InHeader& one = IN_HEADERS[i];
    auto of_a = different(a, i), of_b = different(b, i);
    if (of_a.size() == 1 && of_a == of_b) continue;
    // If one has nothing about the driver, another setting says so.
    auto has_none = [](const auto& texts) {
      return std::find(texts.begin(), texts.end(), "") != texts.end();
    };
    if (one.what == "by" && (has_none(of_a) || has_none(of_b))) continue;
    unlike.push_back({one.what, joined(of_a), joined(of_b), one.so, one.incomparable});
  }
  return unlike;
}

}  // namespace cudabpf::analyze
