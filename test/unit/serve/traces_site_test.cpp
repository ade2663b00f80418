#include "serve/traces_site.hpp"

#include <fmt/format.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <ctime>
#include <thread>
#include <vector>

#include "support/temporary_folder.hpp"
#include "util/system/clock.hpp"

using namespace cudabpf;
using namespace cudabpf::serve;
using Catch::Matchers::ContainsSubstring;
using namespace std::chrono_literals;

namespace {

const std::string HEADER =
    R"({"type":"trace","format":"cudabpf-trace","format_version":"2.0","command":["python3","a b"],)"
    R"("clocks":{"realtime_ns":1795312154132456711}})"
    "\n";
const std::string CALL =
    R"({"id":1,"type":"kernel","op":"launch","name":"cuLaunchKernel","ts":1000,"duration_us":1.000,)"
    R"("pid":1,"tid":1,"ret":0,"kernel":"k"})"
    "\n";
const std::string END = R"({"type":"end","ts":9000,"duration_ns":9000,"calls":1})"
                        "\n";

// The header of a trace that began just now, so that its last line is as old as its file.
std::string header_now(const std::string& rest = {}) {
  return fmt::format(R"({{"type":"trace","format":"cudabpf-trace","format_version":"2.0",)"
                     R"("clocks":{{"realtime_ns":{}}}{}}})"
                     "\n",
                     now_ns(CLOCK_REALTIME), rest);
}

// A folder that is served at 127.0.0.1:8077.
struct Served {
  explicit Served(std::string token = {})
      : open(std::move(*Folder::open(folder.path()))), token_(std::move(token)) {}

  Answer ask(const std::string& target, const std::string& tag = {}) {
    Request request;
    request.method = "GET";
    request.target = target;
    request.hosts = {"127.0.0.1:8077"};
    request.if_none_match = tag;
    request.is_wanted = [] { return true; };
    return site.answer(request);
  }
  analyze::Json list() { return analyze::Json::parse(*ask("/traces.json").body); }
  // Once the folder was looked at again, which is some time after a change, this holds.
  template <typename Holds>
  void until(Holds holds) {
    for (int i = 0; i < 3000 && !holds(); i++) std::this_thread::sleep_for(20ms);
    CHECK(holds());
  }
  // Once its figures were read.
  analyze::Json read(const std::string& name, const char* state) {
    for (int i = 0; i < 3000; i++) {
      analyze::Json all = list();
      for (const auto& trace : all["traces"])
        if (trace["name"] == name && trace["state"] == state) return trace;
      std::this_thread::sleep_for(20ms);
    }
    FAIL(name << " does not become " << state << ": " << list().dump());
    return {};
  }

  TemporaryFolder folder;
  Folder open;
  Address address = *Address::parse("127.0.0.1:8077");
  std::string token_;
  TracesSite site{open, address, token_};
};

std::string header_of(const Answer& answer, const std::string& name) {
  for (const auto& [known, value] : answer.headers)
    if (known == name) return value;
  return {};
}

}  // namespace

TEST_CASE("The list says what each trace holds, and what its state is") {
  Served served;
  served.folder.write("whole.jsonl", HEADER + CALL + END);
  served.folder.write("run/open.jsonl", header_now() + CALL);
  served.folder.write("none.jsonl", "{\"a\":1}\n");
  auto whole = served.read("whole.jsonl", "ended");
  CHECK(whole["program"] == "python3 a b");
  CHECK(whole["report"] == "report/whole.jsonl");
  CHECK(whole["summary"]["calls"] == 1);
  CHECK(whole["summary"]["launched"] == 1);
  CHECK(whole["trace"]["duration_us"] == 9);
  CHECK(whole["trace"]["complete"] == true);
  CHECK(whole["trace"]["started"] == "2026-11-22T01:49:14.132456711Z");
  auto unread = served.read("none.jsonl", "unreadable");
  CHECK_THAT(unread["error"].get<std::string>(), ContainsSubstring("is not a cudabpf trace"));
  auto running = served.read("run/open.jsonl", "running");
  CHECK(running["summary"]["calls"] == 1);

  served.folder.write("run/open.jsonl", header_now() + CALL + CALL + END);
  CHECK(served.read("run/open.jsonl", "ended")["summary"]["calls"] == 2);
  std::filesystem::last_write_time(served.folder.write("run/open.jsonl", HEADER + CALL),
                                   std::filesystem::file_time_type::clock::now() - 1h);
  served.read("run/open.jsonl", "cut_off");
  std::filesystem::remove(served.folder.path() / "run/open.jsonl");
  served.until([&] { return served.list()["traces"].size() == 2; });
}

TEST_CASE("A trace that was cut off is so from the moment in which it is copied") {
  Served served;
  served.folder.write("copied.jsonl", HEADER + CALL);  // it was taken long before its file's time
  CHECK(served.read("copied.jsonl", "cut_off")["trace"]["complete"] == false);
  CHECK(served.ask("/report/copied.jsonl").status == 200);
}

TEST_CASE("The list has what headers say before it has figures") {
  Served served;
  served.folder.write("t.jsonl", header_now(R"(,"host":"node-7","gpus":[{"index":0,"name":"H200"},)"
                                            R"({"index":1,"name":"H200"}],"command":["./app"])"));
  auto listed = served.read("t.jsonl", "running");
  CHECK(listed["host"] == "node-7");
  CHECK(listed["gpus"] == "2 × H200");
  CHECK(listed["program"] == "./app");
  CHECK(listed["started"] == listed["trace"]["started"]);
}

TEST_CASE("Files are parts of one trace if they say so, not if they have numbers in their names") {
  Served served;
  served.folder.write("bench.2024.jsonl", HEADER + CALL + END);
  served.folder.write("bench.2025.jsonl", HEADER + CALL + CALL + END);
  std::string one = header_now(R"(,"part":1)"), two = one;
  two.replace(two.find("\"part\":1"), 8, "\"part\":2");
  served.folder.write("t.0001.jsonl",
                      one + CALL + R"({"type":"end","part":1,"last":false})" + "\n");
  served.folder.write("t.0002.jsonl", two + CALL + END);
  std::string other = header_now(R"(,"part":3)");  // of a recorder that began again
  served.folder.write("t.0003.jsonl", other + CALL + END);
  CHECK(served.read("bench.2024.jsonl", "ended")["summary"]["calls"] == 1);
  CHECK(served.read("bench.2025.jsonl", "ended")["summary"]["calls"] == 2);
  CHECK(served.read("t.0003.jsonl", "ended")["files"] == 1);
  CHECK(served.read("t.0001.jsonl", "ended")["files"] == 2);
  CHECK(served.list()["traces"].size() == 4);
  CHECK(served.ask("/report/bench.2025.jsonl").status == 200);
}

TEST_CASE("A report is not made again because a minute has gone by") {
  using Clock = std::filesystem::file_time_type::clock;
  Served served;
  auto written = Clock::now() - 58s;
  std::filesystem::last_write_time(served.folder.write("t.jsonl", HEADER + CALL + END), written);
  std::filesystem::last_write_time(served.folder.write("open.jsonl", header_now() + CALL), written);
  Answer first = served.ask("/report/t.jsonl"), open = served.ask("/report/open.jsonl");
  while (Clock::now() - written <= 60s) std::this_thread::sleep_for(50ms);
  CHECK(served.ask("/report/t.jsonl", header_of(first, "ETag")).status == 304);
  CHECK(served.ask("/report/t.jsonl").body == first.body);
  // That recording goes on is no longer so.
  Answer now = served.ask("/report/open.jsonl", header_of(open, "ETag"));
  CHECK(now.status == 200);
  CHECK(header_of(now, "ETag") != header_of(open, "ETag"));
}

TEST_CASE("A report is made of the trace as it is, and not twice of the same") {
  Served served;
  served.folder.write("t.jsonl", HEADER + CALL + END);
  Answer first = served.ask("/report/t.jsonl");
  REQUIRE(first.status == 200);
  CHECK_THAT(*first.body, ContainsSubstring("<title>t.jsonl"));
  CHECK_THAT(header_of(first, "Content-Security-Policy"),
             ContainsSubstring("script-src 'sha256-") && ContainsSubstring("frame-ancestors"));
  CHECK(header_of(first, "X-Content-Type-Options") == "nosniff");
  Answer again = served.ask("/report/t.jsonl");
  CHECK(again.body == first.body);  // the very same
  std::string tag = header_of(first, "ETag");
  Answer known = served.ask("/report/t.jsonl", tag);
  CHECK(known.status == 304);
  CHECK(known.body == nullptr);
  CHECK(header_of(known, "ETag") == tag);
  served.folder.write("t.jsonl", HEADER + CALL + CALL + END);
  served.until([&] { return header_of(served.ask("/report/t.jsonl", tag), "ETag") != tag; });
  Answer other = served.ask("/report/t.jsonl", tag);
  CHECK(other.status == 200);
  CHECK(header_of(other, "ETag") != tag);

  served.folder.write("none.jsonl", "{\"a\":1}\n");
  served.until([&] { return served.ask("/report/none.jsonl").status == 422; });
  std::filesystem::remove(served.folder.path() / "t.jsonl");
  served.until([&] { return served.ask("/report/t.jsonl", tag).status == 404; });
}

TEST_CASE("Reports that are still being sent are bounded in number") {
  Served served;
  auto name = [](std::size_t i) { return "t" + std::to_string(i) + ".jsonl"; };
  auto ask = [&](std::size_t i) { return served.ask("/report/" + name(i)); };
  const std::string trace = HEADER + CALL + END;
  for (std::size_t i = 0; i <= Reports::MAX_PAGES; i++) served.folder.write(name(i), trace);
  std::vector<Answer> sending;
  for (std::size_t i = 0; i < Reports::MAX_PAGES; i++) {
    sending.push_back(ask(i));
    REQUIRE(sending.back().status == 200);
  }
  CHECK(ask(Reports::MAX_PAGES).status == 503);
  CHECK(ask(Reports::MAX_PAGES - 1).status == 200);  // is made already
  sending.front() = {};
  CHECK(ask(Reports::MAX_PAGES).status == 200);
}

TEST_CASE("No client that has gone away, or that comes at the end, waits for a report") {
  Served served;
  served.folder.write("t.jsonl", HEADER + CALL + END);
  Request request{"GET", "/report/t.jsonl", {"localhost"}, {}, {}, [] { return false; }};
  CHECK(served.site.answer(request).status == 503);
  served.site.end();
  Answer ended = served.ask("/report/t.jsonl");
  CHECK(ended.status == 503);
  CHECK(header_of(ended, "Retry-After") == "5");
}

TEST_CASE("What is refused") {
  Served served;
  auto status = [&](const std::string& method, const std::vector<std::string>& hosts) {
    Request request{method, "/", hosts, {}, {}, [] { return true; }};
    return served.site.answer(request).status;
  };
  CHECK(status("GET", {"localhost:8077"}) == 200);
  CHECK(status("HEAD", {"127.0.0.1:8077"}) == 200);
  CHECK(status("POST", {"localhost"}) == 405);
  CHECK(status("get", {"localhost"}) == 405);
  CHECK(status("GET", {"example.org"}) == 403);
  CHECK(status("GET", {}) == 400);
  CHECK(status("GET", {"localhost", "localhost"}) == 400);
  CHECK(served.ask("/report/%2e%2e").status == 404);
  CHECK(served.ask("/none").status == 404);
}

TEST_CASE("With a token, only clients that know it are answered") {
  Served served(std::string(32, 'a'));
  CHECK(served.ask("/").status == 401);
  CHECK(served.ask("/traces.json").status == 401);
  CHECK(served.ask("/?token=" + std::string(32, 'b')).status == 401);
  Answer kept = served.ask("/traces.json?token=" + std::string(32, 'a'));
  CHECK(kept.status == 303);
  CHECK(header_of(kept, "Location") == "/traces.json");
  CHECK(header_of(kept, "Cache-Control") == "no-store");
  CHECK(header_of(kept, "Set-Cookie") ==
        "cudabpf_token_8077=" + std::string(32, 'a') + "; Path=/; HttpOnly; SameSite=Lax");
  CHECK(header_of(served.ask("//example.org?token=" + std::string(32, 'a')), "Location") == "/");
  Request request{"GET", "/", {"localhost:9000"}, "cudabpf_token_9000=" + std::string(32, 'a'),
                  {},    {}};
  CHECK(served.site.answer(request).status == 200);
  request.cookies =
      "cudabpf_token_9000=" + std::string(32, 'b') + "; cudabpf_token_8077=" + std::string(32, 'a');
  CHECK(served.site.answer(request).status == 401);
}
