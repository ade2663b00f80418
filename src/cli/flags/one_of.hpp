// Options that take one word of a few.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class Option;
}

namespace cudabpf::cli {

// The words are checked, shown by --help and completed by shells: all from this one list.
CLI::Option* one_of(CLI::Option* option, const std::vector<std::string>& words);

}  // namespace cudabpf::cli
