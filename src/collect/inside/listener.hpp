// The socket by which traced processes find cudabpf, and the messages on it. Every process that
// connects is taken for hostile.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "util/result.hpp"
#include "util/system/fd.hpp"

namespace cudabpf {

// A process that has connected, according to the kernel.
struct Connection {
  Fd socket;               // closing it may take long: see parting.hpp
  pid_t pid = 0;           // in this process's pid namespace; 0: it has none there
  bool is_let_in = false;  // of a user for whom the listener is open
  bool is_last = false;    // this process has no descriptor left
};

class Listener {
 public:
  // A path that cannot be guessed, in `temporary` (TMPDIR) if it can be used, else in /tmp. Needed
  // before the listener can be opened.
  static Result<std::string> choose_path(const std::string& temporary);

  // Opens it to these users. Creates the path's folder, which is removed with the listener. Also
  // removes what other listeners that were killed have left beside it.
  static Result<Listener> open(std::string path, std::vector<uid_t> users);
  // At a path that every process may know, open to all users. Takes the place of a listener that
  // was killed, but not of one that listens.
  static Result<Listener> open_for_all(std::string path);
  Listener(Listener&&) = default;
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  int fd() const { return socket_.get(); }  // readable when a process has connected
  // The next connection; nothing if none waits.
  std::optional<Connection> next();
  // Leaves some descriptors to others until next() is called.
  void give_up_spares() { spares_ = {}; }

 private:
  Fd accept_one(bool& with_spare);
  void keep_spares();

  enum class For : std::uint8_t { users, all };

  Listener(Fd socket, std::string path, For whom, std::vector<uid_t> users = {})
      : socket_(std::move(socket)), path_(std::move(path)), for_(whom), users_(std::move(users)) {
    keep_spares();
  }
  Result<> listen();

  Fd socket_;
  // Given up when there is no other descriptor: to accept a connection, to identify its process,
  // and because another thread may be taking one.
  std::array<Fd, 3> spares_;
  std::string path_;
  For for_;
  std::vector<uid_t> users_;
};

// The next message on a connection, which stays there.
struct Waiting {
  std::size_t size = 0;
  bool brings_descriptors = false;  // or may do so
  bool is_none = false;             // there is no message, and none will come; or none can be seen
};
// As much of it as there is room for. Nothing if there is none yet.
std::optional<Waiting> peek(int socket, std::span<std::byte> buffer);
// Takes away the first message, which must bring no descriptors: their sender decides how long
// closing them takes.
void take_away(int socket);
bool send(int socket, std::span<const std::byte> bytes, std::span<const int> fds);

}  // namespace cudabpf
