// Which pager shows a page that is longer than the screen.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace cudabpf::cli {

// Whose rights a pager would run with. It can start programs and open files, as its user likes.
enum class Rights {
  own,    // those of whoever sits there
  lent,   // another's, by sudo and the like, or root's: it must not be a way to a shell
  raised  // the program's own, by capabilities of its file: nothing is started with these
};
// The rights of this process, once it has become whoever called it.
Rights rights_of_this();
// `login`: as whom one logged in, as /proc/self/loginuid has it.
Rights rights_of(unsigned user, const std::vector<std::string>& environment,
                 const std::string& login);

struct Pager {
  std::vector<std::string> command;
  std::vector<std::string> environment;
};
// As the user wants it: CUDABPF_PAGER, PAGER, or less. None: it is empty or cat, there is no less,
// or the rights are not the user's and there is no less that can be kept from starting programs.
std::optional<Pager> pager_for(const std::vector<std::string>& environment, Rights rights);

}  // namespace cudabpf::cli
