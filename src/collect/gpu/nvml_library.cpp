#include <dlfcn.h>

#include "collect/gpu/nvml.hpp"

namespace cudabpf::nvml {

cudabpf::Result<Functions> load() {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* why = dlerror();
    return Error{why ? why : "libnvidia-ml.so.1 could not be opened"};
  }
  Functions functions;
#define NVML_FUNCTION(member, name, parameters) \
  functions.member = reinterpret_cast<decltype(functions.member)>(dlsym(library, name));
#include "collect/gpu/nvml_functions.def"
#undef NVML_FUNCTION
  if (!functions.init || !functions.shutdown || !functions.count || !functions.handle)
    return Error{"libnvidia-ml.so.1 lacks functions that every version of NVML has"};
  return functions;
}

}  // namespace cudabpf::nvml
