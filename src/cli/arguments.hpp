// The command line as the parser takes it.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cudabpf::cli {

// The last comes first, as the parser wants it. It forgets where a "--" stood, which for `diff`
// matters: there it separates the traces of the two sides, and becomes --to.
std::vector<std::string> arguments_of(int argc, const char* const* argv);

// Whether this word is the value of an option that can also stand alone: --sample 50, --gpu graphs.
bool is_value_of(const std::string& option, const std::string& word);

// "--sample 50" becomes "--sample=50", which is how the parser takes a value that may be left out;
// so does "--gpu graphs". Where a command may follow without "--", only the first of its words
// count.
void join_optional_values(std::vector<std::string>& arguments);

// The parser splits "[a, b]" into two arguments, even of a command. So what begins like that is
// given to it with a mark at its end, which every option takes off again.
void keep_brackets(std::vector<std::string>& arguments);
void take_kept_brackets(CLI::App& app);

}  // namespace cudabpf::cli
