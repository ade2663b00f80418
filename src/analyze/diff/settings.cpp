#include "analyze/diff/settings.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "trace/read/json_text.hpp"

namespace cudabpf::analyze {

namespace {

struct InHeader {
  const char* key;
  std::string_view what, so;
  Needs incomparable = {};
};
constexpr Needs OF_FUNCTIONS = Need::calls;
constexpr InHeader IN_HEADERS[] = {
    {"profile", "profile", "functions that only one of the profiles traces seem new or missing",
     OF_FUNCTIONS},
    {"only", "only", "functions that only one of the traces has seem new or missing", OF_FUNCTIONS},
    {"exclude", "exclude", "functions that only one of the traces has seem new or missing",
     OF_FUNCTIONS},
    {"returns", "returns recorded", "one of the traces has neither durations nor results",
     Need::times | Need::results},
    {"driver_traced", "driver traced",
     "one of the traces has no ioctls, and tracing them takes time", Need::driver | Need::times},
    {"driver_way", "by", "what is traced of the driver, and what that costs, is not the same",
     Need::driver | Need::times},
    {"gpu_works", "GPUs measured",
     "measuring GPUs takes time, and of graphs either the nodes are measured or the whole",
     Need::gpu_times | Need::times},
    {"mode", "mode", "they may be of different processes"},
    {"follow", "children traced", "one of the traces has no processes that were started",
     Needs::all()},
    {"version", "cudabpf", ""},
    {"host", "host", ""},
    {"arch", "architecture", ""},
    {"gpus", "GPUs", ""},
    {"driver", "NVIDIA driver", ""},
    {"kernel", "Linux", ""},
    {"command", "command", ""},
};

std::string text_of(const Json& header, const char* key) {
  auto at = header.is_object() ? header.find(key) : header.end();
  if (at == header.end() || at->is_null()) return "";
  if (at->is_string()) return at->get<std::string>();
  if (at->is_boolean()) return at->get<bool>() ? "yes" : "no";
  std::string text;
  if (!at->is_array()) return text;
  for (const Json& element : *at) {
    std::string one = text_in(element, "name");
    if (element.is_string()) one = element.get<std::string>();
    text += (text.empty() ? "" : " ") + one;
  }
  return text;
}

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

Settings settings_in(const Json& header) {
  Settings settings;
  for (const InHeader& one : IN_HEADERS) settings.push_back(text_of(header, one.key));
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
