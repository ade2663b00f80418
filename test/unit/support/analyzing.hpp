// A small trace, written by hand, to show to an analysis.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <string>

#include "analyze/analysis.hpp"
#include "analyze/derived/derived_fields.hpp"
#include "trace/read/line_parser.hpp"

namespace cudabpf::analyze {

// Reads the lines of `text`, JSON objects without the header, and gives them to `each`. What lines
// point to, such as a graph's content, lives as long as what is returned.
template <typename Each>
std::unique_ptr<DerivedFields> each_line(LineParser& parser, const std::string& text, Each&& each) {
  Line line;
  auto derived = std::make_unique<DerivedFields>(parser.names());
  std::uint64_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    std::string one = text.substr(at, end - at) + std::string(LineParser::PADDING, '\n');
    at = end + 1;
    line.number = ++number;
    if (!parser.parse({one.data(), one.size() - LineParser::PADDING}, line))
      FAIL(
          "no line of a trace: " << one);  // checks that pass are slow, and there may be many lines
    derived->fill_in(line);
    each(line);
  }
  return derived;
}

// Lines of calls, one after the other.
struct Trace {
  std::string text;
  int ids = 0;
  int pid = 1, tid = 1;
  std::uint64_t now = 0;  // µs; every call takes one, and there is one between two calls

  // `rest`: "name":"cuMemAlloc",…
  Trace& call(const std::string& type, const std::string& op, const std::string& rest,
              int ret = 0) {
    text += R"({"id":)" + std::to_string(++ids) + R"(,"type":")" + type + R"(","op":")" + op +
            R"(","ts":)" + std::to_string(now * 1000) + R"(,"duration_us":1.000,"pid":)" +
            std::to_string(pid) + R"(,"tid":)" + std::to_string(tid) + R"(,"ret":)" +
            std::to_string(ret) + "," + rest + "}\n";
    now += 2;
    return *this;
  }
  Trace& alloc(int size, const std::string& at, const std::string& kind = "device") {
    return call("memory", "alloc",
                R"("name":"cuMemAlloc","size":)" + std::to_string(size) + R"(,"ptr":")" + at +
                    R"(","kind":")" + kind + "\"");
  }
  Trace& free(const std::string& at, const std::string& kind = "device", int ret = 0) {
    return call("memory", "free",
                R"("name":"cuMemFree","ptr":")" + at + R"(","kind":")" + kind + "\"", ret);
  }
  Trace& vmm(const std::string& op, const std::string& name, const std::string& rest) {
    return call("memory", op, R"("name":")" + name + R"(","kind":"vmm",)" + rest);
  }
  Trace& context(const std::string& name, const std::string& rest) {
    return call("context", "any", R"("name":")" + name + "\"," + rest);
  }
  Trace& line(const std::string& json) {
    text += json + "\n";
    return *this;
  }
  Trace& process(const std::string& op) {
    return line(R"({"type":"process","op":")" + op + R"(","ts":)" + std::to_string(now * 1000) +
                R"(,"pid":)" + std::to_string(pid) + "}");
  }
};

}  // namespace cudabpf::analyze
