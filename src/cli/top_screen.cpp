#include "cli/top_screen.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>

#include "sink/top/top_page.hpp"
#include "sink/top/top_text.hpp"
#include "util/console/terminal.hpp"
#include "util/system/event_fd.hpp"
#include "util/system/privileges.hpp"
#include "util/system/threads.hpp"

namespace cudabpf::cli {

namespace {

constexpr std::size_t MAX_WAITING = 8;  // intervals
constexpr auto TO_END = std::chrono::milliseconds(500);

std::string last_line_of(std::string_view lines) {
  if (lines.ends_with('\n')) lines.remove_suffix(1);
  std::size_t end = lines.rfind('\n');
  return std::string(end == lines.npos ? lines : lines.substr(end + 1));
}

}  // namespace

struct TopScreen::Shared {
  Shared() : full(STDIN_FILENO, STDOUT_FILENO), terminal(terminal_of(STDOUT_FILENO)) {}

  FullScreen full;
  const Terminal terminal;
  EventFd news = EventFd::make();   // for the thread
  EventFd asked = EventFd::make();  // for the session
  Fd signals;  // of its own: the thread may still look at it when the session's is closed
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<TopInterval> waiting;
  std::optional<TopInterval> last;  // with the books
  TopLosses lost;                   // up to the last interval that was taken
  std::string message;
  Asks asks;
  bool over = false, ended = false;
};

// What the thread has and does.
class TopScreen::Drawing {
 public:
  explicit Drawing(Shared& shared) : shared_(shared) {}
  void run();

 private:
  bool take_news();
  void read_keys();
  void press(const std::vector<Key>& keys);
  void ask(TopRequest asked);
  void draw();
  TopScene scene() const { return {shown_, shown_history_, history_.lost(), message_}; }
  void wait();

  Shared& shared_;
  KeyReader keys_;
  TopView view_;
  TopInterval newest_, shown_;  // they differ while it is paused
  TopHistory history_, shown_history_;
  std::string message_;
  std::optional<ScreenFrame> drawn_;
  bool input_gone_ = false;
};

void TopScreen::Drawing::run() {
  while (take_news()) {
    if (!shared_.full.is_in_foreground())
      drawn_.reset();
    else
      draw();
    wait();
  }
  shared_.full.give_back();
}

// False: it is over.
bool TopScreen::Drawing::take_news() {
  shared_.news.clear();
  std::deque<TopInterval> intervals;
  {
    std::lock_guard lock(shared_.mutex);
    if (shared_.over) return false;
    intervals.swap(shared_.waiting);
    message_ = shared_.message;
  }
  for (TopInterval& interval : intervals) {
    history_.add(interval);
    newest_ = std::move(interval);
  }
  if (!view_.paused() && !intervals.empty()) {
    shown_ = newest_;
    shown_history_ = history_;
  }
  return true;
}

void TopScreen::Drawing::draw() {
  if (!drawn_) shared_.full.take();
  ScreenFrame frame = draw_top(scene(), view_, shared_.full.size(), shared_.terminal.utf8);
  shared_.full.write(difference(drawn_ ? &*drawn_ : nullptr, frame, shared_.terminal.color));
  drawn_ = std::move(frame);
}

void TopScreen::Drawing::wait() {
  constexpr int LOOK_EVERY_MS = 200;  // whether it is in the foreground again
  bool reads = drawn_ && !input_gone_;
  pollfd polled[] = {{shared_.news.get(), POLLIN, 0},
                     {shared_.signals.get(), POLLIN, 0},
                     {reads ? STDIN_FILENO : -1, POLLIN, 0}};
  int most_ms = !drawn_ ? LOOK_EVERY_MS : keys_.is_waiting() ? KeyReader::ESCAPE_MS : -1;
  int came = ::poll(polled, std::size(polled), most_ms);
  if (came == 0 && drawn_) press(keys_.nothing_came());
  if (polled[1].revents &&
      shared_.full.handle(shared_.signals.get()) == FullScreen::Came::continued)
    drawn_.reset();
  else if (polled[2].revents)
    read_keys();
}

void TopScreen::Drawing::read_keys() {
  if (!shared_.full.is_in_foreground()) return drawn_.reset();
  char bytes[256];
  ssize_t size = ::read(STDIN_FILENO, bytes, sizeof(bytes));
  if (size > 0) return press(keys_.read({bytes, static_cast<std::size_t>(size)}));
  // EIO: it has just gone to the background.
  if (size < 0 &&
      (errno == EINTR || errno == EAGAIN || (errno == EIO && !shared_.full.is_in_foreground())))
    return;
  input_gone_ = true;
  ask(TopRequest::end);
}

void TopScreen::Drawing::press(const std::vector<Key>& keys) {
  for (const Key& key : keys) {
    bool was_paused = view_.paused();
    TopRequest asked = view_.press(key, shown_, top_page_rows(scene(), view_, shared_.full.size()));
    if (asked == TopRequest::redraw)
      drawn_.reset();
    else if (asked != TopRequest::nothing)
      ask(asked);
    if (!was_paused || view_.paused()) continue;
    shown_ = newest_;
    shown_history_ = history_;
  }
}

void TopScreen::Drawing::ask(TopRequest asked) {
  {
    std::lock_guard lock(shared_.mutex);
    shared_.asks.end |= asked == TopRequest::end;
    shared_.asks.write |= asked == TopRequest::write;
  }
  shared_.asked.set();
}

TopScreen::TopScreen(Screen& messages) : messages_(messages), shared_(std::make_shared<Shared>()) {}

TopScreen::~TopScreen() { close(); }

void TopScreen::start() {
  messages_.hold([shared = shared_.get()](std::string_view lines) {
    {
      std::lock_guard lock(shared->mutex);
      shared->message = last_line_of(lines);
    }
    shared->news.set();
  });
  shared_->signals = Fd(::fcntl(signals_.fd(), F_DUPFD_CLOEXEC, 0));
  thread_ = thread_without_signals([shared = shared_] {
    privileges::keep_only({});  // of this thread
    Drawing(*shared).run();
    std::lock_guard lock(shared->mutex);
    shared->ended = true;
    shared->changed.notify_all();
  });
}

bool TopScreen::take(const TopInterval& interval, bool last) {
  {
    std::lock_guard lock(shared_->mutex);
    if (!last && shared_->waiting.size() >= MAX_WAITING) return false;
    shared_->lost.add(interval.lost);
    if (last)
      shared_->last = interval;
    else
      shared_->waiting.push_back(interval);
  }
  shared_->news.set();
  return true;
}

int TopScreen::asked_fd() const { return shared_->asked.get(); }

TopScreen::Asks TopScreen::asked() {
  shared_->asked.clear();
  std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->asks, {});
}

std::string TopScreen::close() {
  if (thread_.joinable()) {
    std::unique_lock lock(shared_->mutex);
    shared_->over = true;
    shared_->news.set();
    auto ended = [this] { return shared_->ended; };
    bool in_time = shared_->changed.wait_for(lock, TO_END, ended);
    if (!in_time) {  // the terminal takes nothing
      lock.unlock();
      FullScreen::give_back_now();
      lock.lock();
      in_time = shared_->changed.wait_for(lock, TO_END, ended);
    }
    lock.unlock();
    if (in_time)
      thread_.join();
    else
      thread_.detach();  // it ends with the process
    messages_.release();
  }
  return shared_->last ? top_end_text(*shared_->last, shared_->lost, shared_->terminal) : "";
}

}  // namespace cudabpf::cli
