// The short names of a trace's kernels, the same in all answers: those that `kernels` has, if all
// kernels are known before the first name is asked for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/read/line.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

class ShortNames {
 public:
  explicit ShortNames(const Names& names) : names_(names) {}

  // Learns the kernel of a launch, those of a graph, or the one that a GPU ran.
  void line(const Line& line);
  // Names all that were learned.
  void settle();
  // One that was not learned has its function's name.
  std::string of(Name kernel) const;
  // For streaming use: a kernel learned after settle() is distinguished only from some earlier
  // ones.
  std::string_view learned(Name kernel) {
    learn(kernel);
    return short_[places_[kernel.id]];
  }

 private:
  // A trace may have any number of kernels. Those beyond MAX_DISTINGUISHED have their function's
  // name.
  static constexpr std::size_t MAX_DISTINGUISHED = 1 << 15, NAMESAKES = 16, LATE = 1024;

  void learn(Name kernel) {
    if (kernel.id >= places_.size()) places_.resize(names_.size());
    if (!places_[kernel.id]) add(kernel);
  }
  void add(Name kernel);

  const Names& names_;
  std::vector<std::uint32_t> places_;  // in the two below, by the kernel's name; 0: not learned
  std::vector<std::string> short_{""};
  std::vector<Name> kernels_{Name{}};
  bool settled_ = false;
  std::size_t late_ = 0;
  HashMap<std::string, std::vector<Name>> namesakes_;  // by the function's name
};

}  // namespace cudabpf::analyze
