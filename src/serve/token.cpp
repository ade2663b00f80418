#include "serve/token.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "util/sha256.hpp"
#include "util/system/fd.hpp"

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

Result<std::string> token_in_file(const std::string& path) {
  constexpr std::size_t SHORTEST = 16, LONGEST = 1024;
  auto refusal = [&](const char* why, const char* hint) {
    return Error{fmt::format("the token in {} is not used: {}", path, why), hint, exit_code::USAGE};
  };
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat is {};
  if (!file || ::fstat(file.get(), &is) != 0)
    return errno_error("cannot read the token in " + path, "name a file that has one");
  if (!S_ISREG(is.st_mode)) return refusal("that is not a regular file", "");
  if (is.st_mode & S_IRWXO)
    return refusal("every user may use that file", "take that right away: chmod o= FILE");
  std::string text(LONGEST + 2, '\0');
  ssize_t got = ::read(file.get(), text.data(), text.size());
  if (got < 0) return errno_error("cannot read the token in " + path, "name a file that has one");
  text.resize(static_cast<std::size_t>(got));
  if (text.ends_with('\n')) text.pop_back();
  bool is_plain = std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 127; });
  if (text.size() < SHORTEST || text.size() > LONGEST || !is_plain)
    return refusal("a token has 16 to 1024 visible ASCII characters",
                   "make one: openssl rand -hex 16");
  return text;
}

bool is_bearer_of(std::string_view token, const std::vector<std::string>& authorizations) {
  constexpr std::string_view SCHEME = "bearer ";
  if (token.empty() || authorizations.size() != 1) return false;
  std::string_view given = authorizations.front();
  if (given.size() < SCHEME.size() ||
      ::strncasecmp(given.data(), SCHEME.data(), SCHEME.size()) != 0)
    return false;
  given.remove_prefix(SCHEME.size());
  given.remove_prefix(std::min(given.find_first_not_of(' '), given.size()));
  return is_token(sha256_hex(token), sha256_hex(given));
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
