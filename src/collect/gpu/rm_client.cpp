#include "collect/gpu/rm_client.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/ioctl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <utility>

namespace cudabpf::rm {

namespace {

constexpr const char* CONTROL_NODE = "/dev/nvidiactl";

std::uint64_t address_of(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

Error refused(const char* step, std::uint32_t status) {
  return Error{fmt::format("{} failed (NV status {:#x})", step, status)};
}

}  // namespace

System machine_system() {
  return {
      [](const char* path) { return ::open(path, O_RDWR | O_CLOEXEC); },
      [](int fd, unsigned long request, void* argument) { return ::ioctl(fd, request, argument); },
      [](int fd, std::size_t size) { return ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0); }};
}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(fd_, other.fd_);
  std::swap(at_, other.at_);
  std::swap(size_, other.size_);
  return *this;
}

Memory::~Memory() {
  if (at_) ::munmap(at_, size_);
}

template <typename Argument>
bool Client::ask(int fd, Escape escape, Argument& argument) {
  unsigned long request =
      _IOC(_IOC_READ | _IOC_WRITE, MAGIC, static_cast<unsigned>(escape), sizeof(argument));
  int result = 0;
  do result = system_.ioctl(fd, request, &argument);
  while (result < 0 && errno == EINTR);
  return result == 0;
}

Result<std::unique_ptr<Client>> Client::open(const System& system) {
  std::unique_ptr<Client> client(new Client(system));
  client->control_ = Fd(system.open(CONTROL_NODE));
  if (!client->control_) return errno_error(CONTROL_NODE);
  TRY(client->open_cards());
  client->root_ = TRY(client->create("making a client", Class::root_client, 0, nullptr, 0));
  return client;
}

Client::~Client() {
  if (!root_) return;
  Free all{.client = root_, .parent = root_, .object = root_, .status = NO_ANSWER};
  ask(control_.get(), Escape::free, all);
}

// In a container, some GPUs may have no device.
Result<> Client::open_cards() {
  std::array<Card, MAX_CARDS> cards{};
  if (!ask(control_.get(), Escape::card_info, cards)) return errno_error("listing the GPUs");
  Error last{"the driver lists no GPU"};
  for (const Card& card : cards) {
    if (!card.valid) continue;
    std::string path = fmt::format("/dev/nvidia{}", card.minor);
    Fd node(system_.open(path.c_str()));
    int control = control_.get();
    if (!node || !ask(node.get(), Escape::register_fd, control)) {
      last = errno_error(path);
      continue;
    }
    nodes_.push_back(std::move(node));
    cards_.push_back(card);
  }
  return cards_.empty() ? Result<>(last) : ok();
}

Result<Handle> Client::create(const char* step, Class of, Handle parent, void* parameters,
                              std::size_t size) {
  Alloc call{.client = root_,
             .parent = parent,
             .object = root_ ? next_++ : 0,  // the driver chooses a client's
             .of = of,
             .parameters = address_of(parameters),
             .rights = 0,
             .parameters_size = static_cast<std::uint32_t>(size),
             .flags = 0,
             .status = NO_ANSWER,
             .padding = 0};
  if (!ask(control_.get(), Escape::alloc, call)) return errno_error(step);
  if (call.status != OK) return refused(step, call.status);
  return call.object;
}

Result<> Client::control(const char* step, Control command, Handle object, void* parameters,
                         std::size_t size) {
  ControlCall call{.client = root_,
                   .object = object,
                   .command = command,
                   .flags = 0,
                   .parameters = address_of(parameters),
                   .parameters_size = static_cast<std::uint32_t>(size),
                   .status = NO_ANSWER};
  if (!ask(control_.get(), Escape::control, call)) return errno_error(step);
  if (call.status != OK) return refused(step, call.status);
  return ok();
}

Result<Memory> Client::memory(const char* step, std::size_t size) {
  MemoryParameters parameters{};
  parameters.size = size;
  parameters.attributes = WRITE_BACK;
  parameters.more_attributes = USER_READ_ONLY;
  Handle handle = TRY(create(step, Class::memory_deviceless, root_, parameters));
  Fd fd(system_.open(CONTROL_NODE));
  if (!fd) return errno_error(step);
  MapMemory call{};
  call.client = call.device = root_;  // the parent is in the field that otherwise has a device
  call.memory = handle;
  call.length = size;
  call.flags = MAP_READ_ONLY;
  call.status = NO_ANSWER;
  call.fd = fd.get();
  if (!ask(control_.get(), Escape::map_memory, call)) return errno_error(step);
  if (call.status != OK) return refused(step, call.status);
  void* at = system_.map(fd.get(), size);
  if (at == MAP_FAILED) return errno_error(step);
  return Memory(handle, std::move(fd), at, size);
}

}  // namespace cudabpf::rm
