// Lines of the program's own ranges, and of what was done in them.
#pragma once

#include <fmt/format.h>

#include <string>

inline std::string named(int number, const std::string& label, int around = 0,
                         const std::string& domain = "") {
  return fmt::format(R"({{"type":"range","op":"name","label":"{}","ts":1,"range":{}{}{}}})"
                     "\n",
                     label, number, around ? fmt::format(R"(,"in_range":{})", around) : "",
                     domain.empty() ? "" : fmt::format(R"(,"domain":"{}")", domain));
}
inline std::string range(int number, int ts, int us, const std::string& more = "") {
  return fmt::format(
      R"({{"type":"range","op":"push","label":"x","ts":{},"duration_us":{}.000,"pid":7,"tid":7,"range":{}{}}})"
      "\n",
      ts, us, number, more);
}
inline std::string launched_in(int id, int number) {
  return fmt::format(
      R"({{"id":{},"type":"kernel","op":"launch","name":"cuLaunchKernel","ts":{},"duration_us":1.000,"pid":7,"tid":7,"ret":0{},"stream":"0x0","async":true,"kernel":"k","grid":[1,1,1],"block":[1,1,1],"shared":0}})"
      "\n",
      id, 100 + id, number ? fmt::format(R"(,"range":{})", number) : "");
}
inline std::string worked(int call, int us) {
  return fmt::format(
      R"({{"type":"gpu","op":"kernel","ts":{},"duration_us":{}.000,"pid":7,"call":{},"stream":"0x0","queue":1,"kernel":"k","grid":[1,1,1],"block":[1,1,1],"shared":0,"device":0}})"
      "\n",
      1000 * call, us, call);
}
