// The true number of calls of every function, in DIR/counts.PID.tsv (FAKE_CUDA_COUNTS=DIR): one
// line a function, `symbol<TAB>count` with the count as 16 digits. The file is mapped and changed
// in place by every call, so it is right however the process ends, SIGKILL too. A program that
// replaces itself by exec goes on in the same file; a forked child begins its own at zero.
#pragma once

#include <cstdint>

namespace fake {

void restart_counts();            // for this process; called at load and after fork
uint64_t count_call(int symbol);  // the how manieth call of it this is, from 1

}  // namespace fake
