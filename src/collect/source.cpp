#include "cudabpf/source.hpp"

#include <iterator>
#include <utility>

namespace cudabpf {

namespace {

template <typename T>
void append(std::vector<T>& all, std::vector<T>& more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

void News::add(News more) {
  append(libraries, more.libraries);
  append(losses, more.losses);
  append(gpu_errors, more.gpu_errors);
  append(gpu_samples, more.gpu_samples);
  if (more.driver) driver = more.driver;
}

}  // namespace cudabpf
