#include "cli/invoker.hpp"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "util/exit_codes.hpp"

namespace cudabpf::cli {

namespace {

std::optional<unsigned> number(const char* text) {
  if (!text) return std::nullopt;
  std::string_view digits(text);
  unsigned value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::string name_of(const std::string& variable) { return variable.substr(0, variable.find('=')); }

// What sudo sets for the command it starts: not the user's own choice.
bool set_by_sudo(const std::string& name) {
  constexpr const char* NAMES[] = {"HOME", "LOGNAME", "MAIL", "PATH", "SHELL", "TERM", "USER"};
  return name.starts_with("SUDO_") ||
         std::find(std::begin(NAMES), std::end(NAMES), name) != std::end(NAMES);
}

std::vector<std::string> own_environment() {
  std::vector<std::string> environment;
  for (char** variable = environ; *variable; variable++) environment.emplace_back(*variable);
  return environment;
}

}  // namespace

std::optional<User> invoking_user() {
  auto uid = number(std::getenv("SUDO_UID"));
  auto gid = number(std::getenv("SUDO_GID"));
  if (!uid || !gid || geteuid() != 0) return std::nullopt;
  const char* name = std::getenv("SUDO_USER");
  return User{*uid, *gid, name ? name : ""};
}

std::optional<Owner> invoking_user_as_owner() {
  auto user = invoking_user();
  if (!user) return std::nullopt;
  return Owner{user->uid, user->gid};
}

Result<User> find_user(const std::string& name) {
  auto uid = number(name.c_str());
  const passwd* entry = uid ? getpwuid(*uid) : getpwnam(name.c_str());
  if (!entry)
    return Error{"--user " + name + ": there is no such user", "give a login name or a uid",
                 exit_code::USAGE};
  return User{entry->pw_uid, entry->pw_gid, entry->pw_name};
}

std::string value_in(const std::vector<std::string>& environment, const std::string& name) {
  for (const std::string& variable : environment)
    if (variable.starts_with(name + "=")) return variable.substr(name.size() + 1);
  return {};
}

std::vector<std::string> invoking_environment(const Procfs& procfs) {
  std::vector<std::string> own = own_environment();
  if (!invoking_user()) return own;
  std::vector<std::string> environment;
  for (pid_t ancestor : procfs.ancestors(getpid()))
    if (procfs.process(ancestor).comm == "sudo") environment = procfs.environment(ancestor);
  if (environment.empty()) return own;
  for (const std::string& variable : own) {
    std::string name = name_of(variable);
    if (set_by_sudo(name)) continue;
    std::erase_if(environment, [&](const std::string& v) { return name_of(v) == name; });
    environment.push_back(variable);
  }
  return environment;
}

}  // namespace cudabpf::cli
