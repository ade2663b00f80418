// How text for people reaches them: as wide as their terminal, and if it is longer, in a pager.
#pragma once

#include <cstdio>
#include <string>

#include "util/page/page.hpp"
#include "util/result.hpp"

namespace cudabpf::cli {

// As wide as the terminal, also if a pipe stands between; for a file, wider than most.
Page page_for(std::FILE* to);

// With sudo, other users' traces may be opened, but they are not parsed as root, and the files made
// from them belong to the caller. With file capabilities, users can read only their own traces.
Result<> become_reader();

// Prints a text. If it is too long for the terminal, this process becomes a reader, and a pager
// shows the text; see pager_for().
void show(const std::string& text, std::FILE* to);

}  // namespace cudabpf::cli
