#include <dlfcn.h>

#include "replay/gpu/driver.hpp"

namespace cudabpf::replay {

Result<Driver> Driver::load() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* why = dlerror();
    return Error{why ? why : "libcuda.so.1 could not be opened",
                 "replay needs a GPU and NVIDIA's driver; --list does not"};
  }
  Driver driver;
  const char* missing = nullptr;
#define DRIVER_FUNCTION(member, exported, parameters)                              \
  driver.member.address =                                                          \
      reinterpret_cast<decltype(driver.member.address)>(dlsym(library, exported)); \
  if (!driver.member) missing = exported;
#define NEWER_DRIVER_FUNCTION(member, exported, parameters) \
  driver.member.address =                                   \
      reinterpret_cast<decltype(driver.member.address)>(dlsym(library, exported));
#include "replay/gpu/driver_functions.def"
#undef DRIVER_FUNCTION
  if (missing)
    return Error{std::string("the driver has no ") + missing,
                 "replay needs a driver of CUDA 12 or later"};
  return driver;
}

}  // namespace cudabpf::replay
