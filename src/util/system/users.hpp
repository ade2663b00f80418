// Users and their groups, from the machine's name services, or from /etc if those cannot be used.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "util/system/privileges.hpp"

namespace cudabpf {

class Users {
 public:
  // A program without a loader must not use the name services: the C library would load their
  // modules into it, which were made for another one, and crash.
  static Users of_machine();
  // What passwd and group in this folder say.
  static Users in(std::filesystem::path etc) { return Users(std::move(etc)); }

  std::optional<User> named(const std::string& name) const;
  std::optional<User> numbered(uid_t uid) const;
  // With all groups that a user of this name is in.
  User with_groups(uid_t uid, gid_t gid, std::string name) const;

 private:
  explicit Users(std::optional<std::filesystem::path> etc) : etc_(std::move(etc)) {}
  template <typename Is>
  std::optional<User> in_passwd(Is&& is) const;

  std::optional<std::filesystem::path> etc_;  // none: the name services are used
};

}  // namespace cudabpf
