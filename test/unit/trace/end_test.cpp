#include "trace/end.hpp"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "wrong_values.hpp"

using namespace cudabpf;

namespace {

// With something in each field.
Totals full_totals() {
  Totals totals;
  totals.duration_ns = 1'000'000;
  totals.counts = {10, 2, 3, 4};
  totals.accounts = {20, 19, 1, 19};
  totals.losses[static_cast<std::size_t>(Loss::ring_entry)] = 7;
  totals.losses[static_cast<std::size_t>(Loss::table_full)] = 9;
  totals.kernel_names = {5, 6};
  GpuOperationCounts operations;
  operations.operations = 30;
  operations.joined = 29;
  operations.invalid = 1;
  operations.calls = 31;
  operations.answered = 28;
  for (std::size_t i = 1; i < UNJOINED; i++) operations.unjoined[i] = 100 + i;
  operations.clock_error_ns = 450;
  totals.gpu_operations = operations;
  totals.clocks = {7, 1'760'000'000'000'000'000, 9};
  totals.clock_error = {{-1500, 4000, 12, 0x2001}};
  totals.command_status = 139;
  totals.reason = "command exited";
  return totals;
}

TraceEnd read_again(const FileEnd& end) {
  auto read = end_in(end_line(end));
  REQUIRE(read);
  return *read;
}

void check_same(const Totals& totals, const TraceTotals& read) {
  CHECK(read.duration_ns == totals.duration_ns);
  CHECK(read.calls == totals.counts.calls);
  CHECK(read.unfinished == totals.counts.unfinished);
  CHECK(read.driver_calls.value_or(0) == totals.counts.driver_calls);
  CHECK(read.read_faults.value_or(0) == totals.counts.read_faults);
  std::map<std::string, std::uint64_t> losses;
  for (std::size_t i = 0; i < LOSS_COUNT; i++)
    if (totals.losses[i]) losses[std::string(info(static_cast<Loss>(i)).name)] = totals.losses[i];
  CHECK(read.losses == losses);
}

}  // namespace

TEST_CASE("What the writer says at the end, the reader reads back") {
  FileEnd end;
  end.totals = full_totals();
  end.lines = 12;
  TraceEnd read = read_again(end);
  CHECK(read.part == 0);
  CHECK(read.last);
  CHECK(read.lines == 12);
  check_same(end.totals, read.totals);
  CHECK_FALSE(read.whole);
  CHECK(read.accounts == end.totals.accounts);
  CHECK(read.kernel_names == end.totals.kernel_names);
  CHECK(read.gpu_operations == end.totals.gpu_operations);
  CHECK(read.clocks == TraceClocks{1'760'000'000'000'000'000, 7, 9, {}});
  CHECK(read.clock_error == end.totals.clock_error);
  CHECK(read.command_status == 139);
  CHECK(read.reason == "command exited");

  end.part = {3, 17};
  end.whole = full_totals();
  end.whole->duration_ns = 2'000'000;
  end.totals.counts = {};
  end.totals.losses = {};
  read = read_again(end);
  CHECK(read.part == 3);
  CHECK(read.last);
  check_same(end.totals, read.totals);
  REQUIRE(read.whole);
  check_same(*end.whole, *read.whole);

  end.last = false;
  end.whole = {};
  end.totals.reason = "";
  read = read_again(end);
  CHECK_FALSE(read.last);
  CHECK_FALSE(read.whole);
  CHECK_FALSE(read.accounts);
  CHECK(read.reason == "rotated");

  read = read_again({});
  check_same({}, read.totals);
  CHECK(read.lines == 0);
  CHECK_FALSE(read.gpu_operations);
  CHECK_FALSE(read.command_status);
}

TEST_CASE("What an end has of another type, it does not have") {
  FileEnd end;
  end.part = {3, 17};
  end.totals = full_totals();
  end.whole = full_totals();
  auto whole = nlohmann::json::parse(end_line(end));
  std::size_t seen = 0;
  each_wrong_type(whole, [&](const std::string& what, const auto& wrong, const auto& without) {
    if (what.starts_with("/last = ")) return;  // something else than true: see below
    // These are a status and an offset, if odd ones.
    if (what == "/command_status = -1" || what.starts_with("/clock_error/offset_ns = -")) return;
    INFO(what);
    seen++;
    CHECK(end_in(wrong) == end_in(without));
  });
  CHECK(seen > 300);
}

TEST_CASE("What an end has out of range, it does not have") {
  auto read = [](const char* text) { return end_in(text).value(); };
  CHECK_FALSE(read(R"({"duration_ns":9223372036854775808})").totals.duration_ns);
  CHECK_FALSE(read(R"({"duration_ns":-1})").totals.duration_ns);
  CHECK(read(R"({"duration_ns":9223372036854775807})").totals.duration_ns ==
        9'223'372'036'854'775'807U);
  CHECK_FALSE(read(R"({"command_status":2147483648})").command_status);
  CHECK(read(R"({"command_status":-2147483648})").command_status == -2147483648);
  CHECK(read(R"({"part":4294967296})").part == 0);
  CHECK_FALSE(read(R"({"accounts":{"entered":1,"emitted":1,"dropped":0}})").accounts);
  CHECK(read(R"({"losses":{"a":5,"b":0,"c":-1,"d":"6","e":1.5}})").totals.losses ==
        std::map<std::string, std::uint64_t>{{"a", 5}});
  CHECK_FALSE(read(R"({"gpu_operations":5})").gpu_operations);
  CHECK(read(R"({"gpu_operations":{"operations":-5,"unjoined":7}})").gpu_operations ==
        GpuOperationCounts{});
}

TEST_CASE("An end is a trace's last unless it says otherwise") {
  CHECK(end_in("{}")->last);
  CHECK(end_in(R"({"last":true})")->last);
  for (const char* text : {R"({"last":false})", R"({"last":null})", R"({"last":1})"})
    CHECK_FALSE(end_in(text)->last);
  for (std::string text : {"", "[]", "{", "{\"lines\":1e999}"}) CHECK_FALSE(end_in(text));
}
