// What `cudabpf doctor` found, and how it is shown: the verdict first, then what decides it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "util/page/page.hpp"

namespace cudabpf::cli {

enum class Verdict { yes, no, unknown };
std::string_view to_string(Verdict verdict);

// Findings that are shown together where all is well.
struct FindingKind {
  std::string_view one, many;
};
inline constexpr FindingKind FEATURE = {"feature", "features"}, KEEPS = {"keeps", "keeps"};
inline constexpr const char* LIBCUDA = "libcuda";
inline constexpr const char* INSIDE = "run --inside";

struct Finding {
  enum class Need {
    required,  // without it nothing is traced
    target,    // what there is to trace
    node,      // for metrics of a whole node
    optional   // without it a trace is poorer
  };
  Need need;
  std::string name;
  Verdict verdict;
  std::string what;
  std::string advice = {};  // what to do if it does not work
  const FindingKind* kind = nullptr;

  std::string subject() const;  // with its kind
};

// Whether everything that is required is there.
bool can_trace(const std::vector<Finding>& findings);
// Whether commands can be recorded inside their processes.
bool can_record_inside(const std::vector<Finding>& findings);

// As one page. `utf8`: the terminal shows more than ASCII.
void add_diagnosis(Page& page, const std::vector<Finding>& findings, bool utf8);

}  // namespace cudabpf::cli
