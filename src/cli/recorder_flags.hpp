// What `top` keeps in memory, and when it is written, as a user gives it.
#pragma once

#include <optional>
#include <string>

#include "sink/flight_recorder.hpp"
#include "util/result.hpp"

namespace CLI {
class App;
}

namespace cudabpf::cli {

struct RecorderFlags {
  std::string keep_last, keep_most, dump_on, output;

  void add_to(CLI::App& app);
  // Nothing: nothing is to be kept.
  Result<std::optional<FlightRecorder::Options>> options() const;
};

}  // namespace cudabpf::cli
