#include "analyze/questions/kernel_classes.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>

#include "sample_kernels.hpp"

using namespace cudabpf::analyze;

TEST_CASE("What a kernel does is told from its name") {
  for (const SampleKernel& sample : SAMPLE_KERNELS) {
    CAPTURE(sample.name);
    CHECK(to_string(class_of_kernel(sample.name)) == to_string(sample.kernel_class));
  }
}

TEST_CASE("Names that are none") {
  CHECK(class_of_kernel("") == KernelClass::other);
  CHECK(class_of_kernel(std::string(1 << 20, '<')) == KernelClass::other);
  CHECK(class_of_kernel("_Z") == KernelClass::other);
  CHECK(class_of_kernel("\xff\x01") == KernelClass::other);
}
