// What an error's name does not say: what it means for the program, and how grave it is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cudabpf {

// The gravest first.
enum class Weight : std::uint8_t {
  grave,    // of the GPU or the context: everything later fails, too
  failure,  // of the call
  usual,    // sound programs get it, too
};
std::string_view to_string(Weight weight);

struct ErrorMeaning {
  Weight weight = Weight::failure;
  std::string_view text = {};    // may be empty
  std::string_view reason = {};  // why it is usual: "they came after the driver had shut down"
};
ErrorMeaning meaning_of(std::string_view function, std::string_view error);
inline bool is_usual(std::string_view function, std::string_view error) {
  return meaning_of(function, error).weight == Weight::usual;
}

// Calls of a function that failed with one error.
struct FailedCalls {
  std::string_view function, error;
  std::uint64_t count = 0;
};
// A sentence for each reason why it is normal that some of them failed: "16 cuLibraryUnload and 3
// cuDevicePrimaryCtxRelease failed with CUDA_ERROR_DEINITIALIZED. This is expected: they …"
std::vector<std::string> usual_failures(const std::vector<FailedCalls>& failed);

}  // namespace cudabpf
