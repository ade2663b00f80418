#include "call_log.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>

#include "objects.hpp"
#include "settings.hpp"
#include "state.hpp"

namespace fake {
namespace {

std::atomic<int> log_file{-1};

int open_log() {
  const std::string path =
      settings().log_directory + "/calls." + std::to_string(getpid()) + ".jsonl";
  int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) {
    perror(("fake libcuda: " + path).c_str());
    _exit(2);
  }
  int none = -1;
  if (log_file.compare_exchange_strong(none, file)) return file;
  close(file);  // another thread was first
  return none;
}

void append(std::string& line, uint64_t value) {
  char digits[24];
  line.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

void append_quoted(std::string& line, const char* text) {
  line += '"';
  for (; *text; ++text) {
    const auto c = static_cast<unsigned char>(*text);
    if (c == '"' || c == '\\') line += '\\';
    if (c >= 0x20) line += *text;
  }
  line += '"';
}

void append_words(std::string& line, uint64_t address, uint64_t bytes) {
  line += '[';
  for (uint64_t at = 0; at + 8 <= bytes; at += 8) {
    uint64_t value;
    memcpy(&value, reinterpret_cast<const char*>(address) + at, 8);
    if (at) line += ',';
    append(line, value);
  }
  line += ']';
}

void append_out(std::string& line, uint64_t address, uint16_t bytes) {
  if (address == 0) {
    line += "null";
    return;
  }
  uint64_t value = 0;
  memcpy(&value, reinterpret_cast<const void*>(address), bytes);
  append(line, value);
}

// Appends `,"key":[…]` with one element for each argument of this role; nothing if there is none.
template <typename Element>
void append_list(std::string& line, const FinishedCall& call, const char* key, Role role,
                 Element element) {
  bool first = true;
  for (int i = 0; i < call.symbol.argument_count; ++i) {
    if (call.symbol.arguments[i].role != role) continue;
    line += first ? std::string(",\"") + key + "\":[" : ",";
    first = false;
    element(i);
  }
  if (!first) line += ']';
}

void append_passed(std::string& line, const FinishedCall& call) {
  for (int i = 0; i < call.passed_count; ++i) {
    line += i ? ",\"" : ",\"by_value\":[\"";
    for (uint16_t at = 0; at < call.passed[i].bytes; ++at) {
      const auto byte = static_cast<const unsigned char*>(call.passed[i].value)[at];
      line += "0123456789abcdef"[byte >> 4];
      line += "0123456789abcdef"[byte & 15];
    }
    line += '"';
  }
  line += ']';
}

const char* name_of(Does does) {
  constexpr const char* kNames[] = {"kernel", "copy",  "set",         "alloc", "free",
                                    "host",   "graph", "conditional", "other"};
  return kNames[static_cast<size_t>(does)];
}

void append_dimensions(std::string& line, const char* key, const uint32_t (&size)[3]) {
  line += std::string(",\"") + key + "\":[";
  for (int i = 0; i < 3; ++i) {
    if (i) line += ',';
    append(line, size[i]);
  }
  line += ']';
}

void append_work(std::string& line, const Work& work) {
  line += std::string("{\"op\":\"") + name_of(work.does) + '"';
  if (work.does == Does::kernel) {
    line += ",\"kernel\":";
    append_quoted(line, work.kernel.c_str());
    append_dimensions(line, "grid", work.grid);
    append_dimensions(line, "block", work.block);
    line += ",\"shared\":";
    append(line, work.shared);
  } else if (work.does == Does::copy || work.does == Does::set || work.does == Does::alloc) {
    line += ",\"size\":";
    append(line, work.size);
  }
  line += '}';
}

void append_operations(std::string& line, const char* key,
                       const std::vector<const Work*>& operations) {
  line += std::string(",\"") + key + "\":[";
  for (const Work* work : operations) {
    if (work != operations.front()) line += ',';
    append_work(line, *work);
  }
  line += ']';
}

const char* name_of(Injection injection) {
  if (injection == Injection::after) return "after";
  return injection == Injection::before ? "before" : "under way";
}

std::string line_of(const FinishedCall& call) {
  const Argument* arguments = call.symbol.arguments;
  std::string line = std::string("{\"symbol\":\"") + call.symbol.name + "\",\"tid\":";
  append(line, static_cast<uint64_t>(syscall(SYS_gettid)));
  line += ",\"args\":[";
  for (int i = 0; i < call.symbol.argument_count; ++i) {
    if (i) line += ',';
    append(line, call.words[i]);
  }
  line += "],\"ret\":";
  append(line, call.status);
  line += ",\"outs\":[";
  bool first = true;
  for (int i = 0; i < call.symbol.argument_count && call.status == kSuccess; ++i) {
    if (arguments[i].role != Role::out) continue;
    if (!first) line += ',';
    first = false;
    append_out(line, call.words[i], arguments[i].bytes);
  }
  line += ']';
  append_list(line, call, "strings", Role::string, [&](int i) {
    if (call.words[i])
      append_quoted(line, reinterpret_cast<const char*>(call.words[i]));
    else
      line += "null";
  });
  append_list(line, call, "structs", Role::structure, [&](int i) {
    if (call.words[i])
      append_words(line, call.words[i], arguments[i].bytes);
    else
      line += "null";
  });
  append_list(line, call, "sizes", Role::sizes, [&](int i) {  // the next argument is their number
    if (call.words[i])
      append_words(line, call.words[i], call.words[i + 1] * 8);
    else
      line += "null";
  });
  append_list(line, call, "kernels", Role::function, [&](int i) {
    const char* name = function_name(reinterpret_cast<Handle>(call.words[i]));
    if (name)
      append_quoted(line, name);
    else
      line += "null";
  });
  if (call.passed_count > 0) append_passed(line, call);
  if (auto device = current_device()) {
    line += ",\"device\":";
    append(line, static_cast<uint64_t>(*device));
  }
  line += call.nested ? ",\"nested\":true" : ",\"nested\":false";
  if (call.captured) line += ",\"captured\":true";
  if (call.ran) line += *call.ran;
  line += std::string(",\"injection\":\"") + name_of(call.injection) + '"';
  line += ",\"begin_ns\":";
  append(line, call.begin_ns);
  line += ",\"end_ns\":";
  append(line, call.end_ns);
  return line + "}\n";
}

}  // namespace

std::string text_of_ran(const std::vector<const Work*>& once,
                        const std::vector<const Work*>& in_bodies) {
  std::string fields;
  append_operations(fields, "ran", once);
  if (!in_bodies.empty()) append_operations(fields, "bodies", in_bodies);
  return fields;
}

void log_call(const FinishedCall& call) {
  int file = log_file.load(std::memory_order_relaxed);
  if (file < 0) file = open_log();
  const std::string line = line_of(call);
  if (write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    perror("fake libcuda: write the log of calls");
    _exit(2);
  }
}

void restart_call_log() {
  const int file = log_file.exchange(-1);
  if (file >= 0) close(file);
}

}  // namespace fake
