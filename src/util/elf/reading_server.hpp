// The process behind elf::Reader: a server without rights, and a child of it for each request.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "util/elf/elf_contents.hpp"
#include "util/system/file_id.hpp"
#include "util/system/sandbox.hpp"

namespace cudabpf::elf::server {

enum class Task : std::uint8_t {
  read,     // the file that comes along
  take,     // a file that comes with the next message on the socket that comes along
  discard,  // the socket that comes along is to be closed after the client has closed it
};
// Which file came with a message.
struct Taken {
  FileId id;
  std::string path;  // as this program would see it, which may be below another root
};
// What the child runs; returns the encoded answer. (Tests pass others.)
using Work = std::string (*)(int file, std::uint64_t size, const Wanted& wanted);

struct Request {
  Task task = Task::discard;
  Wanted wanted;
};

// With the file or socket, and where to answer. Never waits.
bool send_request(int server, const Request& request, std::span<const int> descriptors);
// Takes what a child has reported about the file from the beginning of its answer, once it is
// there.
std::optional<Taken> take_identity(std::string& answer);

[[noreturn]] void serve(int socket, pid_t parent, Work work, const sandbox::Limits& limits);

}  // namespace cudabpf::elf::server
