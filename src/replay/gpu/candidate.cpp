// Other code in a captured kernel's place.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "replay/gpu/code.hpp"
#include "util/demangle/demangle.hpp"
#include "util/system/fd.hpp"

namespace cudabpf::replay {

namespace {

Result<std::string> whole_file(const std::string& path) {
  constexpr std::int64_t MAX = std::int64_t{2} << 30;
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return errno_error("open " + path);
  if (!S_ISREG(status.st_mode) || status.st_size > MAX)
    return Error{path + " is no file with code", {}};
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    ssize_t got = ::read(file.get(), bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("read " + path);
    if (!got) return Error{path + " became shorter while it was read", {}};
    filled += static_cast<std::size_t>(got);
  }
  return bytes;
}

// The driver looks at the first bytes, and trusts the sizes that come after them.
bool is_code(const std::string& bytes) {
  constexpr std::size_t LEAST = 64;
  bool is_binary = bundle::kind_of(bytes) != bundle::ImageKind::ptx;
  bool is_text = bytes.find('\0') >= bytes.size() - std::min<std::size_t>(bytes.size(), 1);
  return (is_binary && bytes.size() >= LEAST) ||
         (is_text && bytes.find(".version") != std::string::npos);
}

}  // namespace

Result<Handle> GpuCode::function_in(Handle module, const std::string& name,
                                    const std::string& file) {
  Handle function = nullptr;
  Status status = driver_->module_function.status_of(&function, module, name.c_str());
  if (status.succeeded()) return function;
  std::string lacks = fmt::format("{} has no kernel {}", file, name);
  if (!driver_->function_count || !driver_->list_functions || !driver_->function_name)
    return Error{lacks + ", and this driver does not say which ones it has", {}};
  unsigned count = 0;
  TRY(driver_->function_count(&count, module));
  constexpr unsigned MAX = 1 << 16;
  std::vector<Handle> functions(std::min(count, MAX));
  if (!functions.empty())
    TRY(driver_->list_functions(functions.data(), static_cast<unsigned>(functions.size()), module));
  std::string names;
  for (Handle one : functions) {
    const char* text = nullptr;
    TRY(driver_->function_name(&text, one));
    names += (names.empty() ? "" : ", ") + short_name(demangle(text ? text : ""));
  }
  if (functions.size() != 1)
    return Error{lacks + (names.empty() ? ", nor any other" : ", but several others: " + names),
                 "give it the same name, extern \"C\" or not"};
  notes_.push_back(fmt::format("{}: its only one, {}, takes its place", lacks, names));
  return functions.front();
}

// Variables that the candidate lacks have no place any more.
void GpuCode::move_variables(const bundle::Module& captured, Handle module) {
  for (const bundle::Variable& variable : captured.variables) {
    auto known = std::find_if(variables_.begin(), variables_.end(),
                              [&](const Variable& one) { return one.captured == &variable; });
    if (known == variables_.end()) continue;
    DevicePtr at = 0;
    std::size_t size = 0;
    Status status = driver_->module_variable.status_of(&at, &size, module, variable.name.c_str());
    if (status.succeeded() && size == variable.size) {
      known->at = at;
      continue;
    }
    variables_.erase(known);
    absent_.push_back(&variable);
    notes_.push_back(
        fmt::format("the candidate has no variable {} of {} bytes", variable.name, variable.size));
  }
}

Result<> GpuCode::replace(const Manifest& manifest, const std::string& name,
                          const std::string& file) {
  std::string bytes = TRY(whole_file(file));
  if (!is_code(bytes)) return Error{file + " is no cubin, no fat binary and no PTX", {}};
  images_.push_back(std::move(bytes));
  Handle module = nullptr;
  Status status =
      driver_->load_module.status_of(&module, images_.back().c_str(), 0, nullptr, nullptr);
  if (!status.succeeded()) return Error{fmt::format("{}: {}", file, status.text()), {}};
  Handle function = TRY(function_in(module, name, file));
  std::vector<bool> is_moved(manifest.modules.size());
  for (std::size_t i = 0; i < manifest.kernels.size(); i++) {
    const bundle::Kernel& captured = manifest.kernels[i];
    if (captured.name != name) continue;
    kernels_[i] = {function, {}};
    for (const bundle::Attribute& attribute : captured.attributes) {
      Status set = driver_->set_function_attribute.status_of(
          function, static_cast<int>(attribute.attribute), attribute.value);
      if (!set.succeeded())
        notes_.push_back(fmt::format("the candidate's attribute {} could not be set to {}: {}",
                                     attribute.attribute, attribute.value, set.text()));
    }
    if (!is_moved[captured.module]) move_variables(manifest.modules[captured.module], module);
    is_moved[captured.module] = true;
  }
  return ok();
}

}  // namespace cudabpf::replay
