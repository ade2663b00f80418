// What happens around every exported function if a test watches: counting, logging, and the
// delays, failures and hangs that a test requests. If no test watches, a call skips all of it.
#pragma once

#include <string>

#include "injection.hpp"
#include "types.hpp"

namespace fake {

// True if any FAKE_CUDA_… variable requests something that calls have to do.
extern bool watching;

enum class Role : uint8_t { plain, out, string, structure, sizes, function };

struct Argument {
  Role role;
  uint16_t bytes;  // size of what a pointer points to, for out and structure
};

struct Symbol {
  const char* name;
  const char* api;  // without ABI revision and stream mode: what cuGetProcAddress is called with
  int since;        // the CUDA version that brought this revision
  bool per_thread;  // _ptsz, _ptds
  void* entry;
  const Argument* arguments;  // the integer and pointer arguments
  int argument_count;
};

extern const Symbol kSymbols[];
extern const int kSymbolCount;

// The innermost call that a thread is inside, and its number in that thread, from 1. Known only if
// a test watches.
struct CurrentCall {
  const char* symbol;  // null outside of all calls
  uint64_t number;
};

CurrentCall current_call();

// What became of the innermost call that this thread is inside, for the log.
void call_was_captured();
void call_ran(std::string fields);  // in JSON: what the launched graph did

// A float or a struct that a call got by value.
struct Passed {
  const void* value;
  uint16_t bytes;
};

// One call: made at its entry, finished before it returns. A callback may leave it unfinished, by
// an exception or longjmp; like the real library, this one has nothing for unwinding to do.
class Observed {
 public:
  Observed(int symbol, const uint64_t* words, const Passed* passed = nullptr, int passed_count = 0);
  bool proceeds() const { return proceeds_; }  // false: the call is to fail
  void set_status(Status status) { status_ = status; }
  Status finish();

 private:
  int symbol_;
  const uint64_t* words_;
  const Passed* passed_;
  int passed_count_;
  Injection injection_;
  uint64_t begin_ns_ = 0;
  int outer_;  // how many calls this one is inside
  Status status_ = kSuccess;
  bool proceeds_ = true;
};

inline uint64_t word(uint8_t value) { return value; }
inline uint64_t word(uint16_t value) { return value; }
inline uint64_t word(uint32_t value) { return value; }
inline uint64_t word(int32_t value) { return static_cast<uint32_t>(value); }
inline uint64_t word(uint64_t value) { return value; }
inline uint64_t word(const void* value) { return reinterpret_cast<uint64_t>(value); }

}  // namespace fake
