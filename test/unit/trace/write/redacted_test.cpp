#include "trace/write/redacted.hpp"

#include <catch2/catch_test_macros.hpp>

#include "support/capture_sink.hpp"
#include "support/sample_calls.hpp"
#include "trace/header.hpp"
#include "trace/write/event_lines.hpp"

using namespace cudabpf;

namespace {

// Everything that reveals people and places has this word in these tests.
constexpr const char* SECRET = "secret";

bool reveals(const std::string& line) { return line.find(SECRET) != std::string::npos; }

Library library_at(const char* path) {
  Library library;
  library.path = path;
  library.error = std::string(path) + ": gone";
  return library;
}

}  // namespace

TEST_CASE("A redacted header has neither command, host nor folders") {
  Session session;
  session.host = "secret-host";
  session.command = {"python", "/home/secret/serve.py"};
  session.gpus.push_back({0, "NVIDIA H200", "GPU-secret", ""});
  session.libraries.push_back(library_at("/home/secret/libcuda.so.580.1"));
  CHECK(reveals(header_line(session, {})));

  CaptureSink seen;
  RedactedSink(seen).begin(session);
  std::string line = header_line(*seen.session, {});
  CHECK(!reveals(line));
  CHECK(line.find("\"redacted\":true") != std::string::npos);
  CHECK(seen.session->libraries[0].path == "libcuda.so.580.1");
  CHECK(seen.session->gpus[0].name == "NVIDIA H200");
}

TEST_CASE("A redacted process has its program's name and its end") {
  Process process;
  process.op = Process::Op::exit;
  process.pid = 42;
  process.uid = 1234;
  process.comm = "python";
  process.cmdline = process.exe = process.cgroup = process.unit = SECRET;
  process.container_runtime = "docker";
  process.container_id = process.pod = SECRET;
  process.signal = 9;
  CHECK(reveals(process_line(process)));

  CaptureSink seen;
  RedactedSink(seen).process(process);
  CHECK(process_line(seen.processes.at(0)) ==
        R"({"type":"process","op":"exit","ts":0,"pid":42,"ppid":0,"comm":"python","signal":9})"
        "\n");
}

TEST_CASE("A redacted call leaves out only the name of a file") {
  auto shown = [](const char* function, const char* text) {
    SampleCall call(function);
    call.text = text;
    call.has_text = true;
    CaptureSink seen;
    RedactedSink(seen).call(call);
    return std::string(seen.calls.at(0).text);
  };
  CHECK(shown("cuModuleLoad", "/home/secret/a.cubin") == "(redacted)");
  CHECK(shown("cuLibraryLoadFromFile", "/home/secret/a.cubin") == "(redacted)");
  CHECK(shown("cuModuleGetFunction", "attention") == "attention");
}

TEST_CASE("What a redacted loss or library was about is left out") {
  CaptureSink seen;
  RedactedSink redacted(seen);
  LossEvent loss;
  loss.detail = SECRET;
  redacted.lost(loss);
  CHECK(!reveals(lost_line(seen.losses.at(0))));
  redacted.library(library_at("/home/secret/libcuda.so.1"));
  CHECK(!reveals(library_line(seen.libraries.at(0))));
}
