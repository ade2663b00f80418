#include "cli/request/output_pattern.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/request/invoker.hpp"
#include "util/exit_codes.hpp"

namespace cudabpf::cli {

namespace {

// Who has none of several is alone: the same name serves a program with a launcher and without.
constexpr const char* ONLY_RANK = "0";

// A name must not lead elsewhere.
std::string in_name(std::string text) {
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

}  // namespace

std::string rank_in(const std::vector<std::string>& environment) {
  // torchrun and other launchers of PyTorch; Open MPI; MPICH, Intel MPI and srun's PMI; PMIx; srun;
  // MVAPICH.
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID",
                           "MV2_COMM_WORLD_RANK"})
    if (std::string rank = value_in(environment, name); !rank.empty()) return rank;
  return {};
}

Result<std::string> output_path(const std::string& wanted, bool is_folder,
                                const TracedProgram& program, const std::string& timestamp) {
  std::string pattern = wanted.empty() ? "traces/" : wanted;
  if (is_folder && !pattern.ends_with('/')) pattern += '/';
  if (pattern.ends_with('/'))
    pattern += fmt::format("trace_{}_%h{}_%p.jsonl", timestamp, program.rank.empty() ? "" : "_%r");
  std::string path;
  for (std::size_t i = 0; i < pattern.size(); i++) {
    if (pattern[i] != '%') {
      path += pattern[i];
      continue;
    }
    switch (i + 1 < pattern.size() ? pattern[++i] : '\0') {
      case 'p':
        path += program.pid;
        break;
      case 'h':
        path += in_name(program.host);
        break;
      case 'r':
        path += program.rank.empty() ? ONLY_RANK : in_name(program.rank);
        break;
      case '%':
        path += '%';
        break;
      default:
        return Error{fmt::format("CUDABPF_OUTPUT={}: a % stands before p (pid), h (host), r (rank) "
                                 "or %",
                                 wanted),
                     {},
                     exit_code::USAGE};
    }
  }
  return path;
}

}  // namespace cudabpf::cli
