#include "cli/request/invoker.hpp"

#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>

#include "util/exit_codes.hpp"
#include "util/system/users.hpp"
#include "util/whole_number.hpp"

namespace cudabpf::cli {

namespace {

std::string name_of(const std::string& variable) { return variable.substr(0, variable.find('=')); }

// What sudo sets for the command it starts: not the user's own choice.
bool set_by_sudo(const std::string& name) {
  constexpr const char* NAMES[] = {"HOME", "LOGNAME", "MAIL", "PATH", "SHELL", "TERM", "USER"};
  return name.starts_with("SUDO_") ||
         std::find(std::begin(NAMES), std::end(NAMES), name) != std::end(NAMES);
}

// The variables that sudo sets to describe its call.
constexpr const char* SUDO_VARIABLES[] = {"SUDO_UID", "SUDO_GID", "SUDO_USER", "SUDO_COMMAND"};

bool have_the_same(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::all_of(std::begin(SUDO_VARIABLES), std::end(SUDO_VARIABLES),
                     [&](const char* name) { return value_in(a, name) == value_in(b, name); });
}

// The user's environment, with variables given to sudo: `sudo NAME=value cudabpf`.
std::vector<std::string> joined(std::vector<std::string> users,
                                const std::vector<std::string>& own) {
  for (const std::string& variable : own) {
    std::string name = name_of(variable);
    if (set_by_sudo(name)) continue;
    std::erase_if(users, [&](const std::string& v) { return name_of(v) == name; });
    users.push_back(variable);
  }
  return users;
}

}  // namespace

Caller caller_of(const Procfs& procfs, pid_t pid, const std::vector<std::string>& own) {
  Caller caller{std::nullopt, own};
  auto uid = whole_number<unsigned>(value_in(own, "SUDO_UID"));
  auto gid = whole_number<unsigned>(value_in(own, "SUDO_GID"));
  if (!uid || !gid) return caller;
  // Looks up to the sudo that set this process's SUDO_ variables for that user. A user who became
  // root through it may since have called another sudo, or become another user, who then became
  // root in another way: what is left of the first call must not matter then.
  bool of_this_call = true;
  for (pid_t ancestor : procfs.ancestors(pid)) {
    ProcessIdentity process = procfs.process(ancestor);
    bool theirs = process.uid == *uid;
    if (process.comm == "sudo" && theirs) {
      auto users = procfs.environment(ancestor);
      if (of_this_call && !users.empty()) caller.environment = joined(std::move(users), own);
      break;
    }
    if (process.uid && *process.uid != 0) {
      if (!theirs) return caller;
      break;  // the sudo did not stay as a parent
    }
    of_this_call &= have_the_same(procfs.environment(ancestor), own);
  }
  if (*uid != 0)
    caller.user = Users::of_machine().with_groups(*uid, *gid, value_in(own, "SUDO_USER"));
  return caller;
}

const Caller& caller() {
  static const Caller CALLER = geteuid() == 0 ? caller_of(Procfs(), getpid(), own_environment())
                                              : Caller{std::nullopt, own_environment()};
  return CALLER;
}

// The dynamic linker removes LD_LIBRARY_PATH and others from a program with file capabilities. A
// command should have them all the same, and the kernel has kept them.
std::vector<std::string> own_environment() {
  std::vector<std::string> environment;
  if (getauxval(AT_SECURE)) environment = Procfs().environment(getpid());
  if (environment.empty())
    for (char** variable = environ; *variable; variable++) environment.emplace_back(*variable);
  return environment;
}

Result<User> find_user(const std::string& name) {
  auto uid = whole_number<unsigned>(name);
  Users users = Users::of_machine();
  auto user = uid ? users.numbered(*uid) : users.named(name);
  if (!user)
    return Error{"--user " + name + ": there is no such user", "give a login name or a uid",
                 exit_code::USAGE};
  return *user;
}

}  // namespace cudabpf::cli
