// One thing that a trace shows and that a person could act on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cudabpf::analyze {

struct Finding {
  // Calls are known. What they say of the GPU, which a trace does not show, is likely.
  enum class Sure : std::uint8_t { known, likely };
  static std::string_view text_of(Sure sure) { return sure == Sure::known ? "known" : "likely"; }

  std::string_view id;  // for programs: "host_bound"
  std::string title;    // for people: "Host-bound"
  Sure sure = Sure::known;
  std::string text;
  std::uint64_t begin = 0, end = 0;  // ns: where the trace shows it
  std::vector<std::uint64_t> calls;  // some that show it best: their ids
  std::vector<std::pair<std::string_view, double>> figures;

  // "Host-bound, probably"
  std::string heading() const { return title + (sure == Sure::likely ? ", probably" : ""); }
  void add_call(std::uint64_t call) {
    if (call && std::find(calls.begin(), calls.end(), call) == calls.end()) calls.push_back(call);
  }
};

}  // namespace cudabpf::analyze
