// Keeps what happened last in memory, and writes it as a trace on request, or when something has
// gone wrong: `cudabpf top --keep-last`.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "sink/dump_limits.hpp"
#include "sink/triggers.hpp"
#include "trace/files/jsonl.hpp"
#include "trace/files/kept_parts.hpp"
#include "util/result.hpp"

namespace cudabpf {

class FlightRecorder : public Sink {
 public:
  static constexpr std::uint64_t SHORTEST_NS = 1'000'000'000, LEAST_BYTES = 1 << 20;

  struct Options {
    std::uint64_t keep_ns = 30'000'000'000;
    std::uint64_t most_bytes = 256 << 20;  // that the kept lines take, compressed
    TriggerRules triggers;                 // what makes a dump
    // How long after that, so that the dump has what follows.
    std::uint64_t after_trigger_ns = 1'000'000'000;
    std::uint64_t between_ns = 600'000'000'000;  // two such dumps, at least
    unsigned most_dumps = 10;                    // of these
    // The path of the next dump. If it exists, a number is inserted: no file is replaced.
    std::function<std::string()> path;
    bool own_choice = false;  // cudabpf chose the path: it creates the folder
  };
  struct Dump {
    std::string path;
    std::string because;           // `asked`, or what triggered it
    std::uint64_t since_ns = 0;    // when it begins, since recording began
    std::uint64_t covered_ns = 0;  // and how much time it covers
    bool cut = false;              // there was no room to keep more
    std::uint64_t events = 0, bytes = 0;
  };
  // Reports a dump or its failure. Called on one of the recorder's threads.
  using OnDump = std::function<void(const Result<Dump>& dump)>;

  // Fails if no dump could be written at the path.
  static Result<std::unique_ptr<FlightRecorder>> open(Options options, OnDump on_dump);
  ~FlightRecorder() override;

  // Requests a dump, from any thread, without waiting for it. All requests that come while one is
  // being written get the next one.
  void write_soon() { asked_ = true; }

  // Triggers a dump, from any thread, as what --dump-on names does: within the same limits.
  struct Asked {
    enum class Outcome : std::uint8_t { on_its_way, too_soon, too_many, disk_low, ended };
    Outcome outcome = Outcome::on_its_way;
    std::uint64_t wait_ns = 0;  // if it is too soon
  };
  Asked ask(std::string why);

  void begin(const Session& session) override;
  void call(const Call& call) override;
  void driver_call(const DriverCall& call) override { lines_.driver_call(call); }
  void gpu_error(const GpuError& error) override;
  void gpu_sample(const GpuSample& sample) override { lines_.gpu_sample(sample); }
  void gpu_operation(const GpuOperation& work) override { lines_.gpu_operation(work); }
  void gpu_times(const GpuTimes& times) override { lines_.gpu_times(times); }
  void gpu_window(const GpuWindow& window) override { lines_.gpu_window(window); }
  void range(const NamedRange& range) override { lines_.range(range); }
  void python(const PythonFound& found) override { lines_.python(found); }
  void tallied(const Tallies&) override {}
  void process(const Process& process) override;
  void library(const Library& library) override { lines_.library(library); }
  void lost(const LossEvent& loss) override { lines_.lost(loss); }
  void open_calls(const OpenCallsNow& calls) override;
  void flush() override;
  void end(const Totals& totals) override;

 private:
  FlightRecorder(Options options, OnDump on_dump);
  void triggered(std::string why);
  std::string wanted_because(bool at_the_end);
  void take(KeptTrace kept);
  void write_all();
  Result<Dump> write(KeptTrace kept) const;
  void stop();

  const Options options_;
  const OnDump on_dump_;
  KeptParts parts_;
  JsonlSink lines_;

  Triggers triggers_;
  DumpLimits limits_;
  std::uint64_t monotonic_ns_ = 0;  // when the trace began
  std::atomic<bool> asked_{false};
  bool noticed_ = false;
  std::atomic<bool> writing_{false};  // a dump is on its way
  std::atomic<bool> ended_{false};

  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<KeptTrace> to_write_;  // one, and another one at the end
  bool stopping_ = false;
  std::thread writer_;
};

}  // namespace cudabpf
