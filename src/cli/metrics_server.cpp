#include "cli/metrics_server.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <future>
#include <utility>

#include "sink/metrics/metrics_text.hpp"
#include "util/system/privileges.hpp"

namespace cudabpf::cli {

MetricsServer::MetricsServer(const Options& options, serve::Address address)
    : address_(std::move(address)),
      sink_({.most_series = options.most_series}),
      site_(address_, MetricsText::CONTENT_TYPE, [this] { return text(); }) {}

Result<std::unique_ptr<MetricsServer>> MetricsServer::open(const Options& options) {
  auto address = TRY(serve::Address::parse(options.listen));
  for (const std::string& name : options.names) TRY(address.add_name(name));
  std::unique_ptr<MetricsServer> server(new MetricsServer(options, std::move(address)));
  server->listening_ = TRY(server->address_.listen());
  server->end_ = Fd(::eventfd(0, EFD_CLOEXEC));
  if (!server->end_) return errno_error("starting the server");
  return server;
}

std::string MetricsServer::text() {
  MetricsPage page = sink_.page();
  sink_.reached(MetricsReader::scraper, page);
  MetricsText text;
  print(page, text);
  return text.take();
}

Result<> MetricsServer::start() {
  // Whoever reaches the port talks to threads without any rights: they inherit those of this one.
  std::promise<Result<>> started;
  auto result = started.get_future();
  thread_ = std::thread([this, started = std::move(started)]() mutable {
    privileges::keep_only({});
    auto server = serve::Server::start(std::move(listening_), site_);
    if (!server) return started.set_value(server.error());
    server_ = std::move(*server);
    started.set_value(ok());
    server_->run(end_.get());
  });
  return result.get();
}

void MetricsServer::stop() {
  if (!thread_.joinable()) return;
  std::uint64_t one = 1;
  [[maybe_unused]] auto written = ::write(end_.get(), &one, sizeof(one));
  thread_.join();
  server_.reset();
}

}  // namespace cudabpf::cli
