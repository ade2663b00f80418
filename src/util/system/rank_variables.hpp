// What launchers of parallel programs put into the environment of each process: its rank, and how
// many processes there are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cudabpf {

inline constexpr std::string_view RANK_VARIABLES[] = {"RANK", "LOCAL_RANK", "WORLD_SIZE",
                                                      "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"};

// Those that are set to a number, in that order.
using RankVariables = std::vector<std::pair<std::string_view, std::uint32_t>>;
RankVariables rank_variables(const std::vector<std::string>& environment);

}  // namespace cudabpf
