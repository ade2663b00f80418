#include "collect/tracepoint_fields.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace cudabpf;

TEST_CASE("A tracepoint's fields, by their names") {
  CHECK(
      parse_tracepoint_fields("name: nvidia_dev_xid\n"
                              "ID: 1846\n"
                              "format:\n"
                              "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
                              "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
                              "\n"
                              "\tfield:__data_loc char[] dev;\toffset:8;\tsize:4;\tsigned:0;\n"
                              "\tfield:u32 error_code;\toffset:12;\tsize:4;\tsigned:0;\n"
                              "\tfield:char comm[16];\toffset:65535;\tsize:16;\tsigned:0;\n"
                              "\n"
                              "print fmt: \"Xid: %s: %u\", __get_str(dev), REC->error_code\n") ==
      TracepointFields{{"common_type", 0},
                       {"common_pid", 4},
                       {"dev", 8},
                       {"error_code", 12},
                       {"comm[16]", 65535}});
}

TEST_CASE("What is no line of a format gives no field") {
  for (const char* text :
       {"", "\n", "format:\n", "\tfield:", "\tfield:int a;", "\tfield:int a;\toffset",
        "field:int a;\toffset:8;", "  field:int a;\toffset:8;", "\toffset:8;", ";\toffset:8;"}) {
    CAPTURE(text);
    CHECK(parse_tracepoint_fields(text).empty());
  }
  // Cut off behind what is needed of it.
  CHECK(parse_tracepoint_fields("\tfield:int a;\toffset:8") == TracepointFields{{"a", 8}});
  CHECK(parse_tracepoint_fields("\tfield:int a;\toffset:4;\n\tfield:int b;") ==
        TracepointFields{{"a", 4}});
}
