#include "serve/traces_site.hpp"

#include <fmt/format.h>

#include "serve/route.hpp"
#include "serve/token.hpp"
#include "util/text/json.hpp"

namespace cudabpf::serve {

namespace {

constexpr std::string_view LIST_PAGE =
#include "list_page.inc"
    ;
constexpr const char *HTML = "text/html; charset=utf-8", *JSON = "application/json";

// The policy that a page brings with it, which has the hashes of its script and style.
std::string_view policy_in(std::string_view page) {
  constexpr std::string_view BEFORE = "http-equiv=\"Content-Security-Policy\" content=\"";
  std::size_t begin = page.find(BEFORE);
  if (begin == page.npos) return "default-src 'none'";
  page.remove_prefix(begin + BEFORE.size());
  return page.substr(0, page.find('"'));
}

// Whether a client has what the tag is of. The tags of an If-None-Match stand in a row.
bool has_already(std::string_view if_none_match, std::string_view tag) {
  return if_none_match.find(tag) != if_none_match.npos;
}

}  // namespace

TracesSite::TracesSite(const Folder& folder, const Address& address, std::string token)
    : address_(address), token_(std::move(token)), catalog_(folder), reports_(folder) {}

Answer TracesSite::answer(const Request& request) {
  if (request.hosts.size() != 1)
    return refused(400, "A request has one Host header, and this one has none, or several.");
  if (!address_.is_meant_by(request.hosts.front()))
    return refused(403, "This server goes by another name: open the address that cudabpf printed.");
  if (!only_reads(request)) return refused_method("Traces are only read here: GET and HEAD.");
  if (token_.empty()) return answer_route(request);
  std::string cookie = cookie_name(request.hosts.front());
  if (is_token(token_, token_in(request.target))) {
    Answer answer = refused(303, "The token is kept as a cookie.");
    // Only a path that is known to lead somewhere is repeated.
    bool leads = route_of(request.target).to != Route::To::nothing;
    answer.headers.emplace_back("Location", leads ? std::string(path_in(request.target)) : "/");
    answer.headers.emplace_back("Set-Cookie", cookie_of(token_, cookie));
    return answer;
  }
  if (!is_token(token_, token_in_cookies(request.cookies, cookie)))
    return refused(401, "Open the address that cudabpf printed, with its token.");
  return answer_route(request);
}

Answer TracesSite::answer_route(const Request& request) {
  Route route = route_of(request.target);
  switch (route.to) {
    case Route::To::list:
      return list();
    case Route::To::traces:
      return traces();
    case Route::To::report:
      return report(route.name, request);
    case Route::To::nothing:
      break;
  }
  return refused(404, "There is nothing here.");
}

Answer TracesSite::list() {
  static const auto PAGE = std::make_shared<const std::string>(LIST_PAGE);
  Answer answer = answer_with(200, HTML, PAGE, "no-cache");
  add_policy(answer, policy_in(LIST_PAGE));
  return answer;
}

Answer TracesSite::traces() {
  auto list = catalog_.list();
  if (!list) return refused(500, list.error().message);
  std::string text =
      json::without_invisible(list->dump(-1, ' ', false, analyze::Json::error_handler_t::replace));
  Answer answer =
      answer_with(200, JSON, std::make_shared<const std::string>(std::move(text)), "no-store");
  add_policy(answer);
  return answer;
}

Answer TracesSite::report(const std::string& name, const Request& request) {
  constexpr const char* GONE = "There is no such trace in the folder.";
  auto trace = catalog_.find(name);
  if (!trace) return refused(404, GONE);
  std::string tag = tag_of(*trace, false), running = tag_of(*trace, true);
  if (trace->was_just_written() && has_already(request.if_none_match, running)) tag = running;
  if (has_already(request.if_none_match, tag)) {
    Answer answer = answer_with(304, HTML, nullptr, "private, no-cache");
    answer.headers.emplace_back("ETag", tag);
    return answer;
  }
  Reports::Answer made = reports_.get(*trace, request.is_wanted);
  switch (made.outcome) {
    case Reports::Outcome::busy:
      return refused_for_now(
          503, "This server is making as many reports as it can: try again in a moment.");
    case Reports::Outcome::given_up:
      return refused_for_now(503, "This report was given up: try again in a moment.");
    case Reports::Outcome::failed:
      return catalog_.find(name) ? refused(422, made.why) : refused(404, GONE);
    case Reports::Outcome::made:
      break;
  }
  Answer answer = answer_with(200, HTML, made.page, "private, no-cache");
  answer.headers.emplace_back("ETag", made.says_running ? running : tag);
  add_policy(answer, policy_in(*made.page));
  return answer;
}

}  // namespace cudabpf::serve
