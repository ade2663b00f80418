// A folder of traces: a list, and a report of each.
#pragma once

#include <string>

#include "serve/address.hpp"
#include "serve/catalog.hpp"
#include "serve/reports.hpp"
#include "serve/site.hpp"

namespace cudabpf::serve {

class TracesSite : public Site {
 public:
  // An empty token: none is asked for.
  TracesSite(const Folder& folder, const Address& address, std::string token);

  Answer answer(const Request& request) override;
  void end() override { reports_.end(); }

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
