// Result<T>: a value, or an Error that says what happened and what to do. For failures in normal
// use (a missing file, a kernel that refuses); exceptions are for broken invariants.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "util/exit_codes.hpp"

namespace cudabpf {

struct Error {
  std::string message;                // what happened, and to what
  std::string hint = {};              // what the user can do about it; may be empty
  int exit_code = exit_code::FAILED;  // the process's exit status if this error ends it
};

struct Unit {};

template <typename T = Unit>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) : state_(std::move(error)) {}  // NOLINT: implicit on purpose

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() { return std::get<0>(state_); }
  const T& operator*() const { return std::get<0>(state_); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  Error& error() { return std::get<1>(state_); }
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

inline Result<> ok() { return Unit{}; }

// "open /dev/x: Permission denied", from errno.
Error errno_error(std::string what, std::string hint = {}, int exit_code = exit_code::FAILED);

}  // namespace cudabpf

// Passes an error on: `auto file = TRY(File::open(path));` or `TRY(start());` moves the value out,
// or returns the error from the function or lambda around it. Never use it inside a braced list:
// compilers do not destroy the elements made before it. The number distinguishes nested ones.
#define TRY(expression) TRY_NUMBERED(__COUNTER__, expression)
#define TRY_NUMBERED(number, expression) TRY_NAMED(number, expression)
#define TRY_NAMED(number, expression)                              \
  __extension__({                                                  \
    auto tried_##number = (expression);                            \
    if (!tried_##number) return std::move(tried_##number.error()); \
    std::move(*tried_##number);                                    \
  })
