#include "state/kernel_classes.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <string>

using namespace cudabpf;

TEST_CASE("A kernel's class is known from its name") {
  std::ifstream samples(TEST_DIR "/unit/analyze/questions/sample_kernels.tsv");
  int kernels = 0;
  for (std::string line; std::getline(samples, line);) {
    if (line.starts_with('#')) continue;
    CAPTURE(line);
    auto tab = line.find('\t');
    REQUIRE(tab != line.npos);
    CHECK(to_string(class_of_kernel(line.substr(tab + 1))) == line.substr(0, tab));
    kernels++;
  }
  CHECK(kernels == 148);
}

TEST_CASE("Names that are not kernels'") {
  CHECK(class_of_kernel("") == KernelClass::other);
  CHECK(class_of_kernel(std::string(1 << 20, '<')) == KernelClass::other);
  CHECK(class_of_kernel("_Z") == KernelClass::other);
  CHECK(class_of_kernel("\xff\x01") == KernelClass::other);
}
