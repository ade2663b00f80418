// A call of the iteration that is captured, until it becomes an operation of the tape.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cudabpf/event.hpp"

namespace cudabpf::taping {

struct ExecutableGraph;

// The first argument of this kind that is given to the call, or to a kept one; 0: it has none.
inline std::uint64_t given_in(std::span<const std::uint64_t> words, const Function& function,
                              Role role) {
  for (const Argument& argument : function.arguments)
    if (argument.role == role && !argument.out && argument.word >= 0 &&
        static_cast<std::size_t>(argument.word) < words.size())
      return words[static_cast<std::size_t>(argument.word)];
  return 0;
}
std::uint64_t given_to(const auto& call, Role role) {
  return given_in(call.words, *call.function, role);
}

struct KeptCall {
  explicit KeptCall(const Call& call)
      : function(call.function),
        id(call.id),
        ts(call.ts),
        end(call.ts + call.duration),
        tid(call.tid),
        payload(call.payload),
        words(call.words.begin(), call.words.end()),
        details(call.details),
        has_return(call.has_return),
        result(call.result) {
    if (call.kernel) kernel = call.kernel->mangled;
  }

  const Function* function;
  std::uint64_t id, ts, end;
  std::uint32_t tid;
  std::uint64_t payload;
  std::vector<std::uint64_t> words;
  Details details;
  bool has_return;
  std::int32_t result;
  std::string kernel;                            // mangled; empty: its name is not known
  std::shared_ptr<const ExecutableGraph> graph;  // that it launches, as it was then

  std::uint64_t word(std::size_t number) const { return number < words.size() ? words[number] : 0; }
  bool failed() const { return has_return && function->is_failure(result); }
};

}  // namespace cudabpf::taping
