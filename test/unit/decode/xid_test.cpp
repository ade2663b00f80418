#include "cudabpf/xid.hpp"

#include <catch2/catch_test_macros.hpp>

#include "trace/write/event_lines.hpp"

using namespace cudabpf;

TEST_CASE("A GPU's error names the process, where the driver knows it") {
  auto error = describe_xid(31, "0000:0a:00.0", "pid=1234, name=python3, Ch 00000008, MMU Fault\n");
  CHECK(error.xid == 31);
  CHECK(error.pid == 1234);
  CHECK(error.comm == "python3");
  CHECK(error.device == "0000:0a:00.0");
  CHECK(error.message == "Ch 00000008, MMU Fault");
  CHECK(error.meaning.starts_with("memory page fault on the GPU"));

  error = describe_xid(79, "", "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.");
  CHECK_FALSE(error.pid);
  CHECK(error.comm.empty());
  CHECK(error.message == "GPU has fallen off the bus.");
  error = describe_xid(31, "", "channel 0x0000000a, pid=3, name=x");
  CHECK_FALSE(error.pid);  // no prefix
  CHECK(error.message == "channel 0x0000000a, pid=3, name=x");
  error = describe_xid(43, "", "pid='77', name='a b', Ch 1");
  CHECK(error.pid == 77);
  CHECK(error.comm == "a b");
  error = describe_xid(4000000000, "", "");
  CHECK(error.meaning.empty());
  CHECK_FALSE(error.pid);
}

TEST_CASE("The kernel's log reports a GPU's error in a line of its own form") {
  auto error =
      parse_xid("NVRM: Xid (PCI:0000:3b:00): 79, pid=12, name=x, GPU has fallen off the bus.");
  REQUIRE(error);
  CHECK(error->xid == 79);
  CHECK(error->device == "0000:3b:00");
  CHECK(error->pid == 12);
  CHECK(error->message == "GPU has fallen off the bus.");
  error = parse_xid("[  12.5] NVRM: Xid (PCI:0000:3b:00): 13");
  REQUIRE(error);
  CHECK(error->xid == 13);
  CHECK(error->message.empty());
  for (const char* line :
       {"", "NVRM: Xid", "NVRM: Xid (PCI:", "NVRM: Xid (PCI:0000:3b:00)", "NVRM: Xid (PCI:): 3",
        "NVRM: Xid (PCI:0000:3b:00): ", "NVRM: Xid (PCI:0000:3b:00): many", "NVRM: loading",
        "NVRM: Xid (PCI:0000:3b:00): 99999999999"}) {
    CAPTURE(line);
    CHECK_FALSE(parse_xid(line));
  }
}

TEST_CASE("A GPU's error has a line that says what is known") {
  auto error = describe_xid(79, "0000:0a:00.0", "pid=1, name=\"x\", off the bus");
  error.ts = 7;
  CHECK(error_line(error) ==
        R"({"type":"error","op":"xid","name":"Xid 79","ts":7,"xid":79,"meaning":")" +
            std::string(error.meaning) +
            R"(","bus_id":"0000:0a:00.0","pid":1,"comm":"\"x\"","message":"off the bus"})"
            "\n");
  CHECK(
      error_line(describe_xid(4000, "d", "m")) ==
      R"({"type":"error","op":"xid","name":"Xid 4000","ts":0,"xid":4000,"bus_id":"d","message":"m"})"
      "\n");
}
