// What an error's name does not say: what it means for the program, and how grave it is.
#pragma once

#include <cstdint>
#include <string_view>

namespace cudabpf::analyze {

// The gravest first.
enum class Weight : std::uint8_t {
  grave,    // of the GPU or the context: everything later fails, too
  failure,  // of the call
  usual,    // sound programs get it, too
};
std::string_view to_string(Weight weight);

struct ErrorMeaning {
  Weight weight = Weight::failure;
  std::string_view text;  // may be empty
};
ErrorMeaning meaning_of(std::string_view function, std::string_view error);

}  // namespace cudabpf::analyze
