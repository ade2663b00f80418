// What `top` and `metrics` keep in memory, and when it is written, as a user gives it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sink/flight_recorder.hpp"
#include "util/result.hpp"

namespace CLI {
class App;
}

namespace cudabpf::cli {

struct RecorderFlags {
  std::string keep_last, keep_most, between, output;
  std::string dump_token;  // the path of the file that has it
  std::vector<std::string> dump_on;
  unsigned most_dumps = 10;

  void add_to(CLI::App& app);
  void add_token_to(CLI::App& app);  // where clients may ask for dumps
  // Nothing: nothing is to be kept.
  Result<std::optional<FlightRecorder::Options>> options() const;
};

// What --dump-on takes, up to a time that follows "=".
std::vector<std::string> trigger_words();

}  // namespace cudabpf::cli
