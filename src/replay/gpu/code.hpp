// The capture's code, loaded: kernels, and variables where they are here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bundle/folder.hpp"
#include "replay/gpu/driver.hpp"
#include "replay/progress.hpp"
#include "replay/tape.hpp"

namespace cudabpf::replay {

class GpuCode {
 public:
  struct Kernel {
    Handle handle = nullptr;
    std::string unusable;  // why it cannot be run here
  };
  struct Variable {
    const bundle::Variable* captured = nullptr;
    DevicePtr at = 0;
  };

  GpuCode(const Driver& driver, Progress& progress) : driver_(&driver), progress_(&progress) {}

  // Loads what the tape uses, into the current context. What cannot be loaded makes kernels
  // unusable.
  Result<> load(const bundle::Folder& folder, const Tape& tape, int device);
  // Puts the kernel that a file with a cubin, a fat binary or PTX has in the place of those of this
  // name: its own of the same name, or its only one.
  Result<> replace(const Manifest& manifest, const std::string& name, const std::string& file);
  // Puts into variables what they held before the iteration. `data` is the folder's file.
  Result<> restore_variables(std::string_view data);

  const Kernel& kernel(std::uint32_t number) const { return kernels_[number]; }
  const std::vector<Variable>& variables() const { return variables_; }
  // Where the bytes are here that the program had at this address: variables are elsewhere, all
  // other memory is where it was.
  DevicePtr here(std::uint64_t address, std::uint64_t size) const;
  // Whether the address is in no variable, or in one that is here.
  bool has(std::uint64_t address) const;
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Module {
    Handle handle = nullptr;
    bool is_library = false;
    std::string unusable;
  };

  Result<Handle> function_in(Handle module, const std::string& name, const std::string& file);
  void move_variables(const bundle::Module& captured, Handle module);
  Module loaded(const bundle::Folder& folder, const bundle::Module& module);
  void place_variables(const bundle::Module& captured, const Module& module);
  Kernel found(const bundle::Kernel& captured, const Module& module, int device);

  const Driver* driver_;
  Progress* progress_;
  std::vector<Kernel> kernels_;
  std::vector<Variable> variables_;
  // Those of the program that are not here.
  std::vector<const bundle::Variable*> absent_;
  std::vector<std::string> images_;  // the driver may read them later
  std::vector<std::string> notes_;
};

}  // namespace cudabpf::replay
