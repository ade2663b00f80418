// What this process may do. It begins with root's rights, or with capabilities that it was given,
// to load and attach programs. Then drop() turns it into its caller for good. It keeps only the
// capabilities that it needs for libraries mapped later, and sets them aside so that nothing uses
// them by mistake. A Raised puts some into effect for a moment.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "util/result.hpp"

namespace cudabpf {

class Capabilities {
 public:
  constexpr Capabilities() = default;
  constexpr Capabilities(std::initializer_list<int> numbers) {
    for (int number : numbers) bits_ |= std::uint64_t{1} << number;
  }
  constexpr bool has(int number) const { return bits_ >> number & 1; }
  constexpr Capabilities operator|(Capabilities other) const { return of(bits_ | other.bits_); }
  constexpr Capabilities operator&(Capabilities other) const { return of(bits_ & other.bits_); }
  constexpr bool operator==(const Capabilities&) const = default;

  static constexpr Capabilities of(std::uint64_t bits) {
    Capabilities result;
    result.bits_ = bits;
    return result;
  }
  constexpr std::uint64_t bits() const { return bits_; }

 private:
  std::uint64_t bits_ = 0;
};

struct User {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string name;
  std::vector<gid_t> groups;  // all of them
};

namespace privileges {

Capabilities effective();  // of this thread, like all capabilities here
Capabilities permitted();

// Assumes the user's ids and groups. Safe between fork and exec.
bool become(const User& user);

// The capabilities over files that come with this user: only root ignores their modes.
Capabilities own_rights();

// To be called while there is one thread: becomes `caller` (nothing: keeps its user) with no way
// back, with that user's rights in effect and `kept` set aside. Programs that this process might
// start inherit none of this, and its user cannot trace or dump it.
Result<> drop(const std::optional<User>& caller, Capabilities kept);

// This thread can never get others back.
void keep_only(Capabilities capabilities);

// While it lives, those of the capabilities that are permitted are in effect on this thread.
class Raised {
 public:
  explicit Raised(Capabilities capabilities);
  ~Raised();
  Raised(const Raised&) = delete;
  Raised& operator=(const Raised&) = delete;

 private:
  Capabilities before_;
};

}  // namespace privileges

}  // namespace cudabpf
