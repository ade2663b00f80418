// nccl_calls LIBRARY [CALLS]: calls functions of this NCCL that do next to nothing, as often as
// that, and prints what one took: an empty group, and a question to a communicator of one rank.
#include <dlfcn.h>

#include <algorithm>
#include <vector>

#include "driver.hpp"

namespace {

template <typename Call>
double nanoseconds(long calls, Call call) {
  constexpr int ROUNDS = 20;
  std::vector<double> spent;
  for (int round = 0; round < ROUNDS; round++) {
    double begin = now();
    for (long i = 0; i < calls / ROUNDS; i++) call();
    spent.push_back((now() - begin) * 1e9 / static_cast<double>(calls / ROUNDS));
  }
  std::sort(spent.begin(), spent.end());
  return spent[spent.size() / 2];
}

template <typename Function>
Function* symbol(void* library, const char* name) {
  auto* found = reinterpret_cast<Function*>(dlsym(library, name));
  if (!found) {
    std::fprintf(stderr, "nccl_calls: %s\n", dlerror());
    std::exit(1);
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: nccl_calls LIBRARY [CALLS]\n");
    return 2;
  }
  const Device device;
  long calls = argc > 2 ? std::atol(argv[2]) : 200000;
  void* library = dlopen(argv[1], RTLD_NOW);
  if (!library) {
    std::fprintf(stderr, "nccl_calls: %s\n", dlerror());
    return 1;
  }
  auto* begin = symbol<int()>(library, "ncclGroupStart");
  auto* end = symbol<int()>(library, "ncclGroupEnd");
  auto* ask = symbol<int(void*, int*)>(library, "ncclCommUserRank");
  void* communicator = nullptr;
  if (symbol<int(void**, int, const int*)>(library, "ncclCommInitAll")(&communicator, 1, nullptr))
    return 1;
  int rank = -1;
  // Half of it, for there are two calls.
  double group = nanoseconds(calls, [&] { begin(), end(); }) / 2;
  double question = nanoseconds(calls, [&] { ask(communicator, &rank); });
  std::printf("an empty group's call %.1f ns, a question %.1f ns\n", group, question);
  return rank;
}
