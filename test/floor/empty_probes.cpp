// empty_probes [--entry-alone] LIBRARY SYMBOL… -- CMD…: runs CMD while empty BPF programs hang on
// the entry and the return of each SYMBOL (`all`: of every function whose name begins with cu).
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

#include "floor.skel.h"
#include "util/elf.hpp"

namespace {

bool attach(bpf_program* program, const char* library, const std::vector<unsigned long>& offsets,
            bool at_return) {
  LIBBPF_OPTS(bpf_uprobe_multi_opts, options);
  options.offsets = offsets.data();
  options.cnt = offsets.size();
  options.retprobe = at_return;
  if (bpf_program__attach_uprobe_multi(program, -1, library, nullptr, &options)) return true;
  std::fprintf(stderr, "empty_probes: attaching to %s: %s\n", library, std::strerror(errno));
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  bool entry_alone = argc > 1 && std::strcmp(argv[1], "--entry-alone") == 0;
  if (entry_alone) argv++, argc--;
  std::vector<std::string> arguments(argv + 1, argv + argc);
  auto separator = std::find(arguments.begin(), arguments.end(), "--");
  if (arguments.size() < 4 || separator == arguments.end()) {
    std::fprintf(stderr, "usage: empty_probes [--entry-alone] LIBRARY SYMBOL… -- CMD…\n");
    return 2;
  }
  std::set<std::string> symbols(arguments.begin() + 1, separator);
  cudabpf::Fd fd(open(argv[1], O_RDONLY | O_CLOEXEC));
  auto library = cudabpf::elf::Library::map(fd);
  if (!library) {
    std::fprintf(stderr, "empty_probes: %s\n", library.error().message.c_str());
    return 1;
  }
  std::set<unsigned long> offsets;
  for (const auto& function : library->image().functions("cu"))
    if (symbols.contains("all") || symbols.contains(function.name)) offsets.insert(function.offset);
  if (offsets.empty()) {
    std::fprintf(stderr, "empty_probes: %s has none of these functions\n", argv[1]);
    return 1;
  }

  floor_bpf* skeleton = floor_bpf__open();
  for (bpf_program* program : {skeleton->progs.floor_entry, skeleton->progs.floor_return}) {
    bpf_program__set_autoload(program, true);
    bpf_program__set_expected_attach_type(program, BPF_TRACE_UPROBE_MULTI);
  }
  std::vector<unsigned long> list(offsets.begin(), offsets.end());
  if (floor_bpf__load(skeleton) || !attach(skeleton->progs.floor_entry, argv[1], list, false) ||
      (!entry_alone && !attach(skeleton->progs.floor_return, argv[1], list, true)))
    return 1;

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
