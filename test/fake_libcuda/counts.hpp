// The true number of calls of every function, in DIR/counts.PID.tsv (FAKE_CUDA_COUNTS=DIR): one
// line per function, `symbol<TAB>count`, with the count as 16 digits. The file is mapped, and every
// call changes it in place, so it is right however the process ends, even by SIGKILL. A program
// that replaces itself by exec goes on in the same file; a forked child begins its own at zero.
#pragma once

#include <cstdint>

namespace fake {

void restart_counts();            // for this process; called at load and after fork
uint64_t count_call(int symbol);  // counts this call of it; the first is 1

}  // namespace fake
