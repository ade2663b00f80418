// Which iteration of a program `run` captures, and where to.
#pragma once

#include <memory>
#include <string>

#include "cli/flags/capture_flags.hpp"
#include "taping/taper.hpp"
#include "util/result.hpp"

namespace CLI {
class App;
}

namespace cudabpf::cli {

struct IterationFlags {
  std::string folder;  // empty: none is captured
  std::string at = "first-steady";
  std::string contents = "all";
  std::string most_memory;

  void add_to(CLI::App& app);
  bool any() const { return !folder.empty(); }
  // Null: none is captured.
  Result<std::unique_ptr<taping::Taper>> taper(const CaptureFlags& capture) const;
};

// What came of it, when the trace has ended.
void say_captured(const taping::Taper& taper);

}  // namespace cudabpf::cli
