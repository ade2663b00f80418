#include "sink/top/top_columns.hpp"

#include <tuple>

#include "sink/top/top_figures.hpp"
#include "util/console/terminal.hpp"

namespace cudabpf {

namespace {

using Id = TopColumn::Id;
using One = const TopProcess&;

std::string copied_cell(const CopiedBytes& copied, double seconds) {
  if (!copied.count) return {};
  return human_bytes(static_cast<std::uint64_t>(static_cast<double>(copied.bytes) / seconds));
}

std::string count_cell(std::uint64_t count) { return count ? brief_count(count) : ""; }
double as_number(std::uint64_t number) { return static_cast<double>(number); }

constexpr TopColumn COLUMNS[] = {
    {Id::pid, 0, "PID", "process id; (others) has none", 7,
     [](One one, double) { return one.pid ? std::to_string(one.pid) : std::string("-"); },
     [](One one) { return -as_number(one.pid); }},
    {Id::name, 0, "NAME", "the process's name", 12,
     [](One one, double) { return one.name + (one.ended ? " (ended)" : ""); }},
    {Id::calls, 0, "CALLS/S", "calls of CUDA's driver API a second", 8,
     [](One one, double seconds) { return rate_text(one.figures.calls, seconds); },
     [](One one) { return as_number(one.figures.calls); }},
    {Id::launches, 2, "LAUNCH/S", "launches of kernels and graphs a second", 9,
     [](One one, double seconds) { return rate_text(one.figures.launches, seconds); },
     [](One one) { return as_number(one.figures.launches); }},
    {Id::in_cuda, 0, "CUDA%", "time in CUDA, of all threads", 6,
     [](One one, double seconds) { return percent_text(one.figures.time_ns, seconds); },
     [](One one) { return as_number(one.figures.time_ns); }},
    {Id::waiting, 4, "WAIT%", "time in calls that synchronise", 6,
     [](One one, double seconds) { return percent_text(one.figures.waiting_ns, seconds); },
     [](One one) { return as_number(one.figures.waiting_ns); }},
    {Id::held, 1, "HELD", "memory held, except host memory; ?: not known", 8,
     [](One one, double) { return held_text(one, one.held); },
     [](One one) { return as_number(one.held); }},
    {Id::peak, 6, "PEAK", "the most memory held", 8,
     [](One one, double) { return held_text(one, one.most_held); },
     [](One one) { return as_number(one.most_held); }},
    {Id::to_gpu, 7, "TO GPU/S", "bytes copied to GPUs a second", 9,
     [](One one, double seconds) { return copied_cell(copied_to_gpu(one.figures), seconds); },
     [](One one) { return as_number(copied_to_gpu(one.figures).bytes); }},
    {Id::from_gpu, 8, "FROM GPU/S", "bytes copied from GPUs a second", 11,
     [](One one, double seconds) { return copied_cell(copied_from_gpu(one.figures), seconds); },
     [](One one) { return as_number(copied_from_gpu(one.figures).bytes); }},
    {Id::ioctls, 5, "IOCTL/S", "requests to the NVIDIA driver a second (--kernel)", 8,
     [](One one, double seconds) { return rate_text(one.figures.driver_calls, seconds); },
     [](One one) { return as_number(one.figures.driver_calls); }},
    {Id::errors, 3, "ERRORS", "calls that failed", 7,
     [](One one, double) { return count_cell(one.figures.failed); },
     [](One one) { return as_number(one.figures.failed); }},
    {Id::where, 9, "WHERE", "pod or container", 16, [](One one, double) { return place_of(one); }},
    {Id::total, 10, "TOTAL", "calls since watching began", 8,
     [](One one, double) { return brief_count(one.calls_in_all); },
     [](One one) { return as_number(one.calls_in_all); }},
};

}  // namespace

std::span<const TopColumn> top_columns() { return COLUMNS; }
const TopColumn& top_column(Id id) { return COLUMNS[static_cast<std::size_t>(id)]; }

bool sorts_before(const TopColumn& column, const TopProcess& a, const TopProcess& b) {
  if (column.number)
    return std::pair(-column.number(a), a.pid) < std::pair(-column.number(b), b.pid);
  return std::pair(column.cell(a, 1), a.pid) < std::pair(column.cell(b, 1), b.pid);
}

}  // namespace cudabpf
