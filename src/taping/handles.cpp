#include "taping/handles.hpp"

#include "taping/kept_call.hpp"

namespace cudabpf::taping {

namespace {

std::uint64_t word(const Call& call, std::size_t number) {
  return number < call.words.size() ? call.words[number] : 0;
}
std::uint64_t out(const Call& call, std::size_t number) {
  return number < call.outs.size() ? call.outs[number] : 0;
}

template <typename Map, typename Key>
auto* found_in(Map& map, const Key& key) {
  auto at = map.find(key);
  return at == map.end() ? nullptr : &at->second;
}

}  // namespace

void Handles::call(const Call& call) {
  const Function& function = *call.function;
  if (!call.has_return || function.is_failure(call.result)) return;
  std::string_view name = function.name;
  graphs_.call(call);
  if (function.type == Type::module && function.op == Op::load) {
    code_[out(call, 0)] = {name.starts_with("cuLibrary"), call.payload};
    variables_.erase(out(call, 0));
  } else if (name == "cuLibraryGetKernel") {
    libraries_with_[std::string(call.text)].insert(word(call, 1));
  } else if (name == "cuKernelGetFunction") {
    kernels_[out(call, 0)] = word(call, 1);
  } else if (name == "cuModuleGetFunction") {
    kernels_.erase(out(call, 0));
  } else if (name == "cuLibraryGetModule") {
    owners_[out(call, 0)] = word(call, 1);
  } else if (name == "cuModuleGetGlobal" || name == "cuLibraryGetGlobal") {
    variables_[word(call, 2)][std::string(call.text)] = {std::string(call.text), out(call, 0),
                                                         out(call, 1)};
  } else if (function.meaning.stream == StreamEffect::create) {
    constexpr std::uint64_t NON_BLOCKING = 1;
    streams_[out(call, 0)] = {static_cast<std::int32_t>(given_to(call, Role::i32)),
                              (given_to(call, Role::u32) & NON_BLOCKING) != 0};
  } else if (function.meaning.stream == StreamEffect::destroy) {
    streams_.erase(given_to(call, Role::stream));
  } else if (function.graph == GraphAction::begin_capture) {
    captures_++;
  } else if (function.graph == GraphAction::end_capture) {
    captures_--;
  } else if (function.meaning.node == NodeWork::host || function.op == Op::memop) {
    waits_for_program_.insert(std::string(name));
  }
}

const LoadedCode* Handles::code(std::uint64_t library_or_module) const {
  return found_in(code_, library_or_module);
}

std::uint64_t Handles::kernel(std::uint64_t function) const {
  const std::uint64_t* known = found_in(kernels_, function);
  return known ? *known : function;
}

std::vector<std::uint64_t> Handles::functions(std::uint64_t kernel) const {
  std::vector<std::uint64_t> all;
  for (const auto& [function, made_of] : kernels_)
    if (made_of == kernel) all.push_back(function);
  return all;
}

std::set<std::uint64_t> Handles::libraries_with(const std::string& kernel) const {
  const auto* known = found_in(libraries_with_, kernel);
  return known ? *known : std::set<std::uint64_t>();
}

std::uint64_t Handles::owner(std::uint64_t module) const {
  const std::uint64_t* known = found_in(owners_, module);
  return known ? *known : module;
}

std::vector<NamedVariable> Handles::variables() const {
  std::vector<NamedVariable> all;
  for (const auto& [owner, named] : variables_)
    for (const auto& [name, variable] : named) all.push_back(variable);
  return all;
}

std::vector<NamedVariable> Handles::variables(std::uint64_t library_or_module) const {
  std::vector<NamedVariable> all;
  if (const auto* named = found_in(variables_, library_or_module))
    for (const auto& [name, variable] : *named) all.push_back(variable);
  return all;
}

}  // namespace cudabpf::taping
