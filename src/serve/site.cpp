#include "serve/site.hpp"

#include <fmt/format.h>

namespace cudabpf::serve {

Answer answer_with(unsigned status, const char* type, std::shared_ptr<const std::string> body,
                   const char* caching) {
  return {status,
          std::move(body),
          {{"Content-Type", type},
           {"Cache-Control", caching},
           {"X-Content-Type-Options", "nosniff"},
           {"Referrer-Policy", "no-referrer"},
           {"Cross-Origin-Opener-Policy", "same-origin"},
           {"Cross-Origin-Resource-Policy", "same-origin"}}};
}

void add_policy(Answer& answer, std::string_view policy) {
  answer.headers.emplace_back("Content-Security-Policy",
                              fmt::format("{}; frame-ancestors 'none'", policy));
}

Answer refused(unsigned status, std::string_view why) {
  constexpr const char* TEXT = "text/plain; charset=utf-8";
  Answer answer = answer_with(
      status, TEXT, std::make_shared<const std::string>(fmt::format("{}\n", why)), "no-store");
  add_policy(answer);
  return answer;
}

Answer refused_for_now(unsigned status, std::string_view why, std::uint64_t seconds) {
  Answer answer = refused(status, why);
  answer.headers.emplace_back("Retry-After", std::to_string(seconds));
  return answer;
}

Answer refused_method(std::string_view why, const char* allowed) {
  Answer answer = refused(405, why);
  answer.headers.emplace_back("Allow", allowed);
  return answer;
}

}  // namespace cudabpf::serve
