// What a process's handles stand for, as its calls say: the code that it has loaded, its streams,
// and what it does that forbids holding it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cudabpf/event.hpp"
#include "taping/graphs.hpp"

namespace cudabpf::taping {

struct LoadedCode {
  bool library = false;  // by cuLibraryLoadData
  std::uint64_t payload = 0;
};

struct NamedVariable {
  std::string name;
  std::uint64_t address = 0, size = 0;
};

struct KnownStream {
  std::int32_t priority = 0;
  bool non_blocking = false;
};

class Handles {
 public:
  void call(const Call& call);

  const LoadedCode* code(std::uint64_t library_or_module) const;
  // The CUkernel that a CUfunction was made of; or the handle itself.
  std::uint64_t kernel(std::uint64_t function) const;
  // The CUfunctions that were made of a CUkernel.
  std::vector<std::uint64_t> functions(std::uint64_t kernel) const;
  // The libraries in which the program has looked up a kernel of this name.
  std::set<std::uint64_t> libraries_with(const std::string& kernel) const;
  // The library that a module belongs to; or the handle itself.
  std::uint64_t owner(std::uint64_t module) const;
  // Those that the program has asked for.
  std::vector<NamedVariable> variables(std::uint64_t library_or_module) const;
  std::vector<NamedVariable> variables() const;
  const std::map<std::uint64_t, KnownStream>& streams() const { return streams_; }

  const Graphs& graphs() const { return graphs_; }

  // Work is being captured into a graph: nothing may wait for the GPU now.
  bool captures() const { return captures_ > 0; }
  // What the program has done after which the GPU may wait for the program: the functions.
  const std::set<std::string>& waits_for_program() const { return waits_for_program_; }

 private:
  std::map<std::uint64_t, LoadedCode> code_;
  std::map<std::uint64_t, std::uint64_t> kernels_, owners_;
  std::map<std::string, std::set<std::uint64_t>> libraries_with_;  // by a kernel's name
  std::map<std::uint64_t, std::map<std::string, NamedVariable>> variables_;
  std::map<std::uint64_t, KnownStream> streams_;
  Graphs graphs_;
  std::set<std::string> waits_for_program_;
  std::int64_t captures_ = 0;
};

}  // namespace cudabpf::taping
