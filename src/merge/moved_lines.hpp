// Writes a trace's lines as they are in a merged trace: in its time, with numbers that no other
// trace has, and with their host. Everything else stays as it was written.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "merge/call_numbers.hpp"
#include "merge/host_numbers.hpp"
#include "trace/read/line.hpp"

namespace cudabpf::merge {

class MovedLines {
 public:
  // Where the lines of one trace go. `index`: of the trace, among so many.
  struct To {
    std::string host;  // that lines name; empty: there is only one
    HostNumbers numbers;
    std::uint64_t offset_ns = 0;
    std::uint64_t index = 0, traces = 1;
  };

  // `given`: as CallNumbers takes it.
  MovedLines(To to, std::uint64_t& given);
  ~MovedLines();

  // False: it has numbers that no real trace has. It must not be written.
  bool admits(const analyze::Line& line);
  // The line must have been admitted. Ends with a newline.
  void append(const analyze::Line& line, std::string& out);

 private:
  struct Json;
  enum class Means : std::uint8_t {
    time,
    call,
    calls,   // a list of them
    number,  // that the trace has given out itself: of a graph, a communicator, a group
    parent,
    process,
    device,
    processes
  };
  static std::optional<Means> means_of(std::string_view key);  // nothing: the same everywhere

  void member(Means means, std::string_view value, std::string& out);
  bool admits_named_calls(const analyze::Line& line);
  void calls(std::string_view list, std::string& out);
  void processes(std::string_view list, std::string& out);

  To to_;
  std::string end_;  // of each line: its host; empty: it has none
  CallNumbers calls_;
  std::unique_ptr<Json> json_;
};

}  // namespace cudabpf::merge
