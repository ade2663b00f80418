#include "util/system/cpu_list.hpp"

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>

using namespace cudabpf;

TEST_CASE("Lists of CPUs are read up to where they stop making sense") {
  using List = std::vector<int>;
  CHECK(parse_cpu_list("0") == List{0});
  CHECK(parse_cpu_list("0-3,8\n") == List{0, 1, 2, 3, 8});
  CHECK(parse_cpu_list("1,4-5") == List{1, 4, 5});
  CHECK(parse_cpu_list("").empty());
  CHECK(parse_cpu_list("x").empty());
  CHECK(parse_cpu_list("2-") == List{});
  CHECK(parse_cpu_list("2,") == List{2});
  CHECK(parse_cpu_list("5-3").empty());
  CHECK(parse_cpu_list("0-99999999").empty());
  CHECK(parse_cpu_list("99999999999999999999").empty());
  CHECK(online_cpus().size() == static_cast<std::size_t>(sysconf(_SC_NPROCESSORS_ONLN)));
}
