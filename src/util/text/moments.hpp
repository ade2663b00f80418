// How moments of a recording are written: as the time since it began, or as the time of day.
#pragma once

#include <cstdint>
#include <string>

namespace cudabpf {

class Moments {
 public:
  enum class Zone : std::uint8_t { none, utc, local };  // none: since the beginning

  Moments() = default;
  // `began`: ns since 1970; 0: not known.
  Moments(std::uint64_t began, Zone zone) : began_(began > LATEST ? 0 : began), zone_(zone) {}

  std::uint64_t began() const { return began_; }
  bool are_of_day() const { return zone_ != Zone::none && began_; }
  Zone zone() const { return zone_; }

  // "10.652314 s"; "14:03:22.652314", with the date if it is not that of the beginning.
  std::string at(std::uint64_t ns) const;
  // "2026-11-21 14:03:22 UTC": the beginning, in UTC unless local times are wanted. Empty: not
  // known.
  std::string beginning() const;
  // ns from the midnight before the beginning to the beginning; 0 for times since then.
  std::uint64_t since_midnight() const;

 private:
  static constexpr std::uint64_t LATEST = 9'000'000'000'000'000'000;  // of the year 2255

  std::uint64_t began_ = 0;
  Zone zone_ = Zone::none;
};

// "2026-11-21T14:03:22.123456789Z"
std::string iso_time(std::uint64_t ns_since_1970);

}  // namespace cudabpf
