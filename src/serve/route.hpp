// What a request's path asks for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cudabpf::serve {

struct Route {
  enum class To : std::uint8_t { nothing, list, traces, report };
  To to = To::nothing;
  std::string name;  // of the trace: "run/t.jsonl"
};

// `target` is as the client sent it: nothing is decoded but a trace's name, part by part. A part
// that could lead anywhere else than down (.., an encoded slash, a zero byte) leads to nothing.
Route route_of(std::string_view target);

// Where a trace's report is, as a link from the list: "report/run/t.jsonl".
std::string link_to_report(std::string_view name);

// "token=…" in the query of a target; empty: there is none.
std::string_view token_in(std::string_view target);
// The target without its query.
std::string_view path_in(std::string_view target);

}  // namespace cudabpf::serve
