#include "replay/gpu/code.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace cudabpf::replay {

namespace {

// Options of the compiler of PTX that are numbers. Others are addresses, which mean nothing here
// and which the driver would write to.
bool is_number(std::uint32_t option) {
  constexpr std::uint32_t NUMBERS[] = {0,  1,  7,  8,  9,  10, 11, 12, 13, 14, 16,
                                       20, 21, 22, 23, 24, 29, 30, 31, 32, 33};
  return std::find(std::begin(NUMBERS), std::end(NUMBERS), option) != std::end(NUMBERS);
}

struct JitOptions {
  std::vector<int> options;
  std::vector<void*> values;
  unsigned count() const { return static_cast<unsigned>(options.size()); }
};

JitOptions options_of(const bundle::Module& module) {
  JitOptions all;
  for (const bundle::JitOption& option : module.options) {
    if (!is_number(option.option)) continue;
    all.options.push_back(static_cast<int>(option.option));
    // The driver takes numbers as if they were addresses.
    all.values.push_back(
        reinterpret_cast<void*>(option.value.value));  // NOLINT(performance-no-int-to-ptr)
  }
  return all;
}

std::vector<bool> modules_used(const Manifest& manifest, const Tape& tape) {
  std::vector<bool> used(manifest.modules.size());
  for (std::size_t i = 0; i < used.size(); i++) used[i] = !manifest.modules[i].variables.empty();
  for (const Step& step : tape.steps())
    if (step.launch && refusal_of(step, manifest).empty())
      used[manifest.kernels[step.launch->kernel].module] = true;
  return used;
}

std::vector<bool> kernels_used(const Manifest& manifest, const Tape& tape) {
  std::vector<bool> used(manifest.kernels.size());
  for (const Step& step : tape.steps())
    if (step.launch && refusal_of(step, manifest).empty()) used[step.launch->kernel] = true;
  return used;
}

}  // namespace

GpuCode::Module GpuCode::loaded(const bundle::Folder& folder, const bundle::Module& module) {
  Module made;
  auto image = folder.image(module.image);
  if (!image) {
    made.unusable = image.error().message;
    return made;
  }
  images_.push_back(std::move(*image));
  const char* code = images_.back().c_str();
  JitOptions options = options_of(module);
  if (options.count() < module.options.size())
    notes_.push_back(fmt::format("{} options of the compiler that are addresses were left out",
                                 module.options.size() - options.count()));
  made.is_library = module.library;
  Status status =
      module.library
          ? driver_->load_library.status_of(&made.handle, code, options.options.data(),
                                            options.values.data(), options.count(), nullptr,
                                            nullptr, 0)
          : driver_->load_module.status_of(&made.handle, code, options.count(),
                                           options.options.data(), options.values.data());
  if (!status.succeeded()) made.unusable = status.text();
  return made;
}

void GpuCode::place_variables(const bundle::Module& captured, const Module& module) {
  for (const bundle::Variable& variable : captured.variables) {
    DevicePtr at = 0;
    std::size_t size = 0;
    const char* name = variable.name.c_str();
    Status status = module.is_library
                        ? driver_->library_variable.status_of(&at, &size, module.handle, name)
                        : driver_->module_variable.status_of(&at, &size, module.handle, name);
    if (status.succeeded() && size == variable.size) {
      variables_.push_back({&variable, at});
      continue;
    }
    absent_.push_back(&variable);
    notes_.push_back(fmt::format("the variable {} keeps what its image says: {}", variable.name,
                                 status.succeeded() ? "it has another size here" : status.text()));
  }
}

GpuCode::Kernel GpuCode::found(const bundle::Kernel& captured, const Module& module, int device) {
  Kernel kernel;
  kernel.unusable = module.unusable;
  if (!kernel.unusable.empty()) return kernel;
  const char* name = captured.name.c_str();
  Status status = module.is_library
                      ? driver_->library_kernel.status_of(&kernel.handle, module.handle, name)
                      : driver_->module_function.status_of(&kernel.handle, module.handle, name);
  for (const bundle::Attribute& attribute : captured.attributes) {
    if (!status.succeeded()) break;
    int number = static_cast<int>(attribute.attribute);
    status = module.is_library ? driver_->set_kernel_attribute.status_of(number, attribute.value,
                                                                         kernel.handle, device)
                               : driver_->set_function_attribute.status_of(kernel.handle, number,
                                                                           attribute.value);
  }
  if (!status.succeeded()) kernel.unusable = status.text();
  return kernel;
}

Result<> GpuCode::load(const bundle::Folder& folder, const Tape& tape, int device) {
  const Manifest& manifest = folder.manifest();
  std::vector<bool> modules = modules_used(manifest, tape), kernels = kernels_used(manifest, tape);
  std::vector<Module> loaded_modules(modules.size());
  images_.reserve(modules.size());
  for (std::size_t i = 0; i < modules.size(); i++) {
    if (!modules[i]) continue;
    progress_->beat();
    loaded_modules[i] = loaded(folder, manifest.modules[i]);
    if (loaded_modules[i].unusable.empty())
      place_variables(manifest.modules[i], loaded_modules[i]);
    else
      notes_.push_back(fmt::format("the image {}: {}",
                                   manifest.images[manifest.modules[i].image].hash,
                                   loaded_modules[i].unusable));
  }
  kernels_.resize(kernels.size());
  for (std::size_t i = 0; i < kernels.size(); i++)
    if (kernels[i])
      kernels_[i] = found(manifest.kernels[i], loaded_modules[manifest.kernels[i].module], device);
  return ok();
}

Result<> GpuCode::restore_variables(std::string_view data) {
  for (const Variable& variable : variables_) {
    const auto& before = variable.captured->before;
    if (!before || !before->size) continue;
    TRY(driver_->copy_to_device(variable.at, data.data() + before->offset, before->size));
  }
  return ok();
}

bool GpuCode::has(std::uint64_t address) const {
  return std::none_of(absent_.begin(), absent_.end(), [=](const bundle::Variable* variable) {
    return address >= variable->address.value && address - variable->address.value < variable->size;
  });
}

DevicePtr GpuCode::here(std::uint64_t address, std::uint64_t size) const {
  for (const Variable& variable : variables_) {
    std::uint64_t begin = variable.captured->address.value;
    if (address >= begin && address - begin <= variable.captured->size &&
        size <= variable.captured->size - (address - begin))
      return variable.at + (address - begin);
  }
  return address;
}

}  // namespace cudabpf::replay
