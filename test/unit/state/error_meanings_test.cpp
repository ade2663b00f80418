#include "state/error_meanings.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace cudabpf;

namespace {

FailedCalls calls_failed(std::uint64_t count, std::string_view function, std::string_view error) {
  return {function, error, count};
}

}  // namespace

TEST_CASE("Failures that are usual are reported in a sentence for each reason") {
  auto sentences = usual_failures({calls_failed(16, "cuLibraryUnload", "CUDA_ERROR_DEINITIALIZED"),
                                   calls_failed(9, "cuMemAlloc", "CUDA_ERROR_OUT_OF_MEMORY"),
                                   calls_failed(2, "cuGetProcAddress", "CUDA_ERROR_NOT_FOUND"),
                                   calls_failed(1, "cuModuleGetFunction", "CUDA_ERROR_NOT_FOUND"),
                                   calls_failed(3, "cuModuleUnload", "CUDA_ERROR_DEINITIALIZED")});
  REQUIRE(sentences.size() == 2);
  CHECK(sentences[0] ==
        "16 cuLibraryUnload and 3 cuModuleUnload failed with CUDA_ERROR_DEINITIALIZED. This is "
        "expected: they were called at exit, after the driver had shut down.");
  CHECK(sentences[1] ==
        "2 cuGetProcAddress failed with CUDA_ERROR_NOT_FOUND. This is expected: programs ask for "
        "functions that a driver does not have.");
  CHECK(usual_failures({calls_failed(9, "cuMemAlloc", "CUDA_ERROR_OUT_OF_MEMORY")}).empty());
}

TEST_CASE("If many functions fail alike, the first few are named") {
  std::vector<FailedCalls> all;
  for (const char* name : {"a", "b", "c", "d", "e"})
    all.push_back(calls_failed(1000, name, "CUDA_ERROR_DEINITIALIZED"));
  CHECK(
      usual_failures(all)[0].starts_with("1,000 a, 1,000 b, 1,000 c, 1,000 d and 1,000 e failed"));
  all.push_back(calls_failed(5, "f", "CUDA_ERROR_DEINITIALIZED"));
  CHECK(usual_failures(all)[0].starts_with("1,000 a, 1,000 b, 1,000 c, 1,000 d and 1,005 others "));
}

TEST_CASE("What is usual has a reason, and nothing else has") {
  for (const char* function : {"cuPointerGetAttribute", "cuGetProcAddress", "cuMemHostRegister"})
    for (const char* error :
         {"CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_NOT_FOUND", "CUDA_ERROR_DEINITIALIZED",
          "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
          "CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_NO_DEVICE", "CUDA_ERROR_LAUNCH_FAILED"}) {
      ErrorMeaning meaning = meaning_of(function, error);
      CHECK((meaning.weight == Weight::usual) == !meaning.reason.empty());
    }
}
