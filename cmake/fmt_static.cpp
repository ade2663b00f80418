// Distributions have {fmt} only as a shared library, but its headers contain all of it. The static
// binary's objects were compiled for the shared library, so they look for its functions. They find
// them here: the compiler keeps every inline function of the headers (FMT_HEADER_ONLY) by
// -fkeep-inline-functions.
#include <fmt/format.h>
