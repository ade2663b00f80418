#include "serve/metrics_site.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

using namespace cudabpf::serve;

namespace {

Answer ask(const std::string& listen, const std::string& host, const std::string& target,
           const std::string& method = "GET") {
  auto address = *Address::parse(listen);
  MetricsSite site(address, "text/x", [] { return std::string("sums 1\n"); });
  Request request;
  request.method = method;
  request.target = target;
  request.hosts = {host};
  return site.answer(request);
}

}  // namespace

TEST_CASE("Metrics have one path, which is only read") {
  Answer answer = ask("127.0.0.1:8078", "127.0.0.1:8078", "/metrics");
  CHECK(answer.status == 200);
  CHECK(*answer.body == "sums 1\n");
  CHECK(std::count(answer.headers.begin(), answer.headers.end(),
                   std::pair<std::string, std::string>("Content-Type", "text/x")) == 1);
  CHECK(ask("127.0.0.1:8078", "localhost", "/metrics?a=b").status == 200);
  CHECK(ask("127.0.0.1:8078", "localhost", "/metrics", "HEAD").status == 200);
  CHECK(ask("127.0.0.1:8078", "localhost", "/metrics", "POST").status == 405);
  CHECK(ask("127.0.0.1:8078", "localhost", "/").status == 200);
  CHECK(ask("127.0.0.1:8078", "localhost", "/metrics/x").status == 404);
}

TEST_CASE("Another site's name does not lead to metrics of this machine") {
  CHECK(ask("127.0.0.1:8078", "evil.example", "/metrics").status == 403);
  CHECK(ask("0.0.0.0:8078", "gpu-17.example.com:8078", "/metrics").status == 200);
}

TEST_CASE("Pages that are being read have an end") {
  auto address = *Address::parse("127.0.0.1:8078");
  int made = 0;
  MetricsSite site(address, "text/x", [&made] { return std::to_string(++made); });
  Request request;
  request.method = "GET";
  request.target = "/metrics";
  request.hosts = {"localhost"};
  // One that is asked for at once is the same. A busy machine may be slow now and then.
  constexpr auto AT_ONCE = std::chrono::milliseconds(50);
  std::string first, second;
  for (;;) {
    auto begin = std::chrono::steady_clock::now();
    first = *site.answer(request).body;
    second = *site.answer(request).body;
    if (std::chrono::steady_clock::now() - begin < AT_ONCE) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(110));  // the next one is new
  }
  CHECK(first == second);
  std::vector<Answer> kept;
  for (int i = 0; i < 8; i++) {
    kept.push_back(site.answer(request));
    std::this_thread::sleep_for(std::chrono::milliseconds(110));
  }
  CHECK(site.answer(request).status == 503);
  kept.clear();
  CHECK(site.answer(request).status == 200);
}
