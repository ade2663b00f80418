#include "cli/request/trace_paths.hpp"

#include <filesystem>
#include <string_view>

#include "util/exit_codes.hpp"

namespace cudabpf::cli {

std::string without_ending(std::string path) {
  for (std::string_view ending : {".zst", ".jsonl"})
    if (path.size() > ending.size() && path.ends_with(ending))
      path.resize(path.size() - ending.size());
  return path;
}

std::string name_of_trace(const std::string& path) {
  if (path == "-") return "trace";
  std::string name = without_ending(std::filesystem::path(path).filename());
  constexpr std::size_t PART = 5;  // ".0001", of a rotated trace
  std::size_t end = name.size() > PART ? name.size() - PART : name.size();
  bool rotated = end < name.size() && name[end] == '.' &&
                 name.find_first_not_of("0123456789", end + 1) == std::string::npos;
  return rotated ? name.substr(0, end) : name;
}

Result<> is_no_trace(const std::string& path, const std::vector<std::string>& traces) {
  for (const std::string& trace : traces) {
    std::error_code ignored;
    if (std::filesystem::equivalent(trace, path, ignored))
      return Error{path + " is the trace itself", "give another path", exit_code::USAGE};
  }
  return ok();
}

}  // namespace cudabpf::cli
