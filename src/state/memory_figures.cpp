#include "state/memory_figures.hpp"

#include "util/console/terminal.hpp"

namespace cudabpf {

std::vector<std::string> cells_of(const MemoryFigures& figures) {
  return {human_count(figures.allocations), human_bytes(figures.allocated),
          human_bytes(figures.freed), human_bytes(figures.peak), human_bytes(figures.held)};
}

}  // namespace cudabpf
