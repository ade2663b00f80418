#include "nodes.hpp"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "nvos.hpp"
#include "observe.hpp"
#include "settings.hpp"

namespace fake {
namespace {

// What a status holds before the driver has answered, so that reading it too early shows.
constexpr uint32_t kUnanswered = 0xffffffff;

std::atomic<int> record_file{-1};

int open_record() {
  const std::string path =
      settings().counts_directory + "/ioctls." + std::to_string(getpid()) + ".jsonl";
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) {
    perror(("fake libcuda: " + path).c_str());
    _exit(2);
  }
  int none = -1;
  if (record_file.compare_exchange_strong(none, file)) return file;
  close(file);  // another thread was first
  return none;
}

uint64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000 + static_cast<uint64_t>(time.tv_nsec);
}

// Makes one line of the record.
class Line {
 public:
  Line(const char* operation, const Node& node) {
    text_ = std::string("{\"op\":\"") + operation + "\",\"device\":\"" + node.name + "\"";
    if (node.is_open()) add("fd", node.fd);
  }

  template <typename T>
  void add(const char* key, T value) {
    text_ += std::string(",\"") + key + "\":" + std::to_string(value);
  }
  template <typename T>
  void add(const char* key, const std::optional<T>& value) {
    if (value) add(key, *value);
  }

  void write(int64_t result, uint64_t begin_ns, uint64_t end_ns) {
    if (settings().counts_directory.empty()) return;
    const CurrentCall call = current_call();
    add("result", result);
    if (call.symbol) {
      add("call", call.number);
      text_ += std::string(",\"symbol\":\"") + call.symbol + "\"";
    }
    add("tid", syscall(SYS_gettid));
    add("begin_ns", begin_ns);
    add("end_ns", end_ns);
    text_ += "}\n";
    int file = record_file.load(std::memory_order_relaxed);
    if (file < 0) file = open_record();
    if (::write(file, text_.data(), text_.size()) != static_cast<ssize_t>(text_.size())) {
      perror("fake libcuda: write the record of ioctls");
      _exit(2);
    }
  }

 private:
  std::string text_;
};

std::string path_of(const std::string& name) {
  const auto given = settings().driver_paths.find(name);
  return given == settings().driver_paths.end() ? "/dev/" + name : given->second;
}

uint32_t escape_command(uint32_t number, uint32_t size) {
  return 3U << 30 | size << 16 | static_cast<uint32_t>('F') << 8 | number;
}

uint32_t pretended_status(const Subject& about) {
  for (const DriverStatus& rule : settings().driver_statuses) {
    const uint32_t subject = about.control.value_or(about.klass.value_or(0));
    if (rule.uvm == about.uvm && rule.number == about.number &&
        (!rule.subject || *rule.subject == subject)) {
      return rule.status;
    }
  }
  return 0;
}

}  // namespace

bool nodes_pretend() { return !settings().driver_paths.empty(); }

Node open_node(const std::string& name) {
  Node node = {name};
  const uint64_t begin_ns = now();
  node.fd = open(path_of(name).c_str(), O_RDWR | O_CLOEXEC);
  const int64_t result = node.fd < 0 ? -errno : node.fd;
  Line("open", node).write(result, begin_ns, now());
  return node;
}

void close_node(Node& node) {
  if (!node.is_open()) return;
  Line line("close", node);
  const uint64_t begin_ns = now();
  const int64_t result = close(node.fd) < 0 ? -errno : 0;
  line.write(result, begin_ns, now());
  node.fd = -1;
}

void* map_node(const Node& node, uint64_t size) {
  Line line("mmap", node);
  const uint64_t begin_ns = now();
  void* address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, node.fd, 0);
  const int64_t result = address == MAP_FAILED ? -errno : 0;
  const uint64_t end_ns = now();
  line.add("size", size);
  if (result < 0) address = nullptr;
  if (address) line.add("base", reinterpret_cast<uint64_t>(address));
  line.write(result, begin_ns, end_ns);
  return address;
}

void poll_node(const Node& node, int timeout_ms) {
  Line line("poll", node);
  const uint64_t begin_ns = now();
  pollfd wanted = {node.fd, POLLIN, 0};
  const int ready = poll(&wanted, 1, timeout_ms);
  const int64_t result = ready < 0 ? -errno : ready;
  line.add("timeout_ms", timeout_ms);
  line.write(result, begin_ns, now());
}

Ioctl::Ioctl(const Node& node, const Subject& about, void* structure, uint32_t size,
             uint32_t* status)
    : subject(about), node_(node) {
  command_ = about.uvm ? about.number : escape_command(about.number, size);
  if (status) *status = nodes_pretend() ? pretended_status(about) : kUnanswered;
  nvos::Xfer xfer = {about.number, size, reinterpret_cast<uint64_t>(structure)};
  if (about.indirect) {
    command_ = escape_command(nvos::kXfer, sizeof xfer);
    structure = &xfer;
  }
  begin_ns_ = now();
  result_ = ioctl(node.fd, command_, structure) < 0 ? -errno : 0;
  end_ns_ = now();
  if (status && *status != kUnanswered) status_ = *status;
}

Ioctl::~Ioctl() {
  Line line("ioctl", node_);
  line.add("cmd", command_);
  line.add("nr", subject.number);
  if (subject.indirect) line.add("indirect", 1);
  line.add("control", subject.control);
  line.add("class", subject.klass);
  line.add("client", subject.client);
  line.add("parent", subject.parent);
  line.add("object", subject.object);
  line.add("size", subject.size);
  line.add("base", subject.base);
  line.add("timeslice_us", subject.timeslice_us);
  line.add("status", status_);
  line.write(result_, begin_ns_, end_ns_);
}

void restart_node_record() {
  const int file = record_file.exchange(-1);
  if (file >= 0) close(file);
}

}  // namespace fake
