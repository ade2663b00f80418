#include "cli/metrics_server.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <future>
#include <utility>

#include "collect/machine.hpp"
#include "sink/metrics/metrics_text.hpp"
#include "sink/metrics/otlp_metrics.hpp"
#include "util/text/label_value.hpp"

namespace cudabpf::cli {

namespace {

serve::Answer ask_for_dump(FlightRecorder& recorder) {
  using Outcome = FlightRecorder::Asked::Outcome;
  constexpr std::uint64_t SECOND_NS = 1'000'000'000, ROOM_COMES_S = 60;
  auto [outcome, wait_ns] = recorder.ask(TriggerRules::POST);
  switch (outcome) {
    case Outcome::too_soon:
      return serve::refused_for_now(429, "The last dump was written less than --dump-every ago.",
                                    wait_ns / SECOND_NS + 1);
    case Outcome::too_many:
      return serve::refused(429, "As many dumps as --max-dumps allows have been written.");
    case Outcome::disk_low:
      return serve::refused_for_now(503, "No dump is written: the disk is nearly full.",
                                    ROOM_COMES_S);
    case Outcome::ended:
      return serve::refused(503, "No dump is written: cudabpf is ending.");
    case Outcome::on_its_way:
      break;
  }
  return serve::refused(202, "A dump will be written in a moment.");
}

}  // namespace

MetricsServer::MetricsServer(const Options& options, serve::Address address)
    : dump_token_(options.dump_token),
      address_(std::move(address)),
      instance_(label_value(options.push.instance)),
      sink_({.most_series = options.most_series, .has_receiver = options.push.is_given()}),
      site_(address_, MetricsText::CONTENT_TYPE, [this] { return text(); }) {}

Result<std::unique_ptr<MetricsServer>> MetricsServer::open(const Options& options) {
  auto push = TRY(options.push.options());
  auto engines = TRY(options.engines.options());
  auto address = TRY(serve::Address::parse(options.listen));
  for (const std::string& name : options.names) TRY(address.add_name(name));
  std::unique_ptr<MetricsServer> server(new MetricsServer(options, std::move(address)));
  for (const http::Url& url : engines)
    server->engines_.push_back(std::make_unique<engines::EngineReader>(url));
  if (push)
    server->pusher_ = std::make_unique<push::Pusher>(
        *push, OtlpMetrics::CONTENT_TYPE, [made = server.get()] { return made->message(); });
  server->listening_ = TRY(server->address_.listen());
  if (server->instance_.empty())
    server->instance_ = fmt::format("{}:{}", label_value(machine_name()), server->address_.port());
  return server;
}

MetricsPage MetricsServer::page() {
  MetricsPage page = sink_.page();
  for (const auto& engine : engines_) page.engines.push_back(engine->heard());
  if (pusher_) page.pushes = pusher_->counts();
  return page;
}

std::string MetricsServer::text() {
  MetricsPage page = this->page();
  sink_.reached(MetricsReader::scraper, page.sums.number);
  MetricsText text;
  print(page, text);
  return text.take();
}

push::Pusher::Message MetricsServer::message() {
  MetricsPage page = this->page();
  OtlpMetrics otlp({.version = page.own.version,
                    .host = label_value(machine_name()),
                    .instance = instance_,
                    .start_ns = page.own.start_ns,
                    .now_ns = page.own.now_ns});
  print(page, otlp);
  return {otlp.take(),
          [this, number = page.sums.number] { sink_.reached(MetricsReader::receiver, number); }};
}

void MetricsServer::take_dumps(FlightRecorder& recorder) {
  if (!dump_token_.empty())
    site_.take_dumps(dump_token_, [&recorder] { return ask_for_dump(recorder); });
}

Result<> MetricsServer::start() {
  for (const auto& engine : engines_) TRY(engine->start());
  TRY(start_server());
  return pusher_ ? pusher_->start() : ok();
}

Result<> MetricsServer::start_server() {
  // Whoever reaches the port talks to threads without any rights: they inherit those of this one.
  std::promise<Result<>> started;
  auto result = started.get_future();
  auto begun = thread_.start("starting the server", [this, started = std::move(started)]() mutable {
    auto server = serve::Server::start(std::move(listening_), site_);
    if (!server) return started.set_value(server.error());
    server_ = std::move(*server);
    started.set_value(ok());
    server_->run(thread_.stop_fd());
  });
  return begun ? result.get() : begun;
}

void MetricsServer::stop() {
  if (pusher_) pusher_->stop();
  for (const auto& engine : engines_) engine->stop();
  thread_.stop();
  server_.reset();
}

}  // namespace cudabpf::cli
