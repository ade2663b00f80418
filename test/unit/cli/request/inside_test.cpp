#include "cli/request/inside.hpp"

#include <catch2/catch_test_macros.hpp>

#include "cli/request/invoker.hpp"
#include "support/temporary_folder.hpp"

using namespace cudabpf::cli;
using cudabpf::value_in;
using Strings = std::vector<std::string>;

TEST_CASE("The library is beside the program, or where both are installed") {
  CHECK(inside_library_paths("/opt/x/cudabpf") ==
        Strings{"/opt/x/libcudabpf-inside.so", "/opt/x/../libexec/cudabpf/libcudabpf-inside.so"});
}

TEST_CASE("A library that is missing is built, or installed") {
  TemporaryFolder folder;
  std::string program = folder.path() / "cudabpf";
  CHECK(how_to_get_inside_library(program) ==
        "install it together with cudabpf, or copy it into " + folder.path().string());
  folder.write("CMakeCache.txt", "");
  CHECK(how_to_get_inside_library(program) ==
        "build it: cmake --build " + folder.path().string() + " --target installed");
}

TEST_CASE("The library that had the place is loaded after it") {
  Strings plain = environment_inside({"A=b"}, "/ours.so", "/tmp/listener", {.nvtx = false});
  CHECK(plain ==
        Strings{"A=b", "CUDA_INJECTION64_PATH=/ours.so", "CUDABPF_LISTENER=/tmp/listener"});
  Strings ranges = environment_inside({"NVTX_INJECTION64_PATH=/theirs.so"}, "/ours.so", "/d",
                                      {.libcuda = false});
  CHECK(value_in(ranges, "NVTX_INJECTION64_PATH") == "/ours.so");
  CHECK(value_in(ranges, "CUDABPF_NEXT_NVTX_INJECTION") == "/theirs.so");
  CHECK(value_in(ranges, "CUDA_INJECTION64_PATH").empty());
  Strings with =
      environment_inside({"CUDA_INJECTION64_PATH=/theirs.so", "A=b"}, "/ours.so", "/d", {});
  CHECK(value_in(with, "CUDA_INJECTION64_PATH") == "/ours.so");
  CHECK(value_in(with, "CUDABPF_NEXT_INJECTION") == "/theirs.so");
  // Below another cudabpf the library has the place already.
  Strings again = environment_inside(with, "/ours.so", "/e", {});
  CHECK(value_in(again, "CUDABPF_NEXT_INJECTION") == "/theirs.so");
  CHECK(value_in(again, "CUDABPF_LISTENER") == "/e");
}
