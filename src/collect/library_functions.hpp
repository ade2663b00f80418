// Whether a file is the library that its name says, which of its functions are probed, and by which
// plans.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collect/function_numbers.hpp"
#include "collect/probe_plan.hpp"
#include "cudabpf/event.hpp"
#include "cudabpf/function_filter.hpp"
#include "util/elf/elf_contents.hpp"
#include "util/result.hpp"

namespace cudabpf {

// What is read from a library's file.
elf::Wanted contents_wanted(const Api& api);

// Whether a function of this name belongs to the API: cuInit does, curl_easy_init does not.
bool belongs_to(const Api& api, std::string_view name);

// Why a file is not accepted as the API's library; empty if it is. Any process may give any library
// the name libcuda.so.1, by a mount that only it sees, but probes affect all processes that use the
// file. So a file that was found must itself say that it is one; one that the user named need not.
std::string why_refused(const Api& api, const elf::Contents& contents, bool named);

// A place in a library's file, and what is recorded there.
struct PlannedProbe : Plan {
  std::uint64_t offset;
  bool launch;   // it launches a kernel, whose name is read if it is new
  bool tallied;  // its calls are only counted
  // Where in the file the semaphore is, if this is a USDT probe; 0: the probe has none.
  std::optional<std::uint64_t> semaphore = {};
};

// What `library` says if nothing is selected.
inline constexpr std::string_view SELECTS_NOTHING =
    "the profile and patterns select none of its functions";

// The user's mistake: a file that --library names, or functions that do not exist.
Error no_such_library(const std::string& path);
Error nothing_selected(const FunctionFilter& filter);

// One probe for each address of the functions that `filter` selects. Notes in `library` their
// number, or why there are none.
std::vector<PlannedProbe> plan_probes(const Api& api, const elf::Contents& contents, bool named,
                                      const FunctionFilter& filter, FunctionNumbers& numbers,
                                      Library& library);

}  // namespace cudabpf
