#include "util/http/url.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "util/whole_number.hpp"

namespace cudabpf::http {

namespace {

constexpr std::string_view PLAIN = "http://", ENCRYPTED = "https://";
constexpr std::size_t LONGEST = 2000;

bool is_port(std::string_view text) { return whole_number<std::uint16_t>(text).value_or(0) > 0; }

bool is_ip6(const std::string& text) {
  in6_addr address{};
  return ::inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

bool is_name(std::string_view text) {
  constexpr std::string_view MAY_HAVE =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
  return !text.empty() && text.find_first_not_of(MAY_HAVE) == text.npos;
}

// It goes into a request as it is.
bool is_visible(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

}  // namespace

Result<Url> Url::parse(const std::string& text, const std::string& flag,
                       const std::string& usual_target) {
  Error wrong{flag + " " + text + " is not a URL",
              "use http://HOST:PORT/PATH, as http://127.0.0.1:4318" + usual_target,
              exit_code::USAGE};
  if (text.starts_with(ENCRYPTED))
    return Error{flag + " " + text + ": cudabpf does not speak https",
                 "give the http:// URL of a collector or a proxy on this machine that does",
                 exit_code::USAGE};
  if (!text.starts_with(PLAIN) || text.size() > LONGEST || !is_visible(text)) return wrong;
  std::string_view rest = std::string_view(text).substr(PLAIN.size());
  std::size_t path = std::min(rest.find_first_of("/?#"), rest.size());
  std::string_view where = rest.substr(0, path), target = rest.substr(path);
  if (where.find('@') != where.npos)
    return Error{flag + " has a user's name in it, which cudabpf does not send",
                 "give the URL of a collector or a proxy on this machine that logs in",
                 exit_code::USAGE};
  if (target.starts_with('?') || target.find('#') != target.npos) return wrong;
  Url url{"", "80", target.empty() ? usual_target : std::string(target)};
  bool is_bracketed = where.starts_with('[') && where.find(']') != where.npos;
  std::size_t end = is_bracketed ? where.find(']') : std::min(where.find(':'), where.size());
  url.host = where.substr(is_bracketed, end - is_bracketed);
  std::string_view port = where.substr(end + is_bracketed);
  if (!port.empty()) {
    if (!port.starts_with(':') || !is_port(port.substr(1))) return wrong;
    url.port = port.substr(1);
  }
  if (is_bracketed ? !is_ip6(url.host) : !is_name(url.host)) return wrong;
  return url;
}

std::string Url::authority() const {
  bool is_bracketed = host.find(':') != host.npos;
  return (is_bracketed ? "[" + host + "]" : host) + ":" + port;
}

}  // namespace cudabpf::http
