// What metrics there are: the ledger's sums, and what cudabpf itself takes, by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engines/engine_reader.hpp"
#include "push/pusher.hpp"
#include "sink/metrics/ledger.hpp"
#include "sink/metrics/metrics_writer.hpp"

namespace cudabpf {

// What cudabpf itself is and takes.
struct OwnFigures {
  std::string version;
  double cpu_seconds = 0;
  std::uint64_t start_ns = 0, now_ns = 0;  // CLOCK_REALTIME
  std::uint64_t memory = 0;                // resident, in bytes
};

struct MetricsPage {
  LedgerPage sums;
  OwnFigures own;
  std::optional<push::Counts> pushes = {};  // nothing: pages are only asked for
  std::vector<engines::Heard> engines = {};
};

void print(const MetricsPage& page, MetricsWriter& to);

}  // namespace cudabpf
