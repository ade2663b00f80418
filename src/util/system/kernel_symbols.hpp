// Functions of kernel modules, as /proc/kallsyms names them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cudabpf {

class KernelSymbols {
 public:
  // `text` is the contents of /proc/kallsyms; only functions of `modules` are kept.
  static KernelSymbols parse(std::string_view text, const std::vector<std::string>& modules);
  static KernelSymbols of_modules(const std::vector<std::string>& modules);

  // The symbol of the first of `names` that the module has: the name itself, or as the compiler may
  // have renamed it without changing its signature in any way that matters (".isra.0",
  // ".constprop.0").
  std::optional<std::string> find(std::string_view module,
                                  const std::vector<std::string>& names) const;

 private:
  struct Symbol {
    std::string module, name;
  };
  std::vector<Symbol> symbols_;
};

}  // namespace cudabpf
