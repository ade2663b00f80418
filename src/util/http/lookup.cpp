#include "util/http/lookup.hpp"

#include <netdb.h>
#include <strings.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <mutex>
#include <sstream>
#include <system_error>
#include <utility>

#include "util/system/event_fd.hpp"
#include "util/system/threads.hpp"

namespace cudabpf::http {

namespace {

constexpr std::size_t MAX_ADDRESSES = 8;

Result<Lookup::Addresses> resolved(const Url& url, int flags) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  int failed = ::getaddrinfo(url.host.c_str(), url.port.c_str(), &wanted, &found);
  if (failed) return Error{url.host + ": " + ::gai_strerror(failed)};
  Lookup::Addresses addresses;
  for (const addrinfo* one = found; one && addresses.size() < MAX_ADDRESSES; one = one->ai_next) {
    SocketAddress& address = addresses.emplace_back();
    address.size = std::min<socklen_t>(one->ai_addrlen, sizeof(address.address));
    std::memcpy(&address.address, one->ai_addr, address.size);
  }
  ::freeaddrinfo(found);
  return addresses;
}

Result<Lookup::Addresses> in_hosts(const Url& url) {
  Lookup::Addresses addresses;
  for (const std::string& number : numbers_in_hosts("/etc/hosts", url.host)) {
    auto found = resolved({number, url.port, url.target}, AI_NUMERICHOST);
    if (found && addresses.size() < MAX_ADDRESSES)
      addresses.insert(addresses.end(), found->begin(), found->end());
  }
  if (!addresses.empty()) return addresses;
  return Error{url.host + " is not in /etc/hosts, and the static binary looks nowhere else"};
}

}  // namespace

class Lookup::UnderWay {
 public:
  void take(Result<Addresses> answer) {
    {
      std::lock_guard lock(mutex_);
      answer_ = std::move(answer);
    }
    done_.set();
  }
  const EventFd& done() const { return done_; }  // can be read from when there is an answer
  Result<Addresses> answer() {
    std::lock_guard lock(mutex_);
    return answer_;
  }

 private:
  const EventFd done_ = EventFd::make();
  std::mutex mutex_;
  Result<Addresses> answer_ = Addresses();
};

std::vector<std::string> numbers_in_hosts(const std::string& path, const std::string& name) {
  std::vector<std::string> numbers;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string number, word;
    words >> number;
    while (words >> word)
      if (::strcasecmp(word.c_str(), name.c_str()) == 0) numbers.push_back(number);
  }
  return numbers;
}

Result<Lookup::Addresses> Lookup::addresses(const Patience& patience) {
  if (auto numbers = resolved(url_, AI_NUMERICHOST)) return numbers;
  bool has_loader = ::getauxval(AT_BASE) != 0;
  if (!has_loader) return in_hosts(url_);
  if (!under_way_) {
    auto begun = std::make_shared<UnderWay>();
    if (!begun->done()) return errno_error("looking up " + url_.host);
    try {
      thread_without_signals([begun, url = url_] { begun->take(resolved(url, 0)); }).detach();
    } catch (const std::system_error&) {
      return Error{"looking up " + url_.host + ": there are too many threads"};
    }
    under_way_ = std::move(begun);
  }
  auto came = patience.wait(under_way_->done().get(), POLLIN);
  if (!came) return Error{"looking up " + url_.host + ": " + came.error().message};
  return std::exchange(under_way_, nullptr)->answer();
}

}  // namespace cudabpf::http
