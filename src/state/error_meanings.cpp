#include "state/error_meanings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "util/console/terminal.hpp"

namespace cudabpf {

namespace {

// A `function` of "" matches any.
struct Known {
  std::string_view error, function;
  ErrorMeaning meaning;
};
constexpr ErrorMeaning STICKY = {
    Weight::grave,
    "a kernel that was launched before failed, not this call; every later call in its context "
    "fails with it"};
constexpr ErrorMeaning NOT_CUDAS = {
    Weight::usual, "expected: programs find out this way that memory is not CUDA's",
    "programs find out this way that memory is not CUDA's"};
constexpr std::array<Known, 23> KNOWN = {{
    {"CUDA_ERROR_DEINITIALIZED",
     "",
     {Weight::usual, "expected: the driver had shut down already, because the program was ending",
      "they were called at exit, after the driver had shut down"}},
    {"CUDA_ERROR_INVALID_VALUE", "cuPointerGetAttribute", NOT_CUDAS},
    {"CUDA_ERROR_INVALID_VALUE", "cuPointerGetAttributes", NOT_CUDAS},
    {"CUDA_ERROR_NOT_FOUND",
     "cuGetProcAddress",
     {Weight::usual, "expected: a program asks for a function that this driver does not have",
      "programs ask for functions that a driver does not have"}},
    {"CUDA_ERROR_NO_BINARY_FOR_GPU",
     "cuLibraryGetKernel",
     {Weight::usual,
      "expected: a library, such as NCCL, asks which of its kernels this GPU can run",
      "libraries, such as NCCL, ask which of their kernels a GPU can run"}},
    {"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
     "",
     {Weight::usual, "expected: it was enabled before", "it was enabled before"}},
    {"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "",
     {Weight::usual, "expected: it was registered before", "it was registered before"}},
    {"CUDA_ERROR_NO_DEVICE",
     "",
     {Weight::failure, "there is no GPU, or CUDA_VISIBLE_DEVICES hides it"}},
    {"CUDA_ERROR_ECC_UNCORRECTABLE",
     "",
     {Weight::grave, "the GPU's memory has an error that cannot be corrected"}},
    {"CUDA_ERROR_NVLINK_UNCORRECTABLE",
     "",
     {Weight::grave, "the connection between GPUs has an error that cannot be corrected"}},
    {"CUDA_ERROR_CONTAINED",
     "",
     {Weight::grave,
      "the GPU met an error and contained it; every later call of the process fails with it"}},
    {"CUDA_ERROR_EXTERNAL_DEVICE",
     "",
     {Weight::grave,
      "a device outside of CUDA failed; every later call of the process fails with it"}},
    {"CUDA_ERROR_MPS_CLIENT_TERMINATED",
     "",
     {Weight::grave, "the MPS server ended this client; every later call fails with it"}},
    {"CUDA_ERROR_ILLEGAL_ADDRESS", "", STICKY},
    {"CUDA_ERROR_MISALIGNED_ADDRESS", "", STICKY},
    {"CUDA_ERROR_ILLEGAL_INSTRUCTION", "", STICKY},
    {"CUDA_ERROR_INVALID_ADDRESS_SPACE", "", STICKY},
    {"CUDA_ERROR_INVALID_PC", "", STICKY},
    {"CUDA_ERROR_HARDWARE_STACK_ERROR", "", STICKY},
    {"CUDA_ERROR_LAUNCH_FAILED", "", STICKY},
    {"CUDA_ERROR_LAUNCH_TIMEOUT", "", STICKY},
    {"CUDA_ERROR_ASSERT", "", STICKY},
    {"CUDA_ERROR_TENSOR_MEMORY_LEAK", "", STICKY},
}};

}  // namespace

std::string_view to_string(Weight weight) {
  constexpr std::string_view NAMES[] = {"grave", "failure", "usual"};
  return NAMES[static_cast<std::size_t>(weight)];
}

ErrorMeaning meaning_of(std::string_view function, std::string_view error) {
  for (const Known& known : KNOWN)
    if (known.error == error && (known.function.empty() || known.function == function))
      return known.meaning;
  return {};
}

std::vector<std::string> usual_failures(const std::vector<FailedCalls>& failed) {
  constexpr std::size_t MAX_LISTED = 4;  // functions
  std::vector<std::pair<std::string_view, std::vector<FailedCalls>>> reasons;
  for (const FailedCalls& one : failed) {
    std::string_view reason = meaning_of(one.function, one.error).reason;
    if (reason.empty()) continue;
    auto known = std::find_if(reasons.begin(), reasons.end(),
                              [&](const auto& of) { return of.first == reason; });
    if (known == reasons.end()) known = reasons.insert(known, {reason, {}});
    known->second.push_back(one);
  }
  std::vector<std::string> sentences;
  for (const auto& [reason, calls] : reasons) {
    std::string text;
    std::size_t listed = calls.size() <= MAX_LISTED + 1 ? calls.size() : MAX_LISTED;
    for (std::size_t i = 0; i < listed; i++) {
      bool is_last = i + 1 == calls.size();
      text += fmt::format("{}{} {}",
                          !i        ? ""
                          : is_last ? " and "
                                    : ", ",
                          with_commas(calls[i].count), calls[i].function);
    }
    std::uint64_t others = 0;
    for (std::size_t i = listed; i < calls.size(); i++) others += calls[i].count;
    if (others) text += fmt::format(" and {} others", with_commas(others));
    sentences.push_back(
        fmt::format("{} failed with {}. This is expected: {}.", text, calls.front().error, reason));
  }
  return sentences;
}

}  // namespace cudabpf
