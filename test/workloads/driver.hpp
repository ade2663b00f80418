// The CUDA driver as a program uses it: opened at run time, with its functions found by name.
#pragma once

#include <string>

#include "../fake_libcuda/types.hpp"

namespace workload {

using namespace fake;  // the types of the driver API

struct DriverOptions {
  std::string library = "libcuda.so.1";
  bool use_dlsym = false;   // else through cuGetProcAddress_v2, as cudart does
  bool per_thread = false;  // a default stream per thread: the _ptsz and _ptds functions
};

struct Driver {
#define CALL(api, symbol, ...) Status (*api)(__VA_ARGS__);
#include "functions.def"
#undef CALL

  // Opens the library and finds every function, or says what is missing and ends the process.
  explicit Driver(const DriverOptions& options);

  // An exported function by its full name; null if there is none.
  void* exported(const char* symbol) const;

 private:
  void* library_;
};

// Ends the process with status 1 and a message if a call failed.
void check(const Driver& driver, Status status, const char* what);

uint64_t monotonic_ns();
void sleep_us(uint64_t microseconds);

}  // namespace workload
