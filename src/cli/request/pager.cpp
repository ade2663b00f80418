#include "cli/request/pager.hpp"

#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "cli/request/invoker.hpp"
#include "cli/request/program_path.hpp"

namespace cudabpf::cli {

namespace {

constexpr const char* SHELL = "/bin/sh";
// Ends on a text that fits, shows colours, and leaves the text on the terminal.
constexpr const char* AS_LESS_SHOWS = "LESS=FRX";
constexpr const char* ALWAYS_UTF8 = "LESSCHARSET=utf-8";  // as pages are, in any locale

bool has(const std::vector<std::string>& environment, const std::string& name) {
  return std::any_of(environment.begin(), environment.end(),
                     [&](const std::string& variable) { return variable.starts_with(name + "="); });
}

std::optional<Pager> own_pager(std::vector<std::string> environment) {
  std::string command = "less";
  for (const char* name : {"PAGER", "CUDABPF_PAGER"})
    if (has(environment, name)) command = value_in(environment, name);
  if (command.empty() || command == "cat") return std::nullopt;
  if (command == "less" && find_program(command, environment).empty()) return std::nullopt;
  if (!has(environment, "LESS")) environment.emplace_back(AS_LESS_SHOWS);
  if (!has(environment, "LESSCHARSET")) environment.emplace_back(ALWAYS_UTF8);
  return Pager{{SHELL, "-c", command}, std::move(environment)};
}

// less itself, which knows LESSSECURE; another program may have its name.
std::optional<std::string> securable_less() {
  for (const char* path : {"/usr/bin/less", "/bin/less"}) {
    std::error_code missing;
    auto file = std::filesystem::canonical(path, missing);
    if (!missing && file.filename() == "less") return file.string();
  }
  return std::nullopt;
}

std::optional<Pager> secure_pager(const std::vector<std::string>& environment) {
  for (const char* name : {"CUDABPF_PAGER", "PAGER"})
    if (has(environment, name)) {  // a wish for none is granted
      std::string wish = value_in(environment, name);
      if (wish.empty() || wish == "cat") return std::nullopt;
      break;
    }
  auto less = securable_less();
  if (!less) return std::nullopt;
  return Pager{{*less},
               {"LESSSECURE=1", "LESSHISTFILE=-", AS_LESS_SHOWS, ALWAYS_UTF8, "PATH=/usr/bin:/bin",
                "TERM=" + value_in(environment, "TERM")}};
}

}  // namespace

Rights rights_of(unsigned user, const std::vector<std::string>& environment,
                 const std::string& login) {
  constexpr const char* NOBODY_LOGGED_IN = "4294967295";
  std::string own = std::to_string(user);
  for (const std::string& who : {value_in(environment, "SUDO_UID"), login})
    if (!who.empty() && who != NOBODY_LOGGED_IN && who != own) return Rights::lent;
  return user == 0 ? Rights::lent : Rights::own;
}

Rights rights_of_this() {
  if (getauxval(AT_SECURE)) return Rights::raised;
  std::string login;
  std::ifstream("/proc/self/loginuid") >> login;
  return rights_of(::geteuid(), own_environment(), login);
}

std::optional<Pager> pager_for(const std::vector<std::string>& environment, Rights rights) {
  switch (rights) {
    case Rights::own:
      return own_pager(environment);
    case Rights::lent:
      return secure_pager(environment);
    case Rights::raised:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace cudabpf::cli
