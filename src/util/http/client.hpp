// Asks one server by plain HTTP/1.1: one request at a time, each with a connection of its own and a
// limit on how long all of it takes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "util/http/answer_reader.hpp"
#include "util/http/lookup.hpp"
#include "util/http/patience.hpp"
#include "util/http/url.hpp"
#include "util/system/fd.hpp"

namespace cudabpf::http {

class Client {
 public:
  Client(Url url, std::size_t most_body)
      : url_(std::move(url)), most_body_(most_body), lookup_(url_) {}

  const Url& url() const { return url_; }
  // Redirections are not followed.
  Result<Answer> get(std::string_view accepted, const Patience& patience);
  Result<Answer> post(std::string_view content_type, std::string_view body,
                      const Patience& patience);

 private:
  std::string head(std::string_view method) const;
  Result<Answer> ask(std::string_view head, std::string_view body, const Patience& patience);
  Result<Fd> connect(const Patience& patience);

  const Url url_;
  const std::size_t most_body_;
  Lookup lookup_;
};

}  // namespace cudabpf::http
