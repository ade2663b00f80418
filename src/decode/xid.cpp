#include "cudabpf/xid.hpp"

#include <algorithm>
#include <charconv>

#include "cudabpf/driver.hpp"

namespace cudabpf {

namespace {

// Takes "key=value, " off the front of a message. Returns the value without quotes; empty if there
// is none or it is "<unknown>".
std::string_view take_value(std::string_view& message, std::string_view key) {
  if (!message.starts_with(key)) return {};
  std::string_view value = message.substr(key.size());
  value = value.substr(0, value.find(", "));
  message.remove_prefix(std::min(key.size() + value.size() + 2, message.size()));
  if (value.starts_with('\'')) value.remove_prefix(1);
  if (value.ends_with('\'')) value.remove_suffix(1);
  return value.starts_with('<') ? std::string_view{} : value;
}

std::optional<std::uint32_t> number_in(std::string_view text) {
  std::uint32_t number = 0;
  auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (bad != std::errc{} || end == text.data()) return std::nullopt;
  return number;
}

std::string_view after(std::string_view text, std::string_view what) {
  std::size_t at = text.find(what);
  return at == text.npos ? std::string_view{} : text.substr(at + what.size());
}

}  // namespace

GpuError describe_xid(std::uint32_t number, std::string_view device, std::string_view message) {
  GpuError error;
  error.xid = number;
  error.meaning = xid_meaning(number);
  error.device = device;
  while (!message.empty() && (message.back() == '\n' || message.back() == ' '))
    message.remove_suffix(1);
  error.pid = number_in(take_value(message, "pid="));
  error.comm = take_value(message, "name=");
  error.message = message;
  return error;
}

std::optional<GpuError> parse_xid(std::string_view line) {
  line = after(line, "NVRM: Xid (PCI:");
  std::string_view device = line.substr(0, line.find(')'));
  line = after(line, "): ");
  auto number = number_in(line);
  if (!number || device.empty()) return std::nullopt;
  line.remove_prefix(std::min(line.find_first_not_of("0123456789"), line.size()));
  line.remove_prefix(std::min(line.find_first_not_of(", "), line.size()));
  return describe_xid(*number, device, line);
}

}  // namespace cudabpf
