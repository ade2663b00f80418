#include "util/system/users.hpp"

#include <grp.h>
#include <pwd.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cstdio>
#include <memory>

namespace cudabpf {

namespace {

constexpr auto CLOSE = [](FILE* file) { std::fclose(file); };
using File = std::unique_ptr<FILE, decltype(CLOSE)>;

File opened(const std::filesystem::path& path) { return File(std::fopen(path.c_str(), "re")); }

bool has_member(const group& entry, const std::string& name) {
  for (char** member = entry.gr_mem; *member; member++)
    if (name == *member) return true;
  return false;
}

}  // namespace

Users Users::of_machine() {
  bool has_loader = getauxval(AT_BASE) != 0;
  return has_loader ? Users(std::nullopt) : in("/etc");
}

template <typename Is>
std::optional<User> Users::in_passwd(Is&& is) const {
  File file = opened(*etc_ / "passwd");
  while (const passwd* entry = file ? ::fgetpwent(file.get()) : nullptr)
    if (is(*entry)) return with_groups(entry->pw_uid, entry->pw_gid, entry->pw_name);
  return std::nullopt;
}

std::optional<User> Users::named(const std::string& name) const {
  if (etc_) return in_passwd([&](const passwd& entry) { return name == entry.pw_name; });
  const passwd* entry = ::getpwnam(name.c_str());
  if (!entry) return std::nullopt;
  return with_groups(entry->pw_uid, entry->pw_gid, entry->pw_name);
}

std::optional<User> Users::numbered(uid_t uid) const {
  if (etc_) return in_passwd([&](const passwd& entry) { return entry.pw_uid == uid; });
  const passwd* entry = ::getpwuid(uid);
  if (!entry) return std::nullopt;
  return with_groups(entry->pw_uid, entry->pw_gid, entry->pw_name);
}

User Users::with_groups(uid_t uid, gid_t gid, std::string name) const {
  User user{uid, gid, std::move(name), {gid}};
  if (etc_) {
    File file = opened(*etc_ / "group");
    while (const group* entry = file ? ::fgetgrent(file.get()) : nullptr)
      if (entry->gr_gid != gid && has_member(*entry, user.name))
        user.groups.push_back(entry->gr_gid);
    return user;
  }
  int count = 0;
  ::getgrouplist(user.name.c_str(), gid, nullptr, &count);
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(count, 0)));
  if (::getgrouplist(user.name.c_str(), gid, groups.data(), &count) > 0) user.groups = groups;
  return user;
}

}  // namespace cudabpf
