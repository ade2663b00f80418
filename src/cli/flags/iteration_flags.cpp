#include "cli/flags/iteration_flags.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "cli/flags/one_of.hpp"
#include "cli/request/quantities.hpp"
#include "util/console/log.hpp"
#include "util/console/terminal.hpp"
#include "util/exit_codes.hpp"

namespace cudabpf::cli {

namespace {

constexpr const char* FIRST_STEADY = "first-steady";

Error refused(std::string_view option, std::string_view why) {
  return {fmt::format("--capture and {}: {}", option, why), {}, exit_code::USAGE};
}

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char digit) {
    return digit >= '0' && digit <= '9';
  });
}

}  // namespace

void IterationFlags::add_to(CLI::App& app) {
  app.add_option("--capture", folder,
                 "Capture one iteration of the program into DIR, for `cudabpf replay`: code, "
                 "parameters, memory. It holds weights and inputs. Implies --inside")
      ->type_name("DIR");
  app.add_option("--at", at,
                 "Which iteration is captured: its number, the first that begins after a time such "
                 "as 30s, or first-steady")
      ->type_name("N|TIME")
      ->capture_default_str();
  one_of(app.add_option("--contents", contents, "Whether the contents of memory are captured, too"),
         {"all", "none"})
      ->capture_default_str();
  app.add_option("--max-memory", most_memory,
                 "Capture nothing if the program holds more memory than this [any]")
      ->type_name("SIZE");
}

Result<std::unique_ptr<taping::Taper>> IterationFlags::taper(const CaptureFlags& capture) const {
  if (!any()) return std::unique_ptr<taping::Taper>();
  if (capture.no_returns) return refused("--no-returns", "what calls return is needed");
  if (capture.profile == "light")
    return refused("--profile light", "the default profile is needed");
  if (!capture.only.empty() || !capture.exclude.empty() || !capture.only_libraries.empty())
    return refused("--only, --exclude or --libraries", "all calls of libcuda are needed");
  if (capture.redact && contents == "all")
    return refused("--redact", "a capture holds all of the program's data; say --contents none");
  taping::Wanted wanted;
  wanted.folder = folder;
  wanted.contents = contents == "all";
  if (!most_memory.empty()) wanted.most_bytes = TRY(parse_size(most_memory, "--max-memory"));
  if (is_number(at)) {
    std::from_chars(at.data(), at.data() + at.size(), wanted.iteration);
    if (!wanted.iteration)
      return Error{"--at: iterations are counted from 1", {}, exit_code::USAGE};
  } else if (at != FIRST_STEADY) {
    wanted.after_ns = TRY(parse_duration(at, "--at"));
  }
  return std::make_unique<taping::Taper>(std::move(wanted));
}

void say_captured(const taping::Taper& taper) {
  std::vector<taping::Captured> all = taper.captured();
  bool any = std::any_of(all.begin(), all.end(), [](const auto& one) { return one.done; });
  for (const taping::Captured& captured : all) {
    // Frameworks have helpers that only look which GPUs there are.
    if (any && !captured.done && !captured.launches) continue;
    std::string of = all.size() > 1 ? fmt::format(" of pid {}", captured.pid) : "";
    if (!captured.done)
      log::warning("no iteration{} was captured: {}", of, captured.why_not);
    else
      log::hint("iteration {}{} is in {}: {} of {}, {} of memory; it stood still for {}",
                captured.iteration, of, captured.folder,
                count_of(captured.operations, "operation", "operations"),
                count_of(captured.kernels, "kernel", "kernels"), human_bytes(captured.bytes),
                human_time(captured.stood_ns));
  }
  if (all.empty()) log::warning("no iteration was captured: no process called cuInit");
  if (any)
    log::hint("a capture holds the program's weights, inputs and code; `cudabpf replay` runs it");
}

}  // namespace cudabpf::cli
