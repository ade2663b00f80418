// What is answered to a request, whatever brings it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cudabpf::serve {

struct Request {
  std::string method, target;
  std::vector<std::string> hosts;  // every Host header that it has: one is right
  std::string cookies, if_none_match;
  std::function<bool()> is_wanted;  // whether the client is still there
  std::vector<std::string> authorizations = {};
};

struct Answer {
  unsigned status = 200;
  std::shared_ptr<const std::string> body;  // null: none
  std::vector<std::pair<std::string, std::string>> headers;
};

class Site {
 public:
  virtual ~Site() = default;
  // Called on a thread for each connection.
  virtual Answer answer(const Request& request) = 0;
  // Nobody is to wait for an answer any more.
  virtual void end() {}
};

// Browsers may neither guess what it is nor show it within another site's page.
Answer answer_with(unsigned status, const char* type, std::shared_ptr<const std::string> body,
                   const char* caching);
// Pages bring a policy of their own. Anything else may load nothing at all.
void add_policy(Answer& answer, std::string_view policy = "default-src 'none'");
// With a line that says why.
Answer refused(unsigned status, std::string_view why);
// Says after how many seconds it may be otherwise.
Answer refused_for_now(unsigned status, std::string_view why, std::uint64_t seconds = 5);
Answer refused_method(std::string_view why, const char* allowed = "GET, HEAD");
inline bool only_reads(const Request& request) {
  return request.method == "GET" || request.method == "HEAD";
}

}  // namespace cudabpf::serve
