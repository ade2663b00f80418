// Metrics, for whoever collects them: /metrics. And dumps of what is kept in memory, for whoever
// has a token: POST /dump.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "serve/address.hpp"
#include "serve/site.hpp"

namespace cudabpf::serve {

class MetricsSite : public Site {
 public:
  using Page = std::function<std::string()>;
  MetricsSite(const Address& address, const char* content_type, Page page)
      : address_(address), content_type_(content_type), page_(std::move(page)) {}

  // Before the first request. `dump` asks for one, and says what is answered.
  using Dump = std::function<Answer()>;
  void take_dumps(std::string token, Dump dump) {
    token_ = std::move(token);
    dump_ = std::move(dump);
  }

  Answer answer(const Request& request) override;

 private:
  Answer answer_dump(const Request& request);

  const Address& address_;
  const char* content_type_;
  Page page_;
  std::string token_;
  Dump dump_;  // null: nobody may ask for dumps

  // One page is made at a time, and given to all who ask while it is new. Who reads slowly keeps
  // one alive, so there is a limit.
  static constexpr std::size_t MAX_PAGES = 8;
  static constexpr std::chrono::milliseconds NEW{100};
  std::shared_ptr<const std::string> newest();
  std::mutex mutex_;
  std::vector<std::weak_ptr<const std::string>> pages_;  // that are being read
  std::shared_ptr<const std::string> last_;
  std::chrono::steady_clock::time_point made_;
};

}  // namespace cudabpf::serve
