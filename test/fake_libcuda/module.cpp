// Modules, libraries and the functions in them. Every name is found unless it begins with
// "missing".
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "behaviour.hpp"
#include "driver.hpp"
#include "objects.hpp"
#include "state.hpp"

namespace fake {
namespace {

struct Image {  // a module or a library
  Handle context;
  std::vector<Handle> functions;  // in the order of first request
};

struct Images {
  std::map<Handle, Image> modules, libraries;
  std::map<Handle, Handle> function_of_kernel;
};

Images& images() {
  static Images* all = new Images;
  return *all;
}

bool is_missing(const char* name) { return std::string_view(name).starts_with("missing"); }

Status load(std::map<Handle, Image>& into, Handle* handle, const void* image) {
  if (!handle || !image) return kInvalidValue;
  const Handle loaded = new_handle();
  if (const Status bad = driver_load(loaded)) return bad;
  const std::lock_guard lock(state_mutex());
  *handle = loaded;
  into[loaded] = {current_context(), {}};
  return kSuccess;
}

Status load_file(std::map<Handle, Image>& into, Handle* handle, const char* path) {
  if (path && is_missing(path)) return kNotFound;
  return load(into, handle, path);
}

// Frees the functions so that the next module's first function gets the address of this one's
// first.
void drop(const Image& image) {
  for (auto function = image.functions.rbegin(); function != image.functions.rend(); ++function) {
    const auto derived = images().function_of_kernel.find(*function);
    if (derived != images().function_of_kernel.end()) {
      free_function(derived->second);
      images().function_of_kernel.erase(derived);
    }
    free_function(*function);
  }
}

Status unload(std::map<Handle, Image>& from, Handle handle) {
  {
    const std::lock_guard lock(state_mutex());
    const auto image = from.find(handle);
    if (image == from.end()) return kInvalidHandle;
    drop(image->second);
    from.erase(image);
  }
  driver_unload(handle);
  return kSuccess;
}

Status get(std::map<Handle, Image>& from, Handle* function, Handle handle, const char* name) {
  if (!function || !name) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  const auto image = from.find(handle);
  if (image == from.end()) return kInvalidHandle;
  if (is_missing(name)) return kNotFound;
  for (const Handle known : image->second.functions) {
    if (strcmp(function_name(known), name) == 0) {
      *function = known;
      return kSuccess;
    }
  }
  image->second.functions.push_back(*function = new_function(name));
  return kSuccess;
}

Status count(const std::map<Handle, Image>& in, uint32_t* number, Handle handle) {
  if (!number) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  const auto image = in.find(handle);
  if (image == in.end()) return kInvalidHandle;
  *number = static_cast<uint32_t>(image->second.functions.size());
  return kSuccess;
}

Status give_name(void* name, Handle function) {
  if (!name) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  const char* text = function_name(function);
  if (!text) return kInvalidHandle;
  *static_cast<const char**>(name) = text;
  return kSuccess;
}

}  // namespace

void unload_modules_of(Handle context) {
  std::erase_if(images().modules, [&](const auto& module) {
    if (module.second.context != context) return false;
    drop(module.second);
    return true;
  });
}

Status cuModuleLoad(Handle* module, const char* path) {
  return load_file(images().modules, module, path);
}
Status cuModuleLoadData(Handle* module, void* image) {
  return load(images().modules, module, image);
}
Status cuModuleLoadDataEx(Handle* module, void* image, uint32_t, void*, void*) {
  return load(images().modules, module, image);
}
Status cuModuleLoadFatBinary(Handle* module, void* image) {
  return load(images().modules, module, image);
}
Status cuModuleUnload(Handle module) { return unload(images().modules, module); }
Status cuModuleGetFunction(Handle* function, Handle module, const char* name) {
  return get(images().modules, function, module, name);
}
Status cuModuleGetFunctionCount(uint32_t* number, Handle module) {
  return count(images().modules, number, module);
}

Status cuLibraryLoadData(Handle* library, void* code, void*, void*, uint32_t, void*, void*,
                         uint32_t) {
  return load(images().libraries, library, code);
}
Status cuLibraryLoadFromFile(Handle* library, const char* path, void*, void*, uint32_t, void*,
                             void*, uint32_t) {
  return load_file(images().libraries, library, path);
}
Status cuLibraryUnload(Handle library) { return unload(images().libraries, library); }
Status cuLibraryGetKernel(Handle* kernel, Handle library, const char* name) {
  return get(images().libraries, kernel, library, name);
}
Status cuLibraryGetKernelCount(uint32_t* number, Handle library) {
  return count(images().libraries, number, library);
}

Status cuKernelGetFunction(Handle* function, Handle kernel) {
  if (!function) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  const char* name = function_name(kernel);
  if (!name) return kInvalidHandle;
  Handle& derived = images().function_of_kernel[kernel];
  if (!derived) derived = new_function(name);
  *function = derived;
  return kSuccess;
}

Status cuFuncGetName(void* name, Handle function) { return give_name(name, function); }
Status cuKernelGetName(void* name, Handle kernel) { return give_name(name, kernel); }

}  // namespace fake
