// A client of the resource manager: the driver's devices, opened, and the objects that the driver
// makes for us. It frees them all with the client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "collect/gpu/rm_abi.hpp"
#include "util/result.hpp"
#include "util/system/fd.hpp"

namespace cudabpf::rm {

// How the driver is called. A test has a driver of its own.
struct System {
  int (*open)(const char* path);
  int (*ioctl)(int fd, unsigned long request, void* argument);
  void* (*map)(int fd, std::size_t size);  // to be read; MAP_FAILED: errno says why
};
System machine_system();

// Memory that the driver writes and this process reads.
class Memory {
 public:
  Memory() = default;
  Memory(Handle handle, Fd fd, void* at, std::size_t size)
      : handle_(handle), fd_(std::move(fd)), at_(at), size_(size) {}
  Memory(Memory&& other) noexcept { *this = std::move(other); }
  Memory& operator=(Memory&& other) noexcept;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  Handle handle() const { return handle_; }
  const std::byte* data() const { return static_cast<const std::byte*>(at_); }

 private:
  Handle handle_ = 0;
  Fd fd_;  // the driver keeps one mapping with each
  void* at_ = nullptr;
  std::size_t size_ = 0;
};

// Errors say which step failed, with the driver's own status or the kernel's reason.
class Client {
 public:
  // Opens the driver, and the devices of all GPUs that are there for this process.
  static Result<std::unique_ptr<Client>> open(const System& system);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  Handle root() const { return root_; }
  const std::vector<Card>& cards() const { return cards_; }

  template <typename Parameters>
  Result<Handle> create(const char* step, Class of, Handle parent, const Parameters& parameters) {
    // The driver copies as much as it takes the class's parameters to have.
    alignas(16) std::byte room[1024] = {};
    static_assert(sizeof(parameters) <= sizeof(room));
    std::memcpy(room, &parameters, sizeof(parameters));
    return create(step, of, parent, room, sizeof(parameters));
  }
  template <typename Parameters>
  Result<> control(const char* step, Control command, Handle object, Parameters& parameters) {
    return control(step, command, object, &parameters, sizeof(parameters));
  }
  Result<> control(const char* step, Control command, Handle object) {
    return control(step, command, object, nullptr, 0);
  }
  Result<Memory> memory(const char* step, std::size_t size);

 private:
  explicit Client(const System& system) : system_(system) {}

  Result<> open_cards();
  Result<Handle> create(const char* step, Class of, Handle parent, void* parameters,
                        std::size_t size);
  Result<> control(const char* step, Control command, Handle object, void* parameters,
                   std::size_t size);
  template <typename Argument>
  bool ask(int fd, Escape escape, Argument& argument);

  System system_;
  Fd control_;
  std::vector<Fd> nodes_;  // the driver lets a client use GPUs whose devices it has open
  std::vector<Card> cards_;
  Handle root_ = 0, next_ = 0x5c000001;
};

}  // namespace cudabpf::rm
