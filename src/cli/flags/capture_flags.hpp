// The options that all ways of capturing share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cudabpf/source.hpp"
#include "sink/flight_recorder.hpp"
#include "sink/top/top_sink.hpp"
#include "trace/files/jsonl.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI
namespace cudabpf::taping {
class Taper;
}

namespace cudabpf::cli {

class MetricsServer;

// The name of a trace that begins now, if the user gave none.
std::string default_output(bool compressed);

struct CaptureFlags {
  std::string output;
  std::string profile = "default";
  std::string only;
  std::string exclude;
  std::vector<std::string> only_libraries;  // whose functions alone are traced
  std::string ring_size;                    // empty: not said
  std::string python_slower;   // how long calls take that have their stacks; empty: not said
  bool whole_machine = false;  // not a flag: what is traced
  // Not a flag either: what happens is shown on stdout, and no trace is written.
  std::optional<TopSink::Options> watch;
  bool as_json = false;          // what is shown
  bool on_screen = false;        // it takes the whole terminal
  bool single_launches = false;  // watched launches are recorded, not only counted
  std::optional<FlightRecorder::Options> recorder;  // not a flag either: what is kept meanwhile
  MetricsServer* metrics = nullptr;                 // not a flag either: has sums of what happens
  bool sums_alone = false;                          // of metrics: no trace is written
  taping::Taper* taper = nullptr;                   // not a flag either: captures an iteration
  bool among_others = false;  // not a flag either: others may want the same output
  bool kernel = false;
  bool no_returns = false;
  bool no_follow = false;
  bool quiet = false;
  bool live = false;
  bool log = false;
  bool redact = false;
  bool ranges = false, no_ranges = false;  // the program's own
  bool python = false;                     // where in its Python calls are made
  bool shapes = false, no_shapes = false;  // of matrix products
  bool blocks = false;                     // of PyTorch's allocator
  bool no_sample = false;
  bool switches = false;
  std::string sample;                            // how often GPUs are sampled; empty: not said
  std::string gpu;                               // which GPU times are recorded; empty: none
  std::string listener = "/run/cudabpf/inside";  // where programs find whoever takes these
  std::vector<std::string> disabled_features;
  std::vector<std::string> libraries;
  std::string watch_hang;  // how long a call must be open to be told of; empty: none is
  std::string duration;
  std::string max_size;
  std::string rotate_size;
  std::string rotate_time;
  unsigned keep = 0;
  std::string keep_size;

  void add_to(CLI::App& app, bool traces_machine);
  // Those that top or metrics have, too.
  CLI::Option* add_duration_to(CLI::App& app);
  void add_watch_hang_to(CLI::App& app);
  void add_what_is_counted_to(CLI::App& app);  // --profile, --library, --ring-size
  void add_kernel_count_to(CLI::App& app);     // only these two: their --kernel records nothing
  // --gpu, where the traced programs can be given a library.
  void add_gpu_to(CLI::App& app);
  // The same of all programs that were given the library already.
  void add_gpu_of_all_to(CLI::App& app);
  void add_ranges_to(CLI::App& app);
  void add_python_to(CLI::App& app);
  // Whether there will be a trace or a part of one.
  bool writes_lines() const { return !watch || recorder; }
  // Whether a program's ranges are recorded, if it is given the library.
  bool wants_ranges() const { return !no_ranges && writes_lines(); }
  bool wants_python() const { return python && writes_lines(); }

  // Whether products are traced from inside.
  bool wants_shapes() const { return !no_shapes && writes_lines(); }

  // A given flag that only tracing by eBPF can use; empty: there is none.
  std::string for_ebpf_alone() const;

  // How often GPUs are to be sampled; nothing: as often as costs little.
  Result<std::optional<std::uint64_t>> sample_period_ns() const;
  Result<> add_gpu_timing(SourceOptions& options) const;
  Result<> add_slow_stacks(SourceOptions& options) const;
  Result<SourceOptions> source_options() const;
  Result<JsonlOptions> output_options() const;
  Result<std::uint64_t> duration_ns() const;  // 0: no limit
  Result<std::uint64_t> hang_ns() const;      // 0: nobody watches
  Result<std::uint64_t> most_bytes() const;   // 0: no limit

 private:
  void add_profile_to(CLI::App& app);
  void add_library_to(CLI::App& app);
  void add_ring_size_to(CLI::App& app);
  void add_shapes_and_lines_to(CLI::App& app);
  // When the trace ends, and into which files it goes.
  void add_ends_and_files(CLI::App& app);
};

}  // namespace cudabpf::cli
