// Modules, libraries and the functions in them. Every name is found unless it begins with
// "missing", or the GPU computes and the image says what is in it.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "behaviour.hpp"
#include "compute/kernels.hpp"
#include "driver.hpp"
#include "objects.hpp"
#include "state.hpp"

namespace fake {
namespace {

struct Image {  // a module or a library
  Handle context;
  std::vector<Handle> functions;  // in the order of first request
  std::optional<ImageContent> content = {};
  std::map<std::string, std::pair<DevicePtr, uint64_t>> variables = {};
};

struct Images {
  std::map<Handle, Image> modules, libraries;
  std::map<Handle, Handle> function_of_kernel, kernel_of_function;
  std::map<Handle, uint32_t> most_shared;  // by function or kernel
  std::map<Handle, std::string> does;      // where its image says so
};

Images& images() {
  static Images* all = new Images;
  return *all;
}

bool is_missing(const char* name) { return std::string_view(name).starts_with("missing"); }

// Gives the image's variables memory. Hold state_mutex.
bool place_variables(Image& image) {
  for (const Variable& variable : image.content->variables) {
    const auto at = backed_range(variable.content.size());
    if (!at) return false;
    memory_begins(*at, variable.content.size());
    memcpy(reinterpret_cast<void*>(*at), variable.content.data(), variable.content.size());
    image.variables[variable.name] = {*at, variable.content.size()};
  }
  return true;
}

Status load(std::map<Handle, Image>& into, Handle* handle, const void* image) {
  if (!handle || !image) return kInvalidValue;
  const Handle loaded = new_handle();
  if (const Status bad = driver_load(loaded)) return bad;
  const std::lock_guard lock(state_mutex());
  *handle = loaded;
  Image& made = into[loaded] = {current_context(), {}};
  if (computes()) made.content = content_of(image);
  return !made.content || place_variables(made) ? kSuccess : kOutOfMemory;
}

Status load_file(std::map<Handle, Image>& into, Handle* handle, const char* path) {
  if (path && is_missing(path)) return kNotFound;
  return load(into, handle, path);
}

// Frees the functions so that the next module's first function gets the address of this one's
// first.
void drop(const Image& image) {
  for (const auto& [name, variable] : image.variables) memory_ends(variable.first);
  for (auto function = image.functions.rbegin(); function != image.functions.rend(); ++function) {
    const auto derived = images().function_of_kernel.find(*function);
    if (derived != images().function_of_kernel.end()) {
      images().kernel_of_function.erase(derived->second);
      images().most_shared.erase(derived->second);
      free_function(derived->second);
      images().function_of_kernel.erase(derived);
    }
    images().most_shared.erase(*function);
    images().does.erase(*function);
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

// Hold state_mutex.
Handle function_named(Image& image, const char* name, const char* does) {
  for (const Handle known : image.functions)
    if (strcmp(function_name(known), name) == 0) return known;
  image.functions.push_back(new_function(name));
  images().does[image.functions.back()] = does;
  return image.functions.back();
}

Status get(std::map<Handle, Image>& from, Handle* function, Handle handle, const char* name) {
  if (!function || !name) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  const auto image = from.find(handle);
  if (image == from.end()) return kInvalidHandle;
  if (is_missing(name)) return kNotFound;
  const char* does = name;
  if (const auto& content = image->second.content) {
    const auto found = std::find_if(content->kernels.begin(), content->kernels.end(),
                                    [&](const ImageKernel& kernel) { return kernel.name == name; });
    if (found == content->kernels.end()) return kNotFound;
    does = found->does.c_str();
  }
  *function = function_named(image->second, name, does);
  return kSuccess;
}

Status list(std::map<Handle, Image>& from, Handle* functions, uint32_t most, Handle handle) {
  if (!functions) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  const auto image = from.find(handle);
  if (image == from.end()) return kInvalidHandle;
  if (image->second.content)
    for (const ImageKernel& kernel : image->second.content->kernels)
      function_named(image->second, kernel.name.c_str(), kernel.does.c_str());
  const auto& all = image->second.functions;
  std::copy_n(all.begin(), std::min<size_t>(all.size(), most), functions);
  return kSuccess;
}

Status count(const std::map<Handle, Image>& in, uint32_t* number, Handle handle) {
  if (!number) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  const auto image = in.find(handle);
  if (image == in.end()) return kInvalidHandle;
  const auto& content = image->second.content;
  *number =
      static_cast<uint32_t>(content ? content->kernels.size() : image->second.functions.size());
  return kSuccess;
}

// The image that a function or a kernel is from; null: it is not known.
Handle image_of(const std::map<Handle, Image>& in, Handle function) {
  for (const auto& [handle, image] : in)
    if (std::find(image.functions.begin(), image.functions.end(), function) !=
        image.functions.end())
      return handle;
  return nullptr;
}

Handle kernel_of(Handle function) {
  const auto kernel = images().kernel_of_function.find(function);
  return kernel == images().kernel_of_function.end() ? function : kernel->second;
}

// Like driver 580, a GPU that computes knows a kernel of a library not as a function, nor a
// function as a kernel.
bool is_of_kind(Handle function, bool kernel) {
  return !computes() || (image_of(images().libraries, function) != nullptr) == kernel;
}

Status give_image(const std::map<Handle, Image>& in, Handle* image, Handle function) {
  if (!image) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  if (!is_of_kind(function, &in == &images().libraries)) return kInvalidHandle;
  const Handle found = image_of(in, function);
  *image = found ? found : new_handle();
  return kSuccess;
}

Status get_variable(const std::map<Handle, Image>& from, DevicePtr* pointer, uint64_t* size,
                    Handle handle, const char* name) {
  if (!name) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  const auto image = from.find(handle);
  std::pair<DevicePtr, uint64_t> variable = {};
  if (image != from.end() && image->second.content) {
    const auto found = image->second.variables.find(name);
    if (found == image->second.variables.end()) return kNotFound;
    variable = found->second;
  } else {
    variable = {new_device_range(512), 512};
  }
  if (pointer) *pointer = variable.first;
  if (size) *size = variable.second;
  return kSuccess;
}

Status give_parameter(Handle function, bool is_kernel, uint64_t index, uint64_t* offset,
                      uint64_t* size) {
  if (!offset) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  const char* name = function_name(function);
  if (!name || !is_of_kind(function, is_kernel)) return kInvalidHandle;
  const Kernel* kernel = computes() ? find_kernel(what_it_does(function)) : nullptr;
  Parameter parameter = {static_cast<uint16_t>(index * 8), 8};
  if (kernel) {
    if (index >= kernel->parameters.size()) return kInvalidValue;
    parameter = kernel->parameters[index];
  }
  *offset = parameter.offset;
  if (size) *size = parameter.size;
  return kSuccess;
}

Status set_attribute(Handle function, uint32_t attribute, int32_t value) {
  constexpr uint32_t kMostShared = 8;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
  if (attribute != kMostShared || value < 0) return kSuccess;
  const std::lock_guard lock(state_mutex());
  images().most_shared[function] = static_cast<uint32_t>(value);
  return kSuccess;
}

Status get_attribute(int32_t* value, uint32_t attribute, Handle function, bool is_kernel) {
  constexpr uint32_t kMostShared = 8, kCarveout = 9, kCount = 16;
  constexpr int32_t kWithoutAsking = 48 << 10;
  if (!value || attribute >= kCount) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  if (!function_name(function) || !is_of_kind(function, is_kernel)) return kInvalidHandle;
  const auto most = images().most_shared.find(function);
  const bool is_set = most != images().most_shared.end();
  *value = attribute == kMostShared ? (is_set ? static_cast<int32_t>(most->second) : kWithoutAsking)
           : attribute == kCarveout ? -1
                                    : 0;
  return kSuccess;
}

Status give_name(void* name, Handle function, bool is_kernel) {
  if (!name) return kInvalidValue;
  const std::lock_guard lock(state_mutex());
  const char* text = function_name(function);
  if (!text || !is_of_kind(function, is_kernel)) return kInvalidHandle;
  *static_cast<const char**>(name) = text;
  return kSuccess;
}

}  // namespace

DevicePtr variable_of(Handle function, const char* name) {
  const Handle kernel = kernel_of(function);
  for (const auto* in : {&images().modules, &images().libraries}) {
    const auto image = in->find(image_of(*in, kernel));
    if (image == in->end()) continue;
    const auto variable = image->second.variables.find(name);
    return variable == image->second.variables.end() ? 0 : variable->second.first;
  }
  return 0;
}

const char* what_it_does(Handle function) {
  const auto does = images().does.find(kernel_of(function));
  return does == images().does.end() ? function_name(function) : does->second.c_str();
}

uint32_t most_shared_of(Handle function) {
  uint32_t most = 0;
  for (const Handle of : {function, kernel_of(function)}) {
    const auto known = images().most_shared.find(of);
    if (known != images().most_shared.end()) most = std::max(most, known->second);
  }
  return most;
}

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
Status cuModuleEnumerateFunctions(Handle* functions, uint32_t number, Handle module) {
  return list(images().modules, functions, number, module);
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
  if (!derived) {
    derived = new_function(name);
    images().kernel_of_function[derived] = kernel;
  }
  *function = derived;
  return kSuccess;
}

Status cuKernelGetLibrary(Handle* library, Handle kernel) {
  return give_image(images().libraries, library, kernel);
}
Status cuFuncGetModule(Handle* module, Handle function) {
  return give_image(images().modules, module, function);
}

Status cuFuncGetParamInfo(Handle function, uint64_t index, uint64_t* offset, uint64_t* size) {
  return give_parameter(function, false, index, offset, size);
}
Status cuKernelGetParamInfo(Handle kernel, uint64_t index, uint64_t* offset, uint64_t* size) {
  return give_parameter(kernel, true, index, offset, size);
}

Status cuFuncSetAttribute(Handle function, uint32_t attribute, int32_t value) {
  return set_attribute(function, attribute, value);
}
Status cuKernelSetAttribute(uint32_t attribute, int32_t value, Handle kernel, int32_t) {
  return set_attribute(kernel, attribute, value);
}

Status cuModuleGetGlobal(DevicePtr* pointer, uint64_t* size, Handle module, const char* name) {
  return get_variable(images().modules, pointer, size, module, name);
}
Status cuLibraryGetGlobal(DevicePtr* pointer, uint64_t* size, Handle library, const char* name) {
  return get_variable(images().libraries, pointer, size, library, name);
}

Status cuFuncGetName(void* name, Handle function) { return give_name(name, function, false); }
Status cuKernelGetName(void* name, Handle kernel) { return give_name(name, kernel, true); }
Status cuFuncGetAttribute(int32_t* value, uint32_t attribute, Handle function) {
  return get_attribute(value, attribute, function, false);
}
Status cuKernelGetAttribute(int32_t* value, uint32_t attribute, Handle kernel, int32_t) {
  return get_attribute(value, attribute, kernel, true);
}

}  // namespace fake
