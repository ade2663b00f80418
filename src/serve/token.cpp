#include "serve/token.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

namespace cudabpf::serve {

Result<std::string> new_token() {
  std::array<std::uint8_t, 16> bytes{};
  ssize_t got = 0;
  do got = ::getrandom(bytes.data(), bytes.size(), 0);
  while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(bytes.size())) return errno_error("making a token");
  std::string token;
  for (std::uint8_t byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

bool is_token(std::string_view token, std::string_view given) {
  // That it is shorter or longer is no secret: the length of all tokens is known.
  if (token.empty() || token.size() != given.size()) return false;
  volatile unsigned differs = 0;
  for (std::size_t i = 0; i < token.size(); i++)
    differs = differs | static_cast<unsigned char>(token[i] ^ given[i]);
  return differs == 0;
}

std::string cookie_name(std::string_view host) {
  std::size_t digits = host.find_last_not_of("0123456789") + 1;
  bool has_port = digits && host[digits - 1] == ':' && digits < host.size();
  return fmt::format("cudabpf_token_{}", has_port ? host.substr(digits) : "80");
}

std::string_view token_in_cookies(std::string_view cookies, std::string_view name) {
  while (!cookies.empty()) {
    std::size_t end = cookies.find(';');
    std::string_view one = cookies.substr(0, end);
    cookies = end == cookies.npos ? std::string_view() : cookies.substr(end + 1);
    one.remove_prefix(std::min(one.find_first_not_of(' '), one.size()));
    if (one.starts_with(name) && one.substr(name.size()).starts_with('='))
      return one.substr(name.size() + 1);
  }
  return {};
}

std::string cookie_of(std::string_view token, std::string_view name) {
  // Not Strict: the printed address may be opened from another site, such as a chat.
  return fmt::format("{}={}; Path=/; HttpOnly; SameSite=Lax", name, token);
}

}  // namespace cudabpf::serve
