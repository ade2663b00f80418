// What an iteration waited for at each moment, from its end back to its beginning: a kernel, a
// copy, the GPU's latency or the host. Making anything else faster does not make it shorter.
//
// The walk goes back from the work that ended last. Work began when the last of three things had
// happened: the work before it in its queue was done, the work that its stream had to wait for was
// done, or its call was made. Before that call, the host thread worked since its last wait; and
// that wait ended because of the work that ended last before it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trace/read/line.hpp"

namespace cudabpf::analyze {

struct PathOperation {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t call = 0, issued = 0;  // 0: not known
  std::uint64_t depends = 0;           // on the work of this call; 0: on none
  std::uint32_t queue = 0;
  Name name;
  bool communicates = false;
};

struct PathWait {  // of the host thread, for the GPU
  std::uint64_t begin = 0, end = 0;
};

struct CriticalPath {
  struct OfName {
    Name name;
    std::uint64_t time = 0, count = 0;
  };
  std::uint64_t begin = 0, end = 0;
  std::vector<OfName> operations;   // the longest first
  std::uint64_t working = 0;        // all of them
  std::uint64_t communication = 0;  // of that, collectives
  std::uint64_t latency = 0;        // between work, and from calls to their work
  std::uint64_t host = 0;

  std::uint64_t time() const { return end - begin; }
};

// `operations` in the order of their beginnings, `waits` in that of their ends.
CriticalPath critical_path(std::span<const PathOperation> operations,
                           std::span<const PathWait> waits, std::uint64_t begin, std::uint64_t end);

}  // namespace cudabpf::analyze
