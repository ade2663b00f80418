// What to record of a library, in the form that the library inside takes.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "collect/function_numbers.hpp"
#include "collect/libraries.hpp"
#include "cudabpf/event.hpp"
#include "cudabpf/function_filter.hpp"
#include "cudabpf/inside.h"
#include "util/elf/elf_reader.hpp"
#include "util/system/fd.hpp"

namespace cudabpf {

struct PlannedLibrary {
  FileId id;
  const Api* api = nullptr;
  Library library;  // as in the trace, without its time
  // struct ci_site[], sealed: it goes to every process that has this library.
  Fd sites;
  std::uint32_t count = 0;
  std::vector<abi::ci_site> listed;  // until they are in that file
  std::vector<std::string> names;    // the sites' functions
  std::vector<std::string> refused;  // functions that no jump can be written into, with the reason
};

class PlannedLibraries {
 public:
  // `taped`: what calls were given is kept for a capture. `stacks`: which calls are recorded with
  // their Python stacks, or these alone.
  PlannedLibraries(FunctionNumbers& numbers, FunctionFilter filter, bool taped,
                   abi::ci_stack stacks)
      : numbers_(numbers), filter_(std::move(filter)), taped_(taped), stacks_(stacks) {}

  // What is read of a library's file.
  static elf::Wanted contents_wanted(const Api& api);

  // Null: it has not been planned. Both answers stay valid until the next library is planned.
  const PlannedLibrary* find(const Api& api, const elf::Reading::Taken& file) const;
  // `named`: by the user. An error: this process lacks the descriptors or the memory.
  Result<const PlannedLibrary*> plan(const Api& api, const elf::Reading::Taken& file,
                                     const Result<elf::Contents>& contents, bool named);

 private:
  PlannedLibrary planned_from(const Api& api, const elf::Reading::Taken& file,
                              const Result<elf::Contents>& contents, bool named);

  FunctionNumbers& numbers_;
  FunctionFilter filter_;
  const bool taped_;
  const abi::ci_stack stacks_;
  std::list<PlannedLibrary> planned_;
};

}  // namespace cudabpf
