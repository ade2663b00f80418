// The metrics of a capture while it runs: for whoever asks at an address, and pushed to a receiver.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/flags/engine_flags.hpp"
#include "cli/flags/push_flags.hpp"
#include "engines/engine_reader.hpp"
#include "push/pusher.hpp"
#include "serve/metrics_site.hpp"
#include "serve/server.hpp"
#include "sink/flight_recorder.hpp"
#include "sink/metrics/metrics_sink.hpp"
#include "util/result.hpp"
#include "util/system/fd.hpp"
#include "util/system/stoppable_thread.hpp"

namespace cudabpf::cli {

class MetricsServer {
 public:
  struct Options {
    std::string listen = "127.0.0.1:8078";
    std::vector<std::string> names;  // by which clients may call it
    std::size_t most_series = 1000;
    PushFlags push;
    EngineFlags engines;     // whose figures are shown, too
    std::string dump_token;  // of those who may ask for dumps; empty: nobody may
  };
  // Takes the address, so that what is wrong with it, or with any option, shows up early.
  static Result<std::unique_ptr<MetricsServer>> open(const Options& options);
  ~MetricsServer() { stop(); }
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  Sink& sink() { return sink_; }
  std::string url() const { return address_.url() + "metrics"; }
  // Before start(): where those who may ask for a dump get it.
  void take_dumps(FlightRecorder& recorder);
  // Answers and pushes from now on, on threads of its own.
  Result<> start();
  // After the capture's end, so that the last push has all.
  void stop();

 private:
  MetricsServer(const Options& options, serve::Address address);
  MetricsPage page();
  std::string text();
  push::Pusher::Message message();
  Result<> start_server();

  const std::string dump_token_;
  serve::Address address_;
  std::string instance_;
  MetricsSink sink_;
  serve::MetricsSite site_;
  std::vector<std::unique_ptr<engines::EngineReader>> engines_;
  std::unique_ptr<push::Pusher> pusher_;  // null: metrics are not pushed
  Fd listening_;
  std::unique_ptr<serve::Server> server_;
  StoppableThread thread_;
};

}  // namespace cudabpf::cli
