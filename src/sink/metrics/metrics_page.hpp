// What a scrape gets: the ledger's sums as Prometheus' text.
#pragma once

#include <cstdint>
#include <string>

#include "sink/metrics/ledger.hpp"

namespace cudabpf {

// What cudabpf itself is and takes.
struct OwnFigures {
  std::string version;
  double cpu_seconds = 0, start_seconds = 0;  // since 1970
  std::uint64_t memory = 0;                   // resident, in bytes
};

std::string metrics_page(const LedgerPage& page, const OwnFigures& own);

}  // namespace cudabpf
