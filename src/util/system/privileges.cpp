#include "util/system/privileges.hpp"

#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace cudabpf::privileges {

namespace {

struct Sets {
  Capabilities effective, permitted, inheritable;
};

constexpr int HALF = 32;  // the kernel takes the sets in halves

Capabilities joined(std::uint32_t low, std::uint32_t high) {
  return Capabilities::of(low | static_cast<std::uint64_t>(high) << HALF);
}

Sets sets() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> data{};
  syscall(SYS_capget, &header, data.data());
  return {joined(data[0].effective, data[1].effective),
          joined(data[0].permitted, data[1].permitted),
          joined(data[0].inheritable, data[1].inheritable)};
}

bool set(const Sets& sets) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> data{};
  for (std::size_t i = 0; i < data.size(); i++) {
    auto half = [&](Capabilities of) {
      return static_cast<std::uint32_t>(of.bits() >> (HALF * i));
    };
    data[i] = {half(sets.effective), half(sets.permitted), half(sets.inheritable)};
  }
  return syscall(SYS_capset, &header, data.data()) == 0;
}

// Needs CAP_SETPCAP. A process without it gains nothing from programs that it starts, either: see
// PR_SET_NO_NEW_PRIVS.
void empty_bounding_set() {
  for (int number = 0; prctl(PR_CAPBSET_READ, number, 0, 0, 0) >= 0; number++)
    prctl(PR_CAPBSET_DROP, number, 0, 0, 0);
}

}  // namespace

Capabilities effective() { return sets().effective; }
Capabilities permitted() { return sets().permitted; }

bool become(const User& user) {
  return setgroups(user.groups.size(), user.groups.data()) == 0 &&
         setresgid(user.gid, user.gid, user.gid) == 0 &&
         setresuid(user.uid, user.uid, user.uid) == 0;
}

Capabilities own_rights() {
  if (geteuid() != 0) return {};
  return {CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER};
}

Result<> drop(const std::optional<User>& caller, Capabilities kept) {
  auto failed = [] { return errno_error("giving up root's rights"); };
  empty_bounding_set();
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failed();
  if (caller) {
    if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0 || !become(*caller)) return failed();
    prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0);
  }
  Capabilities had = permitted();
  if (!set({had & own_rights(), had & (kept | own_rights()), {}})) return failed();
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return failed();
  return ok();
}

void keep_only(Capabilities capabilities) {
  Sets now = sets();
  set({now.effective & capabilities, now.permitted & capabilities, {}});
}

Raised::Raised(Capabilities capabilities) {
  Sets now = sets();
  before_ = now.effective;
  now.effective = now.effective | (capabilities & now.permitted);
  if (now.effective != before_) set(now);
}

Raised::~Raised() {
  int why = errno;  // the caller may still need it
  Sets now = sets();
  if (now.effective != before_) set({before_, now.permitted, now.inheritable});
  errno = why;
}

}  // namespace cudabpf::privileges
