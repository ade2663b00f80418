#include "settings.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "observe.hpp"

namespace fake {
namespace {

[[noreturn]] void refuse(const char* variable, std::string_view value, const char* wanted) {
  fprintf(stderr, "fake libcuda: %s=%.*s: expected %s\n", variable, static_cast<int>(value.size()),
          value.data(), wanted);
  _exit(2);
}

uint64_t number(const char* variable, std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const uint64_t value = strtoull(copy.c_str(), &end, 0);
  if (copy.empty() || *end) refuse(variable, text, "a number");
  return value;
}

int symbol_index(const char* variable, std::string_view name) {
  for (int i = 0; i < kSymbolCount; ++i) {
    if (name == kSymbols[i].name) return i;
  }
  refuse(variable, name, "a function that this library exports");
}

const char* value_of(const char* variable) {
  const char* value = getenv(variable);
  return value && *value ? value : nullptr;
}

// Calls `use` with each part of a comma-separated list.
template <typename Use>
void for_each_part(const char* variable, Use use) {
  const char* value = value_of(variable);
  if (!value) return;
  std::string_view rest = value;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    use(rest.substr(0, comma));
    rest = comma == rest.npos ? "" : rest.substr(comma + 1);
  }
}

uint64_t occurrence(const char* variable, std::string_view text) {
  if (text == "*") return kEveryCall;
  const uint64_t value = number(variable, text);
  if (value == 0) refuse(variable, text, "a call's number from 1, or *");
  return value;
}

void read_rules(Settings& settings) {
  for_each_part("FAKE_CUDA_LATENCY", [&](std::string_view part) {
    const char* name = "FAKE_CUDA_LATENCY";
    const size_t equals = part.find('=');
    if (equals == part.npos) refuse(name, part, "FUNCTION=NANOSECONDS");
    settings.delays.push_back(
        {symbol_index(name, part.substr(0, equals)), number(name, part.substr(equals + 1))});
  });
  for_each_part("FAKE_CUDA_FAIL", [&](std::string_view part) {
    const char* name = "FAKE_CUDA_FAIL";
    const size_t equals = part.find('='), at = part.find('@');
    if (equals == part.npos || at == part.npos || at < equals) {
      refuse(name, part, "FUNCTION=STATUS@NUMBER or FUNCTION=STATUS@*");
    }
    settings.failures.push_back(
        {symbol_index(name, part.substr(0, equals)), occurrence(name, part.substr(at + 1)),
         static_cast<Status>(number(name, part.substr(equals + 1, at - equals - 1)))});
  });
  for_each_part("FAKE_CUDA_HANG", [&](std::string_view part) {
    const char* name = "FAKE_CUDA_HANG";
    const size_t at = part.find('@'), equals = part.find('=');
    if (at == part.npos || equals < at) {
      refuse(name, part, "FUNCTION@NUMBER or FUNCTION@*, and =PATH if it ends");
    }
    settings.hangs.push_back(
        {symbol_index(name, part.substr(0, at)),
         occurrence(name, part.substr(at + 1, equals == part.npos ? equals : equals - at - 1)),
         std::string(equals == part.npos ? "" : part.substr(equals + 1))});
  });
}

bool is_driver_node(std::string_view name) {
  if (name == "nvidiactl" || name == "nvidia-uvm") return true;
  const std::string_view prefix = "nvidia", digits = "0123456789";
  return name.starts_with(prefix) && name.size() > prefix.size() &&
         name.find_first_not_of(digits, prefix.size()) == name.npos;
}

void read_driver(Settings& settings) {
  const char* variable = "FAKE_CUDA_DRIVER";
  const char* value = value_of(variable);
  if (!value || strcmp(value, "0") == 0) return;
  settings.driver = true;
  if (strcmp(value, "1") != 0) {
    for_each_part(variable, [&](std::string_view part) {
      const size_t equals = part.find('=');
      const std::string_view name = part.substr(0, equals);
      if (equals == part.npos || !is_driver_node(name)) {
        refuse(variable, part, "1, or a list of nvidiactl=PATH, nvidia0=PATH, nvidia-uvm=PATH");
      }
      settings.driver_paths[std::string(name)] = part.substr(equals + 1);
    });
  }
}

void read_driver_statuses(Settings& settings) {
  for_each_part("FAKE_CUDA_DRIVER_STATUS", [&](std::string_view part) {
    const char* name = "FAKE_CUDA_DRIVER_STATUS";
    const size_t equals = part.find('='), slash = part.find('/');
    if (equals == part.npos) refuse(name, part, "[uvm:]NUMBER[/CONTROL-OR-CLASS]=STATUS");
    DriverStatus rule = {};
    rule.status = static_cast<uint32_t>(number(name, part.substr(equals + 1)));
    std::string_view about = part.substr(0, equals);
    if (slash < equals) {
      rule.subject = static_cast<uint32_t>(number(name, about.substr(slash + 1)));
      about = about.substr(0, slash);
    }
    rule.uvm = about.starts_with("uvm:");
    if (rule.uvm) about.remove_prefix(4);
    rule.number = static_cast<uint32_t>(number(name, about));
    settings.driver_statuses.push_back(rule);
  });
}

Settings* read() {
  auto* result = new Settings;  // leaked: calls may come after exit() has begun
  if (const char* value = value_of("FAKE_CUDA_LOG")) result->log_directory = value;
  if (const char* value = value_of("FAKE_CUDA_COUNTS")) result->counts_directory = value;
  if (const char* value = value_of("FAKE_CUDA_MEMORY")) {
    result->memory = number("FAKE_CUDA_MEMORY", value);
  }
  if (const char* value = value_of("FAKE_CUDA_DEVICES")) {
    result->devices = static_cast<int>(number("FAKE_CUDA_DEVICES", value));
  }
  if (const char* value = value_of("FAKE_CUDA_NEST")) result->nest = strcmp(value, "0") != 0;
  if (const char* value = value_of("FAKE_CUDA_COMPUTE")) result->compute = strcmp(value, "0") != 0;
  if (const char* value = value_of("FAKE_CUDA_NAME_OFFSET")) {
    const bool nowhere = strcmp(value, "none") == 0;
    const uint64_t offset = nowhere ? 8 : number("FAKE_CUDA_NAME_OFFSET", value);
    if (offset < 8 || offset > 56 || offset % 8 != 0) {
      refuse("FAKE_CUDA_NAME_OFFSET", value, "a multiple of 8 from 8 to 56, or none");
    }
    result->name_offset = nowhere ? kNameNowhere : static_cast<int>(offset);
  }
  read_driver(*result);
  read_driver_statuses(*result);
  read_rules(*result);
  return result;
}

}  // namespace

const Settings& settings() {
  static const Settings* all = read();
  return *all;
}

}  // namespace fake
