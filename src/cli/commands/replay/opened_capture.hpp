// What everything that `cudabpf replay` does begins and ends with.
#pragma once

#include <cstdio>
#include <string>

#include "bundle/folder.hpp"
#include "cli/reading_command.hpp"
#include "replay/tape.hpp"

namespace cudabpf::cli {

struct OpenedCapture {
  bundle::Folder folder;
  replay::Tape tape;
  const replay::Manifest& manifest() const { return folder.manifest(); }
};

inline Result<OpenedCapture> open_capture(const std::string& path) {
  auto folder = TRY(bundle::Folder::open(path));
  auto tape = TRY(replay::Tape::read(folder));
  return OpenedCapture{std::move(folder), std::move(tape)};
}

// `json` returns the answer as JSON; `text` puts it on a page.
template <typename Json, typename Text>
void print_result(bool as_json, Json json, Text text) {
  if (as_json) return print_json(json(), stdout);
  Page page = page_for(stdout);
  text(page);
  page.say_left_out();
  show(page.take(), stdout);
}

}  // namespace cudabpf::cli
