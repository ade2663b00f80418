// empty_probes [--entry-alone|--session] LIBRARY SYMBOL… -- CMD…: runs CMD while empty BPF programs
// are attached to the entry and the return of each SYMBOL (`all`: every function whose name begins
// with cu).
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "collect/bpf/uprobe_multi.hpp"
#include "cudabpf/api.hpp"
#include "floor.skel.h"
#include "util/elf/elf.hpp"

namespace {

bool attach(bpf_program* program, const char* library, const cudabpf::UprobePlaces& places,
            cudabpf::UprobeEnd end) {
  static std::vector<cudabpf::Fd> links;
  links.push_back(cudabpf::link_uprobes(bpf_program__fd(program), library, end, places));
  if (links.back()) return true;
  std::fprintf(stderr, "empty_probes: attaching to %s: %s\n", library, std::strerror(errno));
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  bool entry_alone = argc > 1 && std::strcmp(argv[1], "--entry-alone") == 0;
  bool session = argc > 1 && std::strcmp(argv[1], "--session") == 0;
  if (entry_alone || session) argv++, argc--;
  std::vector<std::string> arguments(argv + 1, argv + argc);
  auto separator = std::find(arguments.begin(), arguments.end(), "--");
  if (arguments.size() < 4 || separator == arguments.end()) {
    std::fprintf(stderr, "usage: empty_probes [--entry-alone|--session] LIBRARY SYMBOL… -- CMD…\n");
    return 2;
  }
  std::set<std::string> symbols(arguments.begin() + 1, separator);
  cudabpf::Fd fd(open(argv[1], O_RDONLY | O_CLOEXEC));
  auto library = cudabpf::elf::Image::open(fd);
  if (!library) {
    std::fprintf(stderr, "empty_probes: %s\n", library.error().message.c_str());
    return 1;
  }
  std::set<unsigned long> offsets;
  const cudabpf::Api* api = cudabpf::api_of_file(argv[1]);
  for (const auto& function : library->functions(api ? api->prefix : "cu"))
    if (symbols.contains("all") || symbols.contains(function.name)) offsets.insert(function.offset);
  if (offsets.empty()) {
    std::fprintf(stderr, "empty_probes: %s has none of these functions\n", argv[1]);
    return 1;
  }

  using enum cudabpf::UprobeEnd;
  floor_bpf* skeleton = floor_bpf__open();
  const auto& programs = skeleton->progs;
  std::vector<std::pair<bpf_program*, cudabpf::UprobeEnd>> chosen{
      {programs.floor_entry, entry}, {programs.floor_return, at_return}};
  if (entry_alone) chosen.pop_back();
  if (session) chosen = {{programs.floor_session, both}};
  for (auto [program, end] : chosen) {
    bpf_program__set_autoload(program, true);
    bpf_program__set_expected_attach_type(program, cudabpf::attach_type_of(end));
  }
  if (floor_bpf__load(skeleton)) return 1;
  cudabpf::UprobePlaces places{{offsets.begin(), offsets.end()}, {}};
  for (auto [program, end] : chosen)
    if (!attach(program, argv[1], places, end)) return 1;

  pid_t child = fork();
  if (child == 0) {
    char** command = argv + 1 + (separator - arguments.begin()) + 1;
    execvp(command[0], command);
    std::perror(command[0]);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
