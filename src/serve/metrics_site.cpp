#include "serve/metrics_site.hpp"

#include <memory>
#include <string_view>

#include "serve/route.hpp"

namespace cudabpf::serve {

Answer MetricsSite::answer(const Request& request) {
  // A page that a browser shows may reach this machine by any name, where only programs on this
  // machine are to; from elsewhere, collectors use whatever name they have.
  bool is_meant = request.hosts.size() == 1 && address_.is_meant_by(request.hosts.front());
  if (address_.is_loopback() && !is_meant)
    return refused(403, "This server goes by another name: see --host-name.");
  if (!only_reads(request)) return refused_method("Metrics are only read here: GET and HEAD.");
  std::string_view path = path_in(request.target);
  if (path == "/") return refused(200, "cudabpf's metrics are at /metrics.");
  if (path != "/metrics") return refused(404, "Metrics are at /metrics.");
  Answer answer =
      answer_with(200, content_type_, std::make_shared<const std::string>(page_()), "no-store");
  add_policy(answer);
  return answer;
}

}  // namespace cudabpf::serve
