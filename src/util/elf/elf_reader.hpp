// Reads strangers' library files in a process without rights, so that whatever a file does to the
// parser stays there.
//
// A server is forked before this program has threads, BPF programs or descriptors worth stealing.
// For each file it forks a child, which enters a sandbox (util/system/sandbox.hpp), reads that one
// file and answers through a socket, so no file can spoil another's answer.
//
// What a stranger sends along with a message is no better than a file: closing it may take as long
// as the stranger likes. So the children alone receive it, and this program never has it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "util/elf/elf_contents.hpp"
#include "util/elf/reading_server.hpp"
#include "util/result.hpp"
#include "util/system/fd.hpp"
#include "util/system/sandbox.hpp"

namespace cudabpf::elf {

// A file that is being read. No thread has to wait for it.
class Reading {
 public:
  using Taken = server::Taken;

  int fd() const { return talk_.get(); }  // readable when there is something to look at
  void look();
  // After Reader::take(), once it is known. Then nothing happens before go_on().
  const std::optional<Taken>& taken() const { return taken_; }
  void go_on();  // may be called again
  // The answer, once it is there, or has taken too long.
  std::optional<Result<Contents>> result() const;

 private:
  friend class Reader;
  Reading(Fd talk, std::uint64_t give_up_ns) : talk_(std::move(talk)), give_up_ns_(give_up_ns) {}

  Fd talk_;
  std::uint64_t give_up_ns_;  // CLOCK_MONOTONIC
  bool by_message_ = false, goes_on_ = false;
  std::optional<Taken> taken_;
  std::uint64_t file_size_ = 0;
  std::string answer_;
  bool ended_ = false;
};

class Reader {
 public:
  using Work = server::Work;

  static Result<Reader> start(const sandbox::Limits& limits = {}, Work work = read_contents);
  Reader(Reader&&) = default;
  Reader& operator=(Reader&&) = delete;
  ~Reader();

  // Waits for the answer for as long as the limits allow. If the parser crashes, takes too long or
  // answers nonsense, the error is like that for a file that is not a library.
  Result<Contents> read(const Fd& file, const Wanted& wanted) const;
  // Reads the file that comes with the next message on this socket. Without the file, or if it is
  // not a regular one, the answer is an error. Nothing: not now.
  std::optional<Reading> take(int socket, const Wanted& wanted) const;
  // Closes this socket, but has another process be the last to do so: messages in its queue are
  // closed with it. False: not possible now.
  bool discard(Fd& socket) const;

  pid_t pid() const { return server_.pid; }

 private:
  struct Server {  // moves like a descriptor
    pid_t pid = -1;
    Fd socket;
  };
  struct Talk {
    Fd ours, theirs;
  };
  static Result<Talk> make_talk(int kind);
  Reader(Server server, const sandbox::Limits& limits)
      : server_(std::move(server)), limits_(limits) {}
  static std::string read_contents(int file, std::uint64_t size, const Wanted& wanted);
  Reading expect(Fd talk) const;

  Server server_;
  sandbox::Limits limits_;
  mutable Talk spare_;  // to discard something when this process has no descriptor left
};

}  // namespace cudabpf::elf
