// A timeline of calls and operations at any time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/timeline/timeline.hpp"
#include "analyze/timeline/timeline_view.hpp"
#include "support/analyzing.hpp"

namespace cudabpf::analyze {

// Writes calls and operations at any time, in µs.
struct Drawn {
  std::string text;
  int ids = 0;
  int pid = 1, tid = 1;

  Drawn& call(const std::string& type, std::int64_t ts, int duration,
              const std::string& rest = "") {
    text += R"({"id":)" + std::to_string(++ids) + R"(,"type":")" + type +
            R"(","op":"launch","name":"cu_)" + type + R"(","ts":)" + std::to_string(ts * 1000);
    if (duration >= 0) text += R"(,"duration_us":)" + std::to_string(duration) + ".000";
    text += R"(,"pid":)" + std::to_string(pid) + R"(,"tid":)" + std::to_string(tid) + rest + "}\n";
    return *this;
  }
  Drawn& ioctl(std::int64_t ts, int duration, int call) {
    text += R"({"type":"kernel","op":"ioctl","name":"NV_ESC","ts":)" + std::to_string(ts * 1000) +
            R"(,"duration_us":)" + std::to_string(duration) + R"(.000,"pid":)" +
            std::to_string(pid) + R"(,"tid":)" + std::to_string(tid) + R"(,"call":)" +
            std::to_string(call) + R"(,"control":"CTRL"})" + "\n";
    return *this;
  }
  Drawn& line(const std::string& json) {
    text += json + "\n";
    return *this;
  }
};

constexpr Timeline::Window ALL;

struct Analyzed {
  // With this window, unless it is to choose one.
  explicit Analyzed(const Drawn& trace, std::uint64_t duration,
                    std::optional<Timeline::Window> window = ALL)
      : timeline(parser.names(), window) {
    auto seen = each_line(parser, trace.text, [&](const Line& line) { timeline.line(line); });
    TraceFacts facts;
    facts.last_ts = duration * 1000;
    timeline.finish(facts);
  }
  std::vector<Timeline::Busy> columns(std::size_t thread, std::size_t count) const {
    TimeScale scale({{timeline.from(), timeline.to()}}, count, 0);
    return busy_columns(timeline.thread(thread), scale);
  }
  std::string svg() const { return timeline_svg(timeline, "t"); }
  std::string page(unsigned width = 80) const {
    Page page({.width = width}, 160);
    add_timeline(page, timeline);
    return page.take();
  }

  LineParser parser;
  Timeline timeline;
};

// More calls than are drawn one by one.
inline Drawn many() {
  Drawn trace;
  for (int i = 0; i < 100; i++) trace.call("kernel", i * 10, 10, R"(,"stream":"0x1")");
  return trace.call("sync", 1000, 800).call("memory", 1900, 20);
}

}  // namespace cudabpf::analyze
