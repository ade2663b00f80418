// What a receiver of OTLP makes of what is pushed to it.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "util/http/answer_reader.hpp"

namespace cudabpf::push {

enum class Outcome : std::uint8_t {
  accepted,
  partly,   // it has rejected some samples
  busy,     // it may take the next ones
  refused,  // it will not
  failed,   // there was no answer
  count_
};
inline constexpr std::size_t OUTCOMES = static_cast<std::size_t>(Outcome::count_);

constexpr std::string_view to_string(Outcome outcome) {
  constexpr std::array<std::string_view, OUTCOMES> NAMES{"accepted", "partly", "busy", "refused",
                                                         "failed"};
  return NAMES[static_cast<std::size_t>(outcome)];
}

struct Verdict {
  Outcome outcome = Outcome::failed;
  std::string why = {};           // unless it has accepted all
  std::uint64_t rejected = 0;     // samples
  std::chrono::seconds pause{0};  // that it asks for; 0: none

  // What was pushed is where it belongs, and nothing of it will be taken later.
  bool has_arrived() const { return outcome == Outcome::accepted || outcome == Outcome::partly; }
};

Verdict verdict_in(const http::Answer& answer);

}  // namespace cudabpf::push
