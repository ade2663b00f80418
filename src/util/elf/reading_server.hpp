// The process behind elf::Reader: a server without rights, and a child of it for each request.
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>

#include "util/elf/elf_reader.hpp"

namespace cudabpf::elf::server {

enum class Task : std::uint8_t {
  read,     // the file that comes along
  take,     // a file that comes with the next message on the socket that comes along
  discard,  // the socket that comes along is to be closed after whoever asks has closed it
};
struct Request {
  Task task = Task::discard;
  Wanted wanted;
};

// With the file or socket, and where to answer. Never waits.
bool send_request(int server, const Request& request, std::span<const int> descriptors);
// Takes what a child has said of the file from the beginning of its answer, once it is there.
std::optional<Reading::Taken> take_identity(std::string& answer);

[[noreturn]] void serve(int socket, pid_t parent, Reader::Work work, const sandbox::Limits& limits);

}  // namespace cudabpf::elf::server
