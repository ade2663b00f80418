// What this process may do. It begins with what loading and attaching programs takes: root's
// rights, or capabilities that it was given. Then drop() makes it whoever called it, for good, and
// of the capabilities it keeps those that libraries which are mapped later take: set aside, so that
// nothing is done with them by mistake. A Raised puts some into effect for a moment.
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

Capabilities effective();  // of this thread, as are all here
Capabilities permitted();

// Takes on the user's ids and groups. Safe between fork and exec.
bool become(const User& user);

// What a user may do to files by being that user: root passes over their modes, nobody else does.
Capabilities own_rights();

// While there is one thread: becomes `caller` (nothing: stays who it is) without a way back, with
// its own rights in effect and `kept` set aside. Programs that it might start get nothing of it,
// and it cannot be traced or dumped by its user.
Result<> drop(const std::optional<User>& caller, Capabilities kept);

// This thread will never have others.
void keep_only(Capabilities capabilities);

// Puts capabilities into effect, as far as they are permitted, on this thread, while it lives.
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
