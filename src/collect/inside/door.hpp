// The socket by which traced processes find cudabpf, and the messages on it. Whoever comes is taken
// for hostile.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "util/result.hpp"
#include "util/system/fd.hpp"

namespace cudabpf {

// Who has connected, according to the kernel.
struct Visitor {
  Fd socket;      // none: this process has no descriptor left, and has sent it away
  pid_t pid = 0;  // as this process sees it; 0: it cannot
  uid_t uid = 0;
};

class Door {
 public:
  // A path that nobody can guess, in `temporary` (TMPDIR) if it can be used, else in /tmp. It is
  // needed before the door can be opened.
  static Result<std::string> choose_path(const std::string& temporary);

  // Opens it to these users. The folder of the path is made, and removed with the door. What others
  // have left beside it, who were killed, is removed, too.
  static Result<Door> open(std::string path, std::vector<uid_t> users);
  Door(Door&&) = default;
  Door& operator=(Door&&) = delete;
  ~Door();

  int fd() const { return socket_.get(); }  // readable when somebody has come
  // The next one; nothing if nobody is waiting. Those of other users are sent away in silence.
  std::optional<Visitor> next();

 private:
  Fd accept_one(bool& with_spare);
  void keep_spare();

  Door(Fd socket, std::string path, std::vector<uid_t> users)
      : socket_(std::move(socket)), path_(std::move(path)), users_(std::move(users)) {
    keep_spare();
  }

  Fd socket_;
  Fd spare_;  // given up to let one in when there is no other descriptor
  std::string path_;
  std::vector<uid_t> users_;
};

// A message as it came: at most `buffer` of it, and the descriptors that came along.
struct Message {
  std::size_t size = 0;  // 0: the other side is gone
  std::vector<Fd> fds;
  bool whole = true;                // nothing of it was cut off
  bool no_descriptor_left = false;  // for those that came along
};
// Nothing if there is none yet.
std::optional<Message> receive(int socket, std::span<std::byte> buffer);
bool send(int socket, std::span<const std::byte> bytes, std::span<const int> fds);

}  // namespace cudabpf
