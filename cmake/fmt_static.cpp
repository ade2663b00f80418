// Distributions have {fmt} as a shared library alone, and all of it in its headers too. The objects
// of the static binary are those that are linked with the shared one: they look for its functions
// here, where the compiler keeps every inline function (-fkeep-inline-functions) of the headers
// (FMT_HEADER_ONLY).
#include <fmt/format.h>
