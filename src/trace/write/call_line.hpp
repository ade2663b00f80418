// Calls as lines of the trace (docs/trace-format.md). This runs for every call, so the text that a
// function's calls share is made once, and nothing is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "cudabpf/event.hpp"

namespace cudabpf {

// The fields of Details, as a set.
enum DetailField : std::uint8_t {
  DETAIL_SIZE = 1,
  DETAIL_PTR = 2,
  DETAIL_DST = 4,
  DETAIL_SRC = 8,
  DETAIL_STREAM = 16,
  DETAIL_HANDLE = 32,
  DETAIL_DEVICE = 64,
  DETAIL_DIMS = 128,
};

// The field of Details that argument `index` fills on its own; 0: none. Where that field is
// present, the argument is not repeated under "args".
std::uint8_t detail_filled_by(const Function& function, std::size_t index);

class CallLine {
 public:
  CallLine();
  ~CallLine();

  // The most bytes that the line of `call` can take.
  std::size_t bound(const Call& call);
  // Writes it, newline included; returns its end.
  char* write(char* at, const Call& call);

 private:
  struct FunctionText;
  const FunctionText& text_of(const Function& function);
  static char* write_details(char* at, const Call& call, const FunctionText& text);
  static char* write_arguments(char* at, const Call& call, const FunctionText& text);

  std::vector<std::unique_ptr<FunctionText>> known_;  // by their place in the table
  std::unordered_map<const Function*, std::unique_ptr<FunctionText>> others_;
};

}  // namespace cudabpf
