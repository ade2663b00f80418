#include "taping/handles.hpp"

#include <catch2/catch_test_macros.hpp>

#include "support/sample_calls.hpp"

using namespace cudabpf;
using namespace cudabpf::taping;

TEST_CASE("A stream has the flags and the priority that it was made with, until it is destroyed") {
  constexpr std::uint64_t NON_BLOCKING = 1;
  const auto priority = static_cast<std::uint32_t>(-5);
  Handles handles;
  auto after = [&](const char* symbol, std::vector<std::uint64_t> words, std::uint64_t stream) {
    handles.call(SampleCall(symbol, std::move(words), {stream}));
    const KnownStream& made = handles.streams().at(stream);
    return std::pair(made.priority, made.non_blocking);
  };
  CHECK(after("cuStreamCreate", {0, NON_BLOCKING}, 0x51) == std::pair(0, true));
  CHECK(after("cuStreamCreateWithPriority", {0, 0, priority}, 0x52) == std::pair(-5, false));
  CHECK(after("cuGreenCtxStreamCreate", {0, 0x600, NON_BLOCKING, priority}, 0x53) ==
        std::pair(-5, true));
  handles.call(SampleCall("cuStreamDestroy_v2", {0x52}));
  CHECK(handles.streams().size() == 2);
  CHECK_FALSE(handles.streams().contains(0x52));
}

TEST_CASE("Work is captured from the beginning of a capture to its end") {
  Handles handles;
  CHECK_FALSE(handles.captures());
  handles.call(SampleCall("cuStreamBeginCapture_v2_ptsz", {0x51, 0}));
  CHECK(handles.captures());
  handles.call(SampleCall("cuStreamEndCapture_ptsz", {0x51, 0}, {0x6000}));
  CHECK_FALSE(handles.captures());
}
