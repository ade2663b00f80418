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
  std::size_t width;  // of its title with the mark for sorting, and of any cell
  std::string (*cell)(const TopProcess& process, double seconds);
  // The number to sort by, the highest first; null: the cell's text.
  double (*number)(const TopProcess& process) = nullptr;
};

std::span<const TopColumn> top_columns();
const TopColumn& top_column(TopColumn::Id id);
// Whether A comes before B, sorted by this column and then by pid.
bool sorts_before(const TopColumn& column, const TopProcess& a, const TopProcess& b);

}  // namespace cudabpf
