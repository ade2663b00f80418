// cudabpf metrics: counts the machine's calls for Prometheus, and records none of them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/captures.hpp"
#include "cli/commands.hpp"
#include "cli/flags/recorder_flags.hpp"
#include "cli/help.hpp"
#include "cli/metrics_server.hpp"
#include "serve/token.hpp"

namespace cudabpf::cli {

namespace {

struct MetricsFlags {
  CaptureFlags capture;
  RecorderFlags recorder;
  MetricsServer::Options server;
};

Result<int> serve_metrics(MetricsFlags flags) {
  flags.capture.recorder = TRY(flags.recorder.options());
  const std::string& token = flags.recorder.dump_token;
  if (!token.empty()) flags.server.dump_token = TRY(serve::token_in_file(token));
  auto server = TRY(MetricsServer::open(flags.server));
  flags.capture.metrics = server.get();
  flags.capture.sums_alone = true;
  if (!flags.capture.gpu.empty() && flags.capture.gpu.find('/') == std::string::npos)
    return Error{"--gpu=" + flags.capture.gpu + ": metrics have GPU times in windows only",
                 "--gpu alone is --gpu=0.5s/10s", exit_code::USAGE};
  return capture_machine(flags.capture);
}

}  // namespace

void add_metrics(CLI::App& app, Action& action) {
  auto [sub, flags] = add_command<MetricsFlags>(
      app, action, "metrics",
      "Count the machine's calls by pod, service and program, for Prometheus", serve_metrics);
  sub.add_option("--listen", flags.server.listen,
                 "Address to listen at: IP:PORT; port 0 takes a free one")
      ->type_name("ADDRESS")
      ->capture_default_str();
  sub.add_option("--host-name", flags.server.names,
                 "A name under which clients on this machine reach it; may be repeated")
      ->type_name("HOST");
  sub.add_option("--max-series", flags.server.most_series,
                 "At most N label sets for each metric: further workloads are counted as (other)")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1'000'000}).description(""))
      ->capture_default_str();
  flags.server.push.add_to(sub, "");
  flags.server.engines.add_to(sub, "");
  flags.capture.add_kernel_count_to(sub);
  flags.capture.add_gpu_of_all_to(sub);
  flags.capture.add_what_is_counted_to(sub);
  flags.capture.add_duration_to(sub);
  flags.recorder.add_to(sub);
  flags.recorder.add_token_to(sub);
  add_footer(sub,
             {"sudo cudabpf metrics   then: curl -s http://127.0.0.1:8078/metrics",
              "sudo cudabpf metrics --listen 0.0.0.0:8078   for a Prometheus elsewhere",
              "sudo cudabpf metrics --push http://127.0.0.1:4318/v1/metrics   also to a collector",
              "sudo cudabpf metrics --dump-on error   also a trace of what led to the first error"},
             capture_statuses());
}

}  // namespace cudabpf::cli
