#include "collect/bpf/kernel_btf.hpp"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <fmt/format.h>

#include <cerrno>

namespace cudabpf {

namespace {

// The BTF object of a module, among all that the kernel holds.
Result<Fd> open_object(const std::string& module, std::uint32_t& id) {
  id = 0;
  while (bpf_btf_get_next_id(id, &id) == 0) {
    Fd object(bpf_btf_get_fd_by_id(id));
    if (!object && errno == ENOENT) continue;  // it is gone
    if (!object) return errno_error("the kernel does not provide its modules' BTF");
    char name[64] = {};
    bpf_btf_info information{};
    information.name = reinterpret_cast<std::uintptr_t>(name);
    information.name_len = sizeof(name);
    std::uint32_t size = sizeof(information);
    if (bpf_obj_get_info_by_fd(object.get(), &information, &size) != 0) continue;
    if (information.kernel_btf && module == name) return object;
  }
  if (errno != ENOENT) return errno_error("the kernel does not list its modules' BTF");
  return Error{fmt::format("the module {} has no BTF", module), {}};
}

}  // namespace

KernelBtf::KernelBtf() : kernel_(btf__load_vmlinux_btf()) {}
KernelBtf::~KernelBtf() = default;

void KernelBtf::Free::operator()(btf* types) const { btf__free(types); }

Result<const KernelBtf::Module*> KernelBtf::module(const std::string& name) {
  if (auto known = modules_.find(name); known != modules_.end()) return &known->second;
  std::uint32_t id = 0;
  auto object = TRY(open_object(name, id));
  Types types(btf__load_from_kernel_by_id_split(id, kernel_.get()));
  if (!types) return errno_error("the BTF of the module " + name);
  return &modules_.emplace(name, Module{std::move(object), std::move(types)}).first->second;
}

Result<KernelBtf::Function> KernelBtf::find(const std::string& module, const std::string& name) {
  if (!kernel_) return Error{"the kernel has no BTF", {}};
  Function function{0, 0};
  const btf* types = kernel_.get();
  if (!module.empty()) {
    const Module* found = TRY(this->module(module));
    function.object = found->object.get();
    types = found->types.get();
  }
  // Searches only the module's own types: those of the kernel come first and include its functions.
  for (std::uint32_t id = module.empty() ? 1 : btf__type_cnt(kernel_.get());
       id < btf__type_cnt(types); id++) {
    const btf_type* type = btf__type_by_id(types, id);
    if (btf_is_func(type) && name == btf__name_by_offset(types, type->name_off)) {
      function.id = id;
      return function;
    }
  }
  return Error{fmt::format("BTF has no function {}", name), {}};
}

}  // namespace cudabpf
