// The kernel's own description of its functions' types, against which it checks programs at a
// function's entry and exit (fentry, fexit).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "util/result.hpp"
#include "util/system/fd.hpp"

struct btf;

namespace cudabpf {

class KernelBtf {
 public:
  KernelBtf();
  ~KernelBtf();
  KernelBtf(KernelBtf&&) = delete;

  struct Function {
    int object;  // a descriptor of the module's BTF; 0 for the kernel's own
    std::uint32_t id;
  };
  // A function of a module, or of the kernel if `module` is empty. This owns the descriptor.
  Result<Function> find(const std::string& module, const std::string& name);

 private:
  struct Free {
    void operator()(btf* types) const;
  };
  using Types = std::unique_ptr<btf, Free>;
  struct Module {
    Fd object;
    Types types;
  };
  Result<const Module*> module(const std::string& name);

  Types kernel_;
  std::map<std::string, Module> modules_;
};

}  // namespace cudabpf
