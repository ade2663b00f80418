// What is answered to a request, whatever brings it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/address.hpp"
#include "serve/catalog.hpp"
#include "serve/reports.hpp"

namespace cudabpf::serve {

struct Request {
  std::string method, target;
  std::vector<std::string> hosts;  // every Host header that it has: one is right
  std::string cookies, if_none_match;
  IsWanted is_wanted;  // whether the client is still there
};

struct Answer {
  unsigned status = 200;
  std::shared_ptr<const std::string> body;  // null: none
  std::vector<std::pair<std::string, std::string>> headers;
};

class Site {
 public:
  // An empty token: none is asked for.
  Site(const Folder& folder, const Address& address, std::string token);

  Answer answer(const Request& request);
  // Nobody is to wait for a report any more.
  void end() { reports_.end(); }

 private:
  Answer answer_route(const Request& request);
  Answer list();
  Answer traces();
  Answer report(const std::string& name, const Request& request);

  const Address& address_;
  std::string token_;
  Catalog catalog_;
  Reports reports_;
};

}  // namespace cudabpf::serve
