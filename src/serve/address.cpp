#include "serve/address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>

#include "util/exit_codes.hpp"
#include "util/whole_number.hpp"

namespace cudabpf::serve {

namespace {

// A host and a port. The host of IPv6 stands in brackets.
struct HostAndPort {
  std::string_view host, port;
  bool bracketed = false;
};

std::optional<HostAndPort> split(std::string_view text) {
  HostAndPort parts;
  if (text.starts_with('[')) {
    std::size_t end = text.find(']');
    if (end == text.npos) return std::nullopt;
    parts = {text.substr(1, end - 1), text.substr(end + 1), true};
  } else {
    std::size_t colon = std::min(text.find(':'), text.size());
    parts = {text.substr(0, colon), text.substr(colon), false};
  }
  if (parts.port.empty()) return parts;
  if (!parts.port.starts_with(':')) return std::nullopt;
  parts.port.remove_prefix(1);
  return parts;
}

struct Numbers {
  sockaddr_storage address{};
  socklen_t size = 0;
};

template <typename Family>
void put(Numbers& numbers, const Family& address) {
  std::memcpy(&numbers.address, &address, sizeof(address));
  numbers.size = sizeof(address);
}

std::optional<Numbers> numbers_of(const HostAndPort& parts) {
  Numbers numbers;
  std::string host(parts.host);
  if (parts.bracketed) {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    if (::inet_pton(AF_INET6, host.c_str(), &six.sin6_addr) != 1) return std::nullopt;
    put(numbers, six);
    return numbers;
  }
  sockaddr_in four{};
  four.sin_family = AF_INET;
  if (::inet_pton(AF_INET, host.c_str(), &four.sin_addr) != 1) return std::nullopt;
  put(numbers, four);
  return numbers;
}

// Parts of a sockaddr_storage are copied: its types may not be pointed at as another.
template <typename Family>
Family as(const sockaddr_storage& address) {
  Family copy{};
  std::memcpy(&copy, &address, sizeof(copy));
  return copy;
}

bool same_host(const sockaddr_storage& a, const sockaddr_storage& b) {
  if (a.ss_family != b.ss_family) return false;
  if (a.ss_family == AF_INET)
    return as<sockaddr_in>(a).sin_addr.s_addr == as<sockaddr_in>(b).sin_addr.s_addr;
  auto six_a = as<sockaddr_in6>(a).sin6_addr, six_b = as<sockaddr_in6>(b).sin6_addr;
  return std::memcmp(&six_a, &six_b, sizeof(six_a)) == 0;
}

bool leads_back(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET)
    return ntohl(as<sockaddr_in>(address).sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  auto six = as<sockaddr_in6>(address).sin6_addr;
  return std::memcmp(&six, &in6addr_loopback, sizeof(six)) == 0;
}

std::string lower(std::string_view text) {
  std::string small(text);
  for (char& c : small)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  return small;
}

bool is_localhost(std::string_view host) { return lower(host) == "localhost"; }

std::string text_of(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    auto four = as<sockaddr_in>(address).sin_addr;
    return ::inet_ntop(AF_INET, &four, text, sizeof(text));
  }
  auto six = as<sockaddr_in6>(address).sin6_addr;
  return std::string("[") + ::inet_ntop(AF_INET6, &six, text, sizeof(text)) + "]";
}

bool is_of_link(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET)
    return ntohl(as<sockaddr_in>(address).sin_addr.s_addr) >> 16 == 0xa9fe;  // 169.254.0.0/16
  auto six = as<sockaddr_in6>(address).sin6_addr;
  return IN6_IS_ADDR_LINKLOCAL(&six);
}

// The first of the machine's that others may reach; empty: it has none.
std::string own_address(sa_family_t family) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return {};
  std::string text;
  for (const ifaddrs* one = all; one && text.empty(); one = one->ifa_next) {
    if (!one->ifa_addr || one->ifa_addr->sa_family != family || !(one->ifa_flags & IFF_UP))
      continue;
    sockaddr_storage address{};
    std::memcpy(&address, one->ifa_addr,
                family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    if (!leads_back(address) && !is_of_link(address)) text = text_of(address);
  }
  ::freeifaddrs(all);
  return text;
}

}  // namespace

Result<Address> Address::parse(const std::string& text) {
  Error wrong{"--listen " + text + " is not an address",
              "use IP:PORT, as 127.0.0.1:8077, [::1]:8077 or 0.0.0.0:8077", exit_code::USAGE};
  auto parts = split(text);
  if (!parts) return wrong;
  if (is_localhost(parts->host) && !parts->bracketed) parts->host = "127.0.0.1";
  auto numbers = numbers_of(*parts);
  std::uint16_t port = 0;
  if (!numbers || !read_number(parts->port, port)) return wrong;
  Address address;
  address.address_ = numbers->address;
  address.size_ = numbers->size;
  // The port is at the same place for both families.
  auto four = as<sockaddr_in>(address.address_);
  four.sin_port = htons(port);
  std::memcpy(&address.address_, &four, offsetof(sockaddr_in, sin_addr));
  return address;
}

bool Address::is_loopback() const { return leads_back(address_); }

bool Address::is_any() const {
  if (address_.ss_family == AF_INET) return as<sockaddr_in>(address_).sin_addr.s_addr == INADDR_ANY;
  auto six = as<sockaddr_in6>(address_).sin6_addr;
  return std::memcmp(&six, &in6addr_any, sizeof(six)) == 0;
}

unsigned Address::port() const { return ntohs(as<sockaddr_in>(address_).sin_port); }

std::string Address::host_text() const { return text_of(address_); }

Result<> Address::add_name(const std::string& name) {
  constexpr std::string_view MAY_HAVE = "abcdefghijklmnopqrstuvwxyz0123456789-._";
  std::string host = lower(name);
  if (host.empty() || host.find_first_not_of(MAY_HAVE) != std::string::npos)
    return Error{"--host-name " + name + " is not the name of a host",
                 "give it without a scheme, a port and a path: gpu-node-17.example.com",
                 exit_code::USAGE};
  names_.push_back(host);
  return ok();
}

std::string Address::url() const {
  std::string host = host_text();
  if (is_any()) host = !names_.empty() ? names_.front() : own_address(address_.ss_family);
  if (host.empty()) host = address_.ss_family == AF_INET ? "127.0.0.1" : "[::1]";
  return "http://" + host + ":" + std::to_string(port()) + "/";
}

bool Address::is_meant_by(std::string_view host) const {
  auto parts = split(host);
  if (!parts || parts->port.find_first_not_of("0123456789") != parts->port.npos) return false;
  if (!parts->bracketed &&
      std::find(names_.begin(), names_.end(), lower(parts->host)) != names_.end())
    return true;
  if (!parts->bracketed && is_localhost(parts->host)) return is_loopback() || is_any();
  auto numbers = numbers_of(*parts);
  if (!numbers) return false;
  // A number cannot be made to lead elsewhere.
  if (is_any() || same_host(numbers->address, address_)) return true;
  return is_loopback() && leads_back(numbers->address);
}

Result<Fd> Address::listen() {
  Fd fd(::socket(address_.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno_error("cannot listen at " + text());
  int yes = 1;
  // A server that was ended a moment ago does not keep the port.
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (address_.ss_family == AF_INET6)
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
  auto* where = reinterpret_cast<sockaddr*>(&address_);
  if (::bind(fd.get(), where, size_) != 0 || ::listen(fd.get(), SOMAXCONN) != 0)
    return errno_error("cannot listen at " + text(),
                       errno == EADDRINUSE
                           ? "another program does; give another port: --listen 127.0.0.1:0 takes "
                             "one that is free"
                       : errno == EACCES ? "ports below 1024 are the system's: give a higher one"
                                         : "");
  socklen_t size = size_;
  if (::getsockname(fd.get(), where, &size) != 0) return errno_error("cannot listen at " + text());
  return fd;
}

}  // namespace cudabpf::serve
