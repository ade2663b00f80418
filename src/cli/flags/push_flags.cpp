#include "cli/flags/push_flags.hpp"

#include <CLI/CLI.hpp>

#include "cli/request/quantities.hpp"
#include "util/exit_codes.hpp"

namespace cudabpf::cli {

void PushFlags::add_to(CLI::App& app, const std::string& needed) {
  auto* push = app.add_option("--push", url,
                              "Also push metrics to this OTLP/HTTP receiver (protobuf): "
                              "http://HOST:PORT/v1/metrics, …/api/v1/otlp/v1/metrics of "
                              "Prometheus, …/opentelemetry/v1/metrics of VictoriaMetrics")
                   ->type_name("URL");
  if (!needed.empty()) push->needs(needed);
  app.add_option("--push-every", every, "How often, 1s at least and 1h at most")
      ->type_name("TIME")
      ->capture_default_str()
      ->needs(push);
  app.add_option("--push-as", instance,
                 "The instance (service.instance.id) that the receiver sees [HOST:PORT]")
      ->type_name("NAME")
      ->needs(push);
}

Result<std::optional<push::Options>> PushFlags::options() const {
  if (!is_given()) return std::optional<push::Options>();
  auto target = TRY(http::Url::parse(url, "--push", "/v1/metrics"));
  std::chrono::nanoseconds period(TRY(parse_duration(every, "--push-every")));
  if (period < std::chrono::seconds(1) || period > std::chrono::hours(1))
    return Error{
        "--push-every " + every + " is too " + (period > std::chrono::hours(1) ? "long" : "short"),
        "it takes 1s at least and 1h at most", exit_code::USAGE};
  return std::optional<push::Options>({std::move(target), period});
}

}  // namespace cudabpf::cli
