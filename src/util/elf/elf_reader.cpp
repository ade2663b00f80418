#include "util/elf/elf_reader.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <new>
#include <utility>

#include "util/system/clock.hpp"

namespace cudabpf::elf {

namespace {

constexpr const char* TOO_LONG = "reading it takes too long";

// Waits until the socket takes what could not be sent just now.
bool wait_to_send(int socket, std::uint64_t give_up_ns) {
  std::uint64_t now = now_ns(CLOCK_MONOTONIC);
  constexpr std::uint64_t NS_PER_MS = 1'000'000;
  pollfd writable{socket, POLLOUT, 0};
  return errno == EAGAIN && now < give_up_ns &&
         ::poll(&writable, 1, static_cast<int>((give_up_ns - now) / NS_PER_MS) + 1) >= 0;
}

}  // namespace

// ----- a file that is being read

void Reading::look() {
  constexpr std::size_t MAX_AT_ONCE = 1 << 20;  // the caller has other things to do
  char buffer[65536];
  for (std::size_t count = 0; !ended_ && count < MAX_AT_ONCE;) {
    ssize_t got = recv(talk_.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (got > 0) answer_.append(buffer, static_cast<std::size_t>(got));
    count += sizeof(buffer);
    ended_ = got <= 0 || answer_.size() > MAX_ANSWER;
  }
  if (!by_message_ || taken_) return;
  if (auto taken = server::take_identity(answer_)) {
    taken_ = Taken{taken->id, std::move(taken->path)};
    file_size_ = taken->id.size;
  }
}

void Reading::go_on() {
  if (std::exchange(goes_on_, true)) return;
  char yes = 1;
  if (send(talk_.get(), &yes, sizeof(yes), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) ended_ = true;
}

std::optional<Result<Contents>> Reading::result() const {
  if (!ended_) {
    if (now_ns(CLOCK_MONOTONIC) < give_up_ns_) return std::nullopt;
    return Error{TOO_LONG};
  }
  if (by_message_ && !taken_) return Error{"not a regular file"};
  if (answer_.empty()) return Error{"reading it took too long, or broke the process that reads it"};
  return decode(answer_, file_size_);
}

// ----- the server, seen from this program

std::string Reader::read_contents(int file, std::uint64_t size, const Wanted& wanted) {
  try {
    auto image = Image::parse(bytes_of_file(file, size));
    return encode(image ? contents_of(*image, wanted) : image.error());
  } catch (const std::bad_alloc&) {
    return encode(Error{"reading it takes too much memory"});
  }
}

Result<Reader::Talk> Reader::make_talk(int kind) {
  int ends[2];
  if (socketpair(AF_UNIX, kind | SOCK_CLOEXEC, 0, ends) != 0)
    return errno_error("talking with the process that reads libraries");
  return Talk{Fd(ends[0]), Fd(ends[1])};
}

Result<Reader> Reader::start(const sandbox::Limits& limits, Work work) {
  auto [ours, theirs] = TRY(make_talk(SOCK_SEQPACKET));
  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid < 0) return errno_error("starting the process that reads libraries");
  if (pid == 0) server::serve(theirs.get(), parent, work, limits);
  Reader reader({pid, std::move(ours)}, limits);
  reader.spare_ = TRY(make_talk(SOCK_STREAM));
  return reader;
}

Reader::~Reader() {
  if (!server_.socket) return;
  server_.socket.reset();  // ends the server even if this program may no longer signal it
  bool killed = kill(server_.pid, SIGKILL) == 0;
  waitpid(server_.pid, nullptr, killed ? 0 : WNOHANG);
}

Reading Reader::expect(Fd talk) const {
  // The child ends itself first, but until it is there seconds may pass: fork waits while the
  // kernel adds or removes somebody's uprobes.
  constexpr auto SLACK = std::chrono::seconds(5);
  std::chrono::nanoseconds patience = limits_.wall + SLACK;
  return {std::move(talk), now_ns(CLOCK_MONOTONIC) + static_cast<std::uint64_t>(patience.count())};
}

Result<Contents> Reader::read(const Fd& file, const Wanted& wanted) const {
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return errno_error("reading it");
  if (!S_ISREG(status.st_mode)) return Error{"not a regular file"};
  auto [ours, theirs] = TRY(make_talk(SOCK_STREAM));
  Reading reading = expect(std::move(ours));
  reading.file_size_ = static_cast<std::uint64_t>(status.st_size);
  int sent[] = {file.get(), theirs.get()};
  while (!server::send_request(server_.socket.get(), {server::Task::read, wanted}, sent))
    if (!wait_to_send(server_.socket.get(), reading.give_up_ns_)) {
      if (errno == EAGAIN) return Error{TOO_LONG};
      return Error{"the process that reads libraries has ended",
                   "something killed it; start cudabpf again"};
    }
  theirs.reset();
  for (;;) {
    if (auto result = reading.result()) return std::move(*result);
    constexpr int TICK_MS = 100;
    pollfd ready{reading.fd(), POLLIN, 0};
    ::poll(&ready, 1, TICK_MS);
    reading.look();
  }
}

std::optional<Reading> Reader::take(int socket, const Wanted& wanted) const {
  auto talk = make_talk(SOCK_STREAM);
  if (!talk) return std::nullopt;
  int sent[] = {socket, talk->theirs.get()};
  if (!server::send_request(server_.socket.get(), {server::Task::take, wanted}, sent))
    return std::nullopt;
  Reading reading = expect(std::move(talk->ours));
  reading.by_message_ = true;
  return reading;
}

bool Reader::discard(Fd& socket) const {
  if (!spare_.ours) {
    auto made = make_talk(SOCK_STREAM);
    if (!made) return false;
    spare_ = std::move(*made);
  }
  int sent[] = {socket.get(), spare_.theirs.get()};
  if (!server::send_request(server_.socket.get(), {server::Task::discard, {}}, sent)) return false;
  socket.reset();
  // The other process ends when the connection does.
  spare_.theirs.reset();
  spare_.ours.reset();
  if (auto made = make_talk(SOCK_STREAM)) spare_ = std::move(*made);
  return true;
}

}  // namespace cudabpf::elf
