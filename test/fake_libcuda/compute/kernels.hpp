// The kernels that a simulated GPU can run, by name, and the images that hold them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "../types.hpp"
#include "compute.hpp"

namespace fake {

struct Parameter {
  uint16_t offset, size;
};

struct KernelRun {
  const unsigned char* parameters;
  const uint32_t* grid;
  const uint32_t* block;
  DevicePtr variable;  // of its image, if it uses one

  template <typename T>
  T parameter(uint32_t offset) const {
    T value;
    __builtin_memcpy(&value, parameters + offset, sizeof value);
    return value;
  }
};

struct Kernel {
  const char* name;
  std::vector<Parameter> parameters;
  Status (*run)(const KernelRun& run);
  const char* variable = nullptr;  // __device__ or __constant__
  bool needs_cluster = false;
};

// Null: it does nothing. Every kernel may have shared memory of 48 KiB, and more if its attribute
// for that allows it.
const Kernel* find_kernel(const char* name);

struct Launch {
  Handle function;
  const uint32_t* grid;
  const uint32_t* block;
  uint32_t shared;
  void* const* parameters;  // or
  void* const* extra;
  bool has_cluster = false;
};
// What is wrong with it, by the kernel's own limits. Hold state_mutex.
Status check_launch(const Launch& launch);
// Parameters are read now, as they are by the driver. Hold state_mutex.
Action run_action(const Launch& launch);

// They lie in one buffer; `pointers`: where each does. Empty: the kernel is not known. Hold
// state_mutex.
std::vector<unsigned char> parameters_of(const Launch& launch, std::vector<void*>& pointers);

// ----- images

struct Variable {
  std::string name;
  std::vector<unsigned char> content;
};

struct ImageKernel {
  std::string name;
  std::string does;  // the name of the kernel that it runs
};

struct ImageContent {
  std::vector<ImageKernel> kernels;
  std::vector<Variable> variables;
};
// The image's, if it is one that the simulated GPU can run: a cubin with a section of the type
// below, by itself, in a fat binary or behind a wrapper of one, or PTX. Each line of the section,
// and each comment `//fake` of the PTX, is `kernel NAME [DOES]` or `variable NAME HEX`. PTX that
// was not written for it has its entries.
constexpr uint32_t kImageSection = 0x7000fa4e;
std::optional<ImageContent> content_of(const void* image);

}  // namespace fake
