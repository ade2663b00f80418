// The columns of the processes in `cudabpf top`: what they show, and how they sort. One table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sink/top/top_model.hpp"

namespace cudabpf {

struct TopColumn {
  enum class Id : std::uint8_t {
    pid,
    name,
    calls,
    launches,
    in_cuda,
    waiting,
    held,
    peak,
    to_gpu,
    from_gpu,
    ioctls,
    errors,
    where,
    total,
    count_
  };
  Id id;
  unsigned spare;  // those with the highest number are left out first; 0: it stays
  std::string_view title;
  std::string_view meaning;
  std::size_t width;  // as wide as its title and the mark that it sorts, and as any cell
  std::string (*cell)(const TopProcess& process, double seconds);
  // By what it sorts: a number, the highest first, or the cell's text.
  double (*number)(const TopProcess& process) = nullptr;
};

std::span<const TopColumn> top_columns();
const TopColumn& top_column(TopColumn::Id id);
// A comes before B, if it sorts by that column; by pid where they are the same there.
bool sorts_before(const TopColumn& column, const TopProcess& a, const TopProcess& b);

}  // namespace cudabpf
