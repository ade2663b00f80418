#include "serve/route.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace cudabpf::serve;
using To = Route::To;

TEST_CASE("The paths that lead somewhere") {
  CHECK(route_of("/").to == To::list);
  CHECK(route_of("/?a=b").to == To::list);
  CHECK(route_of("/traces.json").to == To::traces);
  Route report = route_of("/report/run%201/t%2Ejsonl?x=/../y");
  CHECK(report.to == To::report);
  CHECK(report.name == "run 1/t.jsonl");
  CHECK(route_of("/report/%c3%28%FF%0a<b>").name == "\xc3(\xff\n<b>");
  CHECK(route_of("/report/%252e%252e").name == "%2e%2e");  // decoded once
}

TEST_CASE("Paths that could lead elsewhere lead nowhere") {
  for (const char* target : {"",
                             "//",
                             "/..",
                             "/./",
                             "/report",
                             "/report/",
                             "/report/..",
                             "/report/%2e%2e",
                             "/report/.%2E/t",
                             "/report/a/../b",
                             "/report/a/b/c",
                             "/report/a/",
                             "/report//a",
                             "/report//etc/passwd",
                             "/report/%2fetc",
                             "/report/a%2Fb",
                             "/report/t%00.jsonl",
                             "/report/%",
                             "/report/%4",
                             "/report/%zz",
                             "/report/%+1",
                             "/report/a%",
                             "/report/./a",
                             "/Report/a",
                             "/traces.json/",
                             "/%74races.json",
                             "report/a",
                             "http://127.0.0.1/",
                             "*",
                             "/report/a/%2e",
                             "/report/a\\..\\%00"})
    CHECK((std::string(target) + " " + std::to_string(static_cast<int>(route_of(target).to))) ==
          std::string(target) + " 0");
}

TEST_CASE("A link leads to the name it was made of") {
  std::string all;
  for (int c = 1; c < 256; c++)
    if (c != '/') all += static_cast<char>(c);
  for (const std::string& name : {std::string("t.jsonl"), std::string("a b/%2e%2e?#.jsonl"), all}) {
    std::string link = link_to_report(name);
    CHECK(link.find_first_of(" \"'<>?#&\\\n") == link.npos);
    CHECK(route_of("/" + link).name == name);
  }
  CHECK(link_to_report("run/t 1.jsonl") == "report/run/t%201.jsonl");
}

TEST_CASE("The token in a query") {
  CHECK(token_in("/?token=abc") == "abc");
  CHECK(token_in("/?a=1&token=abc&b=2") == "abc");
  CHECK(token_in("/?atoken=abc").empty());
  CHECK(token_in("/token=abc").empty());
  CHECK(token_in("/?token=").empty());
  CHECK(token_in("/?&&").empty());
  CHECK(path_in("/traces.json?token=abc") == "/traces.json");
}
