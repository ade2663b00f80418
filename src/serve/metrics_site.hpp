// Metrics, for whoever collects them: /metrics.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "serve/address.hpp"
#include "serve/site.hpp"

namespace cudabpf::serve {

class MetricsSite : public Site {
 public:
  // `page` may be called on several threads at once.
  MetricsSite(const Address& address, const char* content_type, std::function<std::string()> page)
      : address_(address), content_type_(content_type), page_(std::move(page)) {}

  Answer answer(const Request& request) override;

 private:
  const Address& address_;
  const char* content_type_;
  std::function<std::string()> page_;
};

}  // namespace cudabpf::serve
