// Where a program was, by its own account: the ranges that it names, and the lines of its Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cudabpf {

// Where a program is by its own account: a range's name and those of the ranges around it. The same
// names have the same number, whichever thread is there.
struct RangePath {
  std::uint64_t number = 0;                 // the trace's own
  std::shared_ptr<const RangePath> around;  // null: none
  std::string name, domain;                 // domain: empty for the default one
};

// Where in a program's Python a call was made. Equal ones have the same number, whichever process
// was there.
struct PythonFunction {
  std::string name, file;
};
struct PythonFrame {
  std::shared_ptr<const PythonFunction> function;
  std::uint32_t line = 0;  // 0: the instruction has none
  bool operator==(const PythonFrame&) const = default;
};
struct PythonStack {
  std::uint64_t number = 0;         // the trace's own
  std::vector<PythonFrame> frames;  // the innermost first
  bool cut = false;                 // there are more around them
  bool text_cut = false;            // a name was too long
};

// Whether calls have the stacks of a process's Python, and if not, why.
struct PythonFound {
  std::uint64_t ts = 0;
  std::uint32_t pid = 0;
  std::string version;  // "3.11.2"
  std::string why_not;  // empty: they have
};

// A stretch of time to which the program gave a name, or a moment.
struct NamedRange {
  enum class Op : std::uint8_t {
    push,   // of a thread, inside the others that it had pushed
    start,  // of a process: it may end on another thread
    mark,   // a moment
  };
  Op op = Op::push;
  // Where it is: a mark is where the range around it is. Null: there is none, or had no room.
  std::shared_ptr<const RangePath> path;
  std::string name, domain, category;
  bool name_known = true, name_cut = false;
  std::uint64_t ts = 0, duration = 0;
  std::uint32_t pid = 0, tid = 0;
  bool has_end = false;     // its duration is known
  bool unfinished = false;  // its process or the trace ended first
  bool end_lost = false;    // it ended, but it is not known when
  std::uint32_t color = 0;  // ARGB; 0: none
  enum class Payload : std::uint8_t { none, whole, signed_whole, real };
  Payload payload_is = Payload::none;
  std::uint64_t payload = 0;  // the bits of that type's 8 bytes
};

constexpr std::string_view to_string(NamedRange::Op op) {
  constexpr std::string_view NAMES[] = {"push", "start", "mark"};
  return NAMES[static_cast<std::size_t>(op)];
}

}  // namespace cudabpf
