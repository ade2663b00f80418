// What is to be recorded of a libcuda, as the library inside wants to be told.
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
  Library library;  // as the trace tells of it, but for its time
  // struct ci_site[], sealed: it goes to every process that has this library.
  Fd sites;
  std::uint32_t count = 0;
  std::vector<std::string> names;    // the sites' functions
  std::vector<std::string> refused;  // functions that no jump can be written into, with the reason
};

class PlannedLibraries {
 public:
  PlannedLibraries(elf::Reader reader, FunctionNumbers& numbers, FunctionFilter filter)
      : reader_(std::move(reader)), numbers_(numbers), filter_(std::move(filter)) {}

  // Reads a library that has not been planned yet; `named`: by the user. The answer stays valid.
  const PlannedLibrary& of(const Fd& file, const FileId& id, const std::string& path, bool named);

 private:
  PlannedLibrary plan(const Fd& file, const FileId& id, const std::string& path, bool named) const;

  elf::Reader reader_;
  FunctionNumbers& numbers_;
  FunctionFilter filter_;
  std::list<PlannedLibrary> planned_;
};

}  // namespace cudabpf
