// The true number of calls of every function, in DIR/counts.PID.tsv (FAKE_CUDA_COUNTS=DIR): one
// line per function, `symbol<TAB>count`, with the count as 16 digits. The file is mapped, and every
// call changes it in place, so it is right however the process ends, even by SIGKILL. A program
// that replaces itself by exec goes on in the same file; a forked child begins its own at zero. A
// second copy of this library in the process has counts.PID.2.tsv, and so on.
//
// In the same way unseen.PID.tsv has the calls that a library which cuInit loads cannot have seen,
// and doubtful.PID.tsv those that began while it was being loaded.
#pragma once

#include <cstdint>

#include "injection.hpp"

namespace fake {

void restart_counts();  // for this process; called at load and after fork
// Counts this call of it; the first is 1.
uint64_t count_call(int symbol, Injection injection);

}  // namespace fake
