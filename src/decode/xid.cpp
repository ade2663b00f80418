#include "decode/xid.hpp"

#include <algorithm>
#include <charconv>

#include "decode/driver.hpp"

namespace cudabpf {

namespace {

// What follows `key` up to a comma, without quotes; empty if there is none, or it is "<unknown>".
std::string_view value_of(std::string_view message, std::string_view key) {
  std::size_t at = message.find(key);
  if (at == message.npos) return {};
  std::string_view value = message.substr(at + key.size());
  value = value.substr(0, value.find(','));
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
  error.message = message;
  error.pid = number_in(value_of(message, "pid="));
  error.comm = value_of(message, "name=");
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
