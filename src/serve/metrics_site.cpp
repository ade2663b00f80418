#include "serve/metrics_site.hpp"

#include <memory>
#include <string_view>

#include "serve/route.hpp"
#include "serve/token.hpp"

namespace cudabpf::serve {

// Null: there are too many already.
std::shared_ptr<const std::string> MetricsSite::newest() {
  std::lock_guard lock(mutex_);
  if (last_ && std::chrono::steady_clock::now() - made_ < NEW) return last_;
  last_ = nullptr;
  std::erase_if(pages_, [](const auto& page) { return page.expired(); });
  if (pages_.size() >= MAX_PAGES) return nullptr;
  last_ = std::make_shared<const std::string>(page_());
  pages_.emplace_back(last_);
  made_ = std::chrono::steady_clock::now();
  return last_;
}

Answer MetricsSite::answer(const Request& request) {
  // A page that a browser shows may reach this machine by any name, where only programs on this
  // machine are to; from elsewhere, collectors use whatever name they have.
  bool is_meant = request.hosts.size() == 1 && address_.is_meant_by(request.hosts.front());
  if (address_.is_loopback() && !is_meant)
    return refused(403, "This server goes by another name: see --host-name.");
  std::string_view path = path_in(request.target);
  if (dump_ && path == "/dump") return answer_dump(request);
  if (!only_reads(request)) return refused_method("Metrics are only read here: GET and HEAD.");
  if (path == "/") return refused(200, "cudabpf's metrics are at /metrics.");
  if (path != "/metrics") return refused(404, "Metrics are at /metrics.");
  auto page = newest();
  if (!page)
    return refused_for_now(503, "Too many clients are reading pages: try again in a moment.");
  Answer answer = answer_with(200, content_type_, std::move(page), "no-store");
  add_policy(answer);
  return answer;
}

Answer MetricsSite::answer_dump(const Request& request) {
  if (request.method != "POST") return refused_method("A dump is asked for by POST.", "POST");
  if (is_bearer_of(token_, request.authorizations)) return dump_();
  Answer unknown = refused(401, "A dump takes the token: Authorization: Bearer TOKEN.");
  unknown.headers.emplace_back("WWW-Authenticate", "Bearer");
  return unknown;
}

}  // namespace cudabpf::serve
