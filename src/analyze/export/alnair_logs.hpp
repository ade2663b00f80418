// The two files that the profiler of Alnair writes (CentaurusInfra/alnair, alnair-profiler/
// profiler-hook-lib): metrics.log, one line per function, and timeline.log, one line per call.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analyze/analysis.hpp"
#include "analyze/export/byte_stream.hpp"
#include "analyze/memory/traced_memory.hpp"

namespace cudabpf::analyze {

class AlnairLogs : public Analysis, private LiveMemory::Listener {
 public:
  AlnairLogs(Names& names, ByteStream& metrics, ByteStream& timeline, Part part = {});

  void line(const Line& line) override;
  void outside(const Line& line) override { memory_.line(line); }
  void finish(const TraceFacts& facts) override;

 private:
  struct Function {
    std::uint64_t count = 0, ns = 0;
  };

  int kind_of_copy(const Line& call) const;

  void allocated(const LiveMemory::Block& block) override;
  void ended(const LiveMemory::Block& block, std::uint64_t, LiveMemory::Ended how) override;
  void freed_unknown(const MemoryCall&) override {}

  const Names& names_;
  Part part_;
  ByteStream& metrics_;
  ByteStream& timeline_;
  TracedMemory memory_;
  std::uint64_t realtime_ = 0;       // at ts 0
  std::uint64_t used_ = 0;           // bytes on the devices, not yet freed
  std::vector<Function> functions_;  // by name
};

}  // namespace cudabpf::analyze
