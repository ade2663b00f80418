#include "trace/read/handles.hpp"

#include <catch2/catch_test_macros.hpp>

using cudabpf::analyze::handle_in;

TEST_CASE("A handle is found by its key, however the trace was written") {
  CHECK(handle_in(R"({"hStream":"0x12","hEvent":"0xabc"})", "hEvent") == 0xabc);
  CHECK(handle_in("{\"hStream\": \"0x12\", \"hEvent\" :\t\"0xabc\"}", "hEvent") == 0xabc);
  CHECK(handle_in(R"({"name":"hEvent","hEvent":"0x7"})", "hEvent") == 7);
  for (auto none :
       {"", R"({"hEvent":7})", R"({"hEvent":"7"})", R"({"hEvent")", R"({"hEvents":"0x7"})"})
    CHECK(handle_in(none, "hEvent") == 0);
}
