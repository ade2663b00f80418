#include "util/console/screen.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

#include "util/system/privileges.hpp"
#include "util/system/threads.hpp"
#include "util/text/printable.hpp"

namespace cudabpf {

namespace {

constexpr std::size_t ROOM = 128 << 10;       // for lines that may be left out
constexpr std::size_t ALL_ROOM = 1024 << 10;  // for messages and the summary
constexpr std::string_view ERASE = "\r\033[K";
// A terminal in operation takes the last lines in less time.
constexpr auto AFTER_A_SIGNAL = std::chrono::milliseconds(500),
               LOOK_EVERY = std::chrono::milliseconds(20);

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t written = ::write(fd, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (written < 0 && errno == EAGAIN) {  // another user of it made it non-blocking
      pollfd wait{fd, POLLOUT, 0};
      ::poll(&wait, 1, -1);
    } else if (written == 0 || errno != EINTR) {
      return;  // it is closed or full: nothing can be done, and there is no place to report it
    }
  }
}

}  // namespace

struct Screen::Shared {
  int fd = -1;
  std::mutex mutex;
  std::condition_variable changed, written;
  std::string waiting, status;
  std::uint64_t left_out = 0;  // messages
  bool redraw = false, writing = false, over = false;
  bool held = false;
  std::function<void(std::string_view)> instead;

  bool has_something() const { return !held && (!waiting.empty() || redraw); }
};

Screen::Screen(int fd, int hurry_fd)
    : terminal_(terminal_of(fd)), hurry_fd_(hurry_fd), shared_(std::make_shared<Shared>()) {
  shared_->fd = fd;
  writer_ = thread_without_signals([shared = shared_] { write_for(shared); });
  log::set_outlet(this);
}

Screen::~Screen() {
  log::set_outlet(nullptr);
  {
    std::lock_guard lock(shared_->mutex);
    shared_->held = false;
    shared_->over = true;
  }
  shared_->changed.notify_one();
  if (all_written())
    writer_.join();
  else
    writer_.detach();  // it ends with the process
}

bool Screen::all_written() {
  std::unique_lock lock(shared_->mutex);
  auto written = [this] { return !shared_->has_something() && !shared_->writing; };
  for (auto waited = std::chrono::milliseconds(0); waited < AFTER_A_SIGNAL;) {
    if (shared_->written.wait_for(lock, LOOK_EVERY, written)) return true;
    pollfd hurry{hurry_fd_, POLLIN, 0};
    if (::poll(&hurry, 1, 0) > 0) waited += LOOK_EVERY;
  }
  return false;
}

bool Screen::offer(std::string_view lines) {
  {
    std::lock_guard lock(shared_->mutex);
    if (shared_->waiting.size() + lines.size() > ROOM) return false;
    shared_->waiting += lines;
  }
  shared_->changed.notify_one();
  return true;
}

void Screen::show(std::string_view lines) {
  {
    std::lock_guard lock(shared_->mutex);
    if (shared_->waiting.size() + lines.size() > ALL_ROOM)
      shared_->left_out++;
    else
      shared_->waiting += lines;
    if (shared_->instead) shared_->instead(lines);
  }
  shared_->changed.notify_one();
}

void Screen::hold(std::function<void(std::string_view)> instead) {
  std::unique_lock lock(shared_->mutex);
  auto written = [this] { return !shared_->has_something() && !shared_->writing; };
  shared_->written.wait_for(lock, AFTER_A_SIGNAL, written);
  shared_->held = terminal_.is_terminal;
  shared_->instead = std::move(instead);
}

void Screen::release() {
  {
    std::lock_guard lock(shared_->mutex);
    shared_->held = false;
    shared_->instead = nullptr;
  }
  shared_->changed.notify_one();
}

void Screen::set_status(std::string line) {
  if (!terminal_.is_terminal) return;
  line.resize(bytes_of(line, terminal_.width - 1));  // the last column would make it wrap
  {
    std::lock_guard lock(shared_->mutex);
    if (line == shared_->status) return;
    shared_->status = std::move(line);
    shared_->redraw = true;
  }
  shared_->changed.notify_one();
}

void Screen::write_for(const std::shared_ptr<Shared>& shared) {
  privileges::keep_only({});  // of this thread; the main thread gives its own up later
  bool drawn = false;         // a status line, with nothing below it
  std::unique_lock lock(shared->mutex);
  for (;;) {
    shared->changed.wait(lock, [&] { return shared->has_something() || shared->over; });
    if (!shared->has_something()) return;
    std::string text = drawn && (!shared->waiting.empty() || shared->status.empty())
                           ? std::string(ERASE)
                           : std::string();
    text += std::exchange(shared->waiting, {});
    if (std::uint64_t left_out = std::exchange(shared->left_out, 0))
      text += fmt::format("cudabpf: warning: {} could not be shown here\n",
                          count_of(left_out, "more message", "more messages"));
    if (!shared->status.empty()) text += fmt::format("\r{}\033[K", shared->status);
    drawn = !shared->status.empty();
    shared->redraw = false;
    shared->writing = true;
    lock.unlock();
    write_all(shared->fd, text);
    lock.lock();
    shared->writing = false;
    shared->written.notify_all();
  }
}

}  // namespace cudabpf
