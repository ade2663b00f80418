// Reads strangers' library files in a process without rights, so that whatever a file does to the
// parser stays there.
//
// A server is forked before this program has threads, BPF programs or descriptors worth stealing.
// For each file it forks a child, which enters a sandbox (util/system/sandbox.hpp), reads that one
// file and answers through a pipe, so no file can spoil another's answer.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "util/elf/elf_contents.hpp"
#include "util/result.hpp"
#include "util/system/fd.hpp"
#include "util/system/sandbox.hpp"

namespace cudabpf::elf {

class Reader {
 public:
  // What the child runs; returns the encoded answer. (Tests pass others.)
  using Work = std::string (*)(int file, std::uint64_t size, const Wanted& wanted);

  static Result<Reader> start(const sandbox::Limits& limits = {}, Work work = read_contents);
  Reader(Reader&&) = default;
  Reader& operator=(Reader&&) = delete;
  ~Reader();

  // Waits for the answer for as long as the limits allow. If the parser crashes, works too long or
  // answers nonsense, the error is like that for a file that is not a library.
  Result<Contents> read(const Fd& file, const Wanted& wanted) const;

  pid_t pid() const { return server_.pid; }

 private:
  struct Server {  // moves like a descriptor
    pid_t pid = -1;
    Fd socket;
  };
  Reader(Server server, const sandbox::Limits& limits)
      : server_(std::move(server)), limits_(limits) {}
  static std::string read_contents(int file, std::uint64_t size, const Wanted& wanted);

  Server server_;
  sandbox::Limits limits_;
};

}  // namespace cudabpf::elf
