#include "serve/token.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdint>

namespace cudabpf::serve {

namespace {

constexpr std::string_view COOKIE = "cudabpf_token";

}  // namespace

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

std::string_view token_in_cookies(std::string_view cookies) {
  while (!cookies.empty()) {
    std::size_t end = cookies.find(';');
    std::string_view one = cookies.substr(0, end);
    cookies = end == cookies.npos ? std::string_view() : cookies.substr(end + 1);
    one.remove_prefix(std::min(one.find_first_not_of(' '), one.size()));
    if (one.starts_with(COOKIE) && one.substr(COOKIE.size()).starts_with('='))
      return one.substr(COOKIE.size() + 1);
  }
  return {};
}

std::string cookie_of(std::string_view token) {
  // Not Strict: the printed address may be opened from another site, such as a chat.
  return fmt::format("{}={}; Path=/; HttpOnly; SameSite=Lax", COOKIE, token);
}

}  // namespace cudabpf::serve
