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

TEST_CASE("Dumps are for who has the token") {
  auto address = *Address::parse("127.0.0.1:8078");
  MetricsSite site(address, "text/x", [] { return std::string("sums 1\n"); });
  int asked = 0;
  Request request;
  request.method = "POST";
  request.target = "/dump";
  request.hosts = {"localhost"};
  request.authorizations = {"Bearer 0123456789abcdef"};
  CHECK(site.answer(request).status == 405);  // as any other path
  site.take_dumps("0123456789abcdef", [&asked] {
    asked++;
    return refused(202, "on its way");
  });
  CHECK(site.answer(request).status == 202);
  CHECK(asked == 1);
  request.hosts = {"evil.example"};
  CHECK(site.answer(request).status == 403);
  request.hosts = {"localhost"};
  request.target = "/dump/x";
  CHECK(site.answer(request).status == 405);
  request.target = "/dump";
  request.method = "GET";
  Answer wrong = site.answer(request);
  CHECK(wrong.status == 405);
  CHECK(std::count(wrong.headers.begin(), wrong.headers.end(),
                   std::pair<std::string, std::string>("Allow", "POST")) == 1);
  request.method = "POST";
  request.authorizations = {};
  Answer unknown = site.answer(request);
  CHECK(unknown.status == 401);
  CHECK(std::count(unknown.headers.begin(), unknown.headers.end(),
                   std::pair<std::string, std::string>("WWW-Authenticate", "Bearer")) == 1);
  request.authorizations = {"Bearer 0123456789abcdeg"};
  CHECK(site.answer(request).status == 401);
  CHECK(asked == 1);
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
