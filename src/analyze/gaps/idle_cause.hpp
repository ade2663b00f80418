// Why a GPU had nothing to do. An idle time ends with work, and the call that issued this work
// shows why it did not begin before. Until the call returned, the host was late; after that, the
// work was queued.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace cudabpf::analyze {

enum class IdleCause : std::uint8_t {
  calls,       // the issuing thread was in CUDA calls, the issuing one included
  others,      // it was in none, and another thread of the process was: no wait, and no copy
               // to the host
  outside,     // neither, between CUDA calls
  pause,       // no thread made such a call at all for more than PAUSE
  latency,     // issued, and the GPU began within LATENCY
  dependency,  // issued, after something else that had to come first
  queued,      // issued, and began later than LATENCY, for no known reason
  unknown,     // the issuing call, or what its thread did then, is not known
};
inline constexpr std::size_t IDLE_CAUSES = 8;

// ns. A GPU takes a few µs to begin what is queued, however early it was issued.
inline constexpr std::uint64_t LATENCY = 10'000;
inline constexpr std::uint64_t PAUSE = 1'000'000;

struct IdleCauseInfo {
  std::string_view id;    // for programs
  std::string_view text;  // for people
};
inline constexpr std::array<IdleCauseInfo, IDLE_CAUSES> IDLE_CAUSE_INFOS{{
    {"host_in_calls", "host in CUDA calls"},
    {"host_other_threads", "other threads in CUDA calls"},
    {"host_outside_calls", "host between CUDA calls"},
    {"host_pause", "host made no CUDA call"},
    {"launch_latency", "launch latency of the GPU"},
    {"dependency", "waited for other work"},
    {"queued", "queued, reason not seen"},
    {"not_known", "not known"},
}};
inline const IdleCauseInfo& info_of(IdleCause cause) {
  return IDLE_CAUSE_INFOS[static_cast<std::size_t>(cause)];
}

// ns by cause.
struct IdleTimes {
  std::array<std::uint64_t, IDLE_CAUSES> of{};

  std::uint64_t& operator[](IdleCause cause) { return of[static_cast<std::size_t>(cause)]; }
  std::uint64_t operator[](IdleCause cause) const { return of[static_cast<std::size_t>(cause)]; }
  void add(const IdleTimes& other) {
    for (std::size_t i = 0; i < IDLE_CAUSES; i++) of[i] += other.of[i];
  }
  std::uint64_t total() const {
    std::uint64_t total = 0;
    for (std::uint64_t time : of) total += time;
    return total;
  }
  // What the host could have avoided by issuing sooner.
  std::uint64_t host() const {
    return (*this)[IdleCause::calls] + (*this)[IdleCause::others] + (*this)[IdleCause::outside] +
           (*this)[IdleCause::pause];
  }
  std::uint64_t queue() const {
    return (*this)[IdleCause::latency] + (*this)[IdleCause::dependency] +
           (*this)[IdleCause::queued];
  }
  IdleCause main() const {
    std::size_t most = 0;
    for (std::size_t i = 1; i < IDLE_CAUSES; i++)
      if (of[i] > of[most]) most = i;
    return static_cast<IdleCause>(most);
  }
};

}  // namespace cudabpf::analyze
