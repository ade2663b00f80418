#include "collect/package_folders.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collect/linker_folders.hpp"
#include "cudabpf/api.hpp"

namespace cudabpf {

namespace {

// "/usr" of "/usr/bin/python3.12"
std::string prefix_of(const std::string& program) {
  std::size_t bin = program.rfind("/bin/");
  return program.starts_with('/') && bin != program.npos ? program.substr(0, bin) : std::string();
}

// "python3.12" of "/usr/bin/python3.12"; empty: the program is no Python.
std::string version_of(const std::string& program) {
  std::string name = program.substr(program.rfind('/') + 1);
  constexpr std::string_view PYTHON = "python3.";
  bool is_version = name.starts_with(PYTHON) && name.size() > PYTHON.size() &&
                    name.find_first_not_of("0123456789", PYTHON.size()) == name.npos;
  return is_version ? name : std::string();
}

}  // namespace

std::vector<std::string> package_folders(const ProcessIdentity& process,
                                         const std::vector<std::string>& environment) {
  std::string version = version_of(process.exe);
  if (version.empty()) return {};
  std::vector<std::string> prefixes;
  auto add = [&](std::string prefix) {
    if (prefix.starts_with('/') &&
        std::find(prefixes.begin(), prefixes.end(), prefix) == prefixes.end())
      prefixes.push_back(std::move(prefix));
  };
  // An environment's Python is a link to another's, and its packages are beside the link, which
  // PATH may have led to.
  if (!process.args.empty()) add(prefix_of(process.args[0]));
  constexpr std::size_t MAX_PREFIXES = 16;  // PATH may name any number
  for (const std::string& folder : folders_of(value_in(environment, "PATH")))
    if (folder.ends_with("/bin") && prefixes.size() < MAX_PREFIXES) add(prefix_of(folder + "/"));
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) add(value_in(environment, name));
  add(prefix_of(process.exe));
  add("/usr/local");
  std::string home = value_in(environment, "HOME");
  if (!home.empty()) add(home + "/.local");

  std::vector<std::string> folders;
  for (const std::string& prefix : prefixes)
    for (const char* packages : {"site-packages", "dist-packages"})
      for (const Api& api : APIS)
        for (const std::string& package : folders_of(std::string(api.package)))
          if (std::string folder =
                  fmt::format("{}/lib/{}/{}/{}", prefix, version, packages, package);
              std::ranges::find(folders, folder) == folders.end())
            folders.push_back(std::move(folder));
  return folders;
}

}  // namespace cudabpf
