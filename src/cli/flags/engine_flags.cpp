#include "cli/flags/engine_flags.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "util/exit_codes.hpp"

namespace cudabpf::cli {

namespace {

constexpr std::size_t MAX_ENGINES = 16;  // each has a thread

}  // namespace

void EngineFlags::add_to(CLI::App& app, const std::string& needed) {
  auto* engine = app.add_option("--engine", urls,
                                "Also show the requests and tokens of this vLLM or SGLang server, "
                                "from its own metrics: http://HOST:PORT; may be repeated")
                     ->type_name("URL");
  if (!needed.empty()) engine->needs(needed);
}

Result<std::vector<http::Url>> EngineFlags::options() const {
  if (urls.size() > MAX_ENGINES)
    return Error{fmt::format("--engine: {} are too many", urls.size()),
                 fmt::format("give {} at most", MAX_ENGINES), exit_code::USAGE};
  std::vector<http::Url> engines;
  for (const std::string& text : urls) {
    auto url = TRY(http::Url::parse(text, "--engine", "/metrics"));
    auto is_same = [&](const http::Url& one) { return one.authority() == url.authority(); };
    if (std::any_of(engines.begin(), engines.end(), is_same))
      return Error{"--engine " + text + " is given twice",
                   "an engine is known by its host and its port", exit_code::USAGE};
    engines.push_back(std::move(url));
  }
  return engines;
}

}  // namespace cudabpf::cli
