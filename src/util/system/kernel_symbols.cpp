#include "util/system/kernel_symbols.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace cudabpf {

namespace {

// Is `symbol` the function `name`, renamed by the compiler? ".cold" and ".part" are pieces of it.
bool is_renamed(std::string_view symbol, std::string_view name) {
  if (!symbol.starts_with(name)) return false;
  std::string_view suffix = symbol.substr(name.size());
  return suffix.starts_with(".isra.") || suffix.starts_with(".constprop.");
}

}  // namespace

// "ffffffffc0a1b2c0 t nvidia_unlocked_ioctl\t[nvidia]"
KernelSymbols KernelSymbols::parse(std::string_view text, const std::vector<std::string>& modules) {
  KernelSymbols symbols;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    std::size_t type = line.find(' ') + 1, module = line.find("\t[");
    if (type == 0 || module == line.npos || !line.ends_with(']') || module < type + 2) continue;
    if (line[type] != 't' && line[type] != 'T') continue;
    std::string in(line.substr(module + 2, line.size() - module - 3));
    if (std::find(modules.begin(), modules.end(), in) == modules.end()) continue;
    symbols.symbols_.push_back(
        {std::move(in), std::string(line.substr(type + 2, module - type - 2))});
  }
  return symbols;
}

KernelSymbols KernelSymbols::of_modules(const std::vector<std::string>& modules) {
  // Reading all of kallsyms takes a while.
  if (std::none_of(modules.begin(), modules.end(), [](const std::string& module) {
        return access(("/sys/module/" + module).c_str(), F_OK) == 0;
      }))
    return {};
  std::ifstream file("/proc/kallsyms");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  return parse(text, modules);
}

std::optional<std::string> KernelSymbols::find(std::string_view module,
                                               const std::vector<std::string>& names) const {
  for (const std::string& name : names)
    for (bool renamed : {false, true})
      for (const Symbol& symbol : symbols_)
        if (symbol.module == module &&
            (renamed ? is_renamed(symbol.name, name) : symbol.name == name))
          return symbol.name;
  return std::nullopt;
}

}  // namespace cudabpf
