#include "collect/inside/taped_functions.hpp"

#include <algorithm>
#include <initializer_list>

namespace cudabpf {

namespace {

template <typename Is>
const Argument* argument_that(const Function& function, Is is) {
  auto found = std::find_if(function.arguments.begin(), function.arguments.end(), is);
  return found == function.arguments.end() ? nullptr : &*found;
}

std::uint8_t word_of(const Argument* argument) {
  return argument && argument->word >= 0 ? static_cast<std::uint8_t>(argument->word) : CI_NO_WORD;
}

std::uint8_t word_of(const Function& function, Role role) {
  return word_of(argument_that(
      function, [=](const Argument& argument) { return argument.role == role && !argument.out; }));
}

std::uint8_t word_named(const Function& function, std::initializer_list<std::string_view> names) {
  return word_of(argument_that(function, [&](const Argument& argument) {
    return std::find(names.begin(), names.end(), argument.name) != names.end();
  }));
}

abi::ci_taped nothing() {
  abi::ci_taped taped{};
  taped.keep = abi::CI_KEEP_NOTHING;
  taped.at = taped.size_at = taped.lists_at = taped.stream_at = taped.to_at = taped.extra_at =
      CI_NO_WORD;
  return taped;
}

abi::ci_taped launch(const Function& function) {
  abi::ci_taped taped = nothing();
  taped.at = word_of(function, Role::function);
  taped.lists_at = word_named(function, {"kernelParams"});
  taped.extra_at = word_named(function, {"extra"});
  taped.to_at = word_of(argument_that(
      function, [](const Argument& argument) { return argument.layout == Struct::launch_config; }));
  if (taped.at != CI_NO_WORD && taped.lists_at != CI_NO_WORD) taped.keep = abi::CI_KEEP_LAUNCH;
  return taped;
}

abi::ci_taped code(const Function& function) {
  abi::ci_taped taped = nothing();
  taped.at = word_of(function, Role::hptr);
  std::uint8_t path = word_of(function, Role::path);
  bool is_file = taped.at == CI_NO_WORD && path != CI_NO_WORD;
  if (is_file) taped.at = path;
  taped.size_at = word_named(function, {"numOptions", "numJitOptions"});
  taped.lists_at = word_named(function, {"options", "jitOptions"});
  if (taped.at != CI_NO_WORD) taped.keep = is_file ? abi::CI_KEEP_CODE_FILE : abi::CI_KEEP_CODE;
  return taped;
}

// Rows, which a struct describes, or a single one, whose size is an argument.
abi::ci_taped copy(const Function& function) {
  abi::ci_taped taped = nothing();
  if (function.async) taped.stream_at = word_of(function, Role::stream);
  auto keep_of = [](Struct layout) {
    return layout == Struct::memcpy2d   ? abi::CI_KEEP_COPY_2D
           : layout == Struct::memcpy3d ? abi::CI_KEEP_COPY_3D
                                        : abi::CI_KEEP_NOTHING;
  };
  const Argument* rows = argument_that(function, [&](const Argument& argument) {
    return keep_of(argument.layout) != abi::CI_KEEP_NOTHING;
  });
  if (rows) {
    taped.at = word_of(rows);
    taped.keep = keep_of(rows->layout);
    return taped;
  }
  bool plain = function.size.kind == SizeRule::Kind::product && function.size.times < 0 &&
               function.size.unit == 1;
  if (!plain) return taped;
  const Argument& size = function.arguments[static_cast<std::size_t>(function.size.argument)];
  if (size.role != Role::u64) return taped;  // of addresses of 32 bits
  taped.size_at = word_of(&size);
  const Argument* host =
      argument_that(function, [](const Argument& argument) { return argument.role == Role::hptr; });
  if (host) {
    taped.at = word_of(host);
    taped.keep = host->name.starts_with("src") ? abi::CI_KEEP_FROM_HOST : abi::CI_KEEP_TO_HOST;
  } else if (function.op == Op::unified) {
    taped.at = word_named(function, {"src"});
    taped.to_at = word_named(function, {"dst"});
    taped.keep = abi::CI_KEEP_EITHER;
  }
  return taped;
}

abi::ci_taped wait(const Function& function) {
  abi::ci_taped taped = nothing();
  taped.stream_at = word_of(function, Role::stream);
  bool of_event = word_of(function, Role::event) != CI_NO_WORD;  // of which stream is not known
  if (!of_event) taped.keep = abi::CI_KEEP_WAIT;
  return taped;
}

// The driver does not say what an executable graph holds, so what goes into it is kept.
abi::ci_taped nodes(const Function& function) {
  abi::ci_taped taped = nothing();
  taped.at = word_of(function, Role::graph);
  if (taped.at != CI_NO_WORD) {
    taped.keep = abi::CI_KEEP_NODES;
    return taped;
  }
  auto keep_of = [](Struct layout) {
    return layout == Struct::kernel_node      ? abi::CI_KEEP_KERNEL_NODE
           : layout == Struct::kernel_node_v1 ? abi::CI_KEEP_KERNEL_NODE_V1
           : layout == Struct::memcpy3d       ? abi::CI_KEEP_COPY_NODE
           : layout == Struct::memset_node    ? abi::CI_KEEP_SET_NODE
           : layout == Struct::graph_node     ? abi::CI_KEEP_ANY_NODE
                                              : abi::CI_KEEP_NOTHING;
  };
  const Argument* given = argument_that(function, [&](const Argument& argument) {
    return keep_of(argument.layout) != abi::CI_KEEP_NOTHING;
  });
  taped.at = word_of(given);
  if (taped.at != CI_NO_WORD) taped.keep = keep_of(given->layout);
  return taped;
}

bool fills_executable_graph(const Function& function) {
  return function.graph == GraphAction::instantiate || function.graph == GraphAction::update ||
         function.graph == GraphAction::set_exec_node;
}

abi::ci_taped kept_of(const Function& function) {
  if (function.launches_kernel()) return launch(function);
  if (function.launches_graph()) {
    abi::ci_taped taped = nothing();
    taped.at = word_of(function, Role::graph_exec);
    taped.keep = abi::CI_KEEP_GRAPH;
    return taped;
  }
  if (fills_executable_graph(function)) return nodes(function);
  if (function.type == Type::module && function.op == Op::load) return code(function);
  if (function.type == Type::transfer) return copy(function);
  if (function.type == Type::sync) return wait(function);
  return nothing();
}

}  // namespace

abi::ci_taped taped_of(const Function& function) {
  if (function.api != ApiId::cuda) return nothing();
  abi::ci_taped taped = kept_of(function);
  Work work = function.meaning.work;
  taped.waits = work == Work::wait || (work == Work::to_host && !function.async);
  return taped;
}

}  // namespace cudabpf
