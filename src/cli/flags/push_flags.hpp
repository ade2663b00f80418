// Where metrics are pushed, and how often, as a user gives it.
#pragma once

#include <optional>
#include <string>

#include "push/pusher.hpp"
#include "util/result.hpp"

namespace CLI {
class App;
}

namespace cudabpf::cli {

struct PushFlags {
  std::string url, every = "15s";
  std::string instance;  // empty: by this machine's name and the port of its metrics

  bool is_given() const { return !url.empty(); }
  // With these the App has three options, which need this other one, if it is not empty.
  void add_to(CLI::App& app, const std::string& needed);
  // Nothing: they are not pushed.
  Result<std::optional<push::Options>> options() const;
};

}  // namespace cudabpf::cli
