#include "collect/inside/reception.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <iterator>
#include <utility>

#include "util/console/log.hpp"
#include "util/system/clock.hpp"
#include "util/system/procfs.hpp"

namespace cudabpf {

namespace {

constexpr std::size_t MOST_VISITS = 256, MOST_AT_ONCE = 256;
constexpr const char* NO_DESCRIPTOR = "cudabpf may open no more files (ulimit -n)";
constexpr std::uint64_t PATIENCE_NS = 5'000'000'000;  // with one who says nothing

// As this process sees the file, which may be below another root.
std::string path_of(const Fd& file) {
  char path[PATH_MAX];
  ssize_t size = readlink(fmt::format("/proc/self/fd/{}", file.get()).c_str(), path, sizeof(path));
  return size > 0 ? std::string(path, static_cast<std::size_t>(size)) : "a library";
}

std::string_view why_not(std::uint8_t outcome) {
  switch (outcome) {
    case abi::CI_DIFFERS:
      return "it is not in memory as in the file";
    case abi::CI_TOO_FAR:
      return "there is no memory within reach of a jump";
    default:
      return "its code may not be changed, or a debugger or strace is attached";
  }
}

// Without some, a process can neither be looked at nor get a room.
bool has_descriptors_left() {
  Fd some[4];
  return std::all_of(std::begin(some), std::end(some), [](Fd& one) {
    one = Fd(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
    return bool(one) || errno == EBADF;
  });
}

template <typename T>
std::span<const std::byte> message_bytes(const T& message) {
  return std::as_bytes(std::span(&message, 1));
}

}  // namespace

Reception::Reception(Door door, PlannedLibraries& libraries, const std::vector<std::string>& named,
                     Admit admit, Depart depart, Wanted wanted)
    : door_(std::move(door)),
      libraries_(libraries),
      admit_(std::move(admit)),
      depart_(std::move(depart)),
      wanted_(wanted) {
  for (const std::string& path : named)
    if (auto file = open_library(path, path)) named_.push_back(file->id);
}

std::vector<int> Reception::watch_fds() const {
  std::vector<int> fds{door_.fd()};
  for (const Visit& visit : visits_) fds.push_back(visit.visitor.socket.get());
  return fds;
}

void Reception::look(std::vector<Library>& patched) {
  std::uint64_t now = now_ns(CLOCK_MONOTONIC);
  for (std::size_t i = 0; i < MOST_AT_ONCE; i++) {
    auto visitor = door_.next();
    if (!visitor) break;
    if (!visitor->socket) {
      leave_unrecorded(visitor->pid, NO_DESCRIPTOR);
      continue;
    }
    Visit visit;
    visit.visitor = std::move(*visitor);
    visit.give_up_ns = now + PATIENCE_NS;
    // A traced process speaks at once: those who came long ago and are silent make room.
    if (visits_.size() >= MOST_VISITS) visits_.pop_front();
    if (!go_on(visit, patched)) visits_.push_back(std::move(visit));
  }
  for (auto visit = visits_.begin(); visit != visits_.end();)
    visit = go_on(*visit, patched) || visit->give_up_ns < now ? visits_.erase(visit) : ++visit;
}

bool Reception::go_on(Visit& visit, std::vector<Library>& patched) {
  for (;;) {
    alignas(8) std::byte buffer[sizeof(abi::ci_done)];
    auto message = receive(visit.visitor.socket.get(), buffer);
    if (!message) return false;
    bool hindered = message->no_descriptor_left || (!visit.answered && !has_descriptors_left());
    if (hindered) leave_unrecorded(visit.visitor.pid, NO_DESCRIPTOR);
    if (!message->size) note_impatience(visit);
    if (hindered || !message->size || !message->whole) return true;
    if (!visit.answered) {
      abi::ci_hello hello{};
      if (message->size != sizeof(hello)) return true;
      std::memcpy(&hello, buffer, sizeof(hello));
      if (hello.version != CI_VERSION) return true;
      // Its visit is not over: it stays until this cudabpf ends, or until patience does.
      if (hello.reason == abi::CI_LEAVING)
        depart_({visit.visitor.pid, hello});
      else if (!answer(visit, hello, message->fds))
        return true;
      visit.answered = true;
      continue;
    }
    abi::ci_done done{};
    constexpr std::size_t HEAD = offsetof(abi::ci_done, outcomes);
    if (message->size < HEAD) return true;
    std::memcpy(&done, buffer, message->size);
    if (done.sites <= CI_MAX_SITES && message->size == HEAD + done.sites)
      note(visit, done, patched);
    return true;
  }
}

// False: this is nobody to talk with.
bool Reception::answer(Visit& visit, const abi::ci_hello& hello, const std::vector<Fd>& files) {
  bool loaded = hello.reason == abi::CI_LOADED;
  visit.tracer = Procfs().tracer(visit.visitor.pid);  // it waits; later it may have ended
  if (files.size() != (loaded ? 1 : 0) || (!loaded && hello.reason != abi::CI_FORKED)) return false;
  const PlannedLibrary* library = nullptr;
  if (loaded && wanted_.calls) {
    auto id = FileId::of(files[0].get());
    if (!id) return false;
    bool named = std::any_of(named_.begin(), named_.end(),
                             [&](const FileId& one) { return one.same_file(*id); });
    library = &libraries_.of(files[0], *id, path_of(files[0]), named);
  }
  bool of_use = !library || library->count;
  Admission admission;
  if (!closed_ && of_use) admission = admit_({visit.visitor.pid, hello});
  unrecorded_ += admission.failed;
  visit.admitted = admission.traced;
  abi::ci_answer answer{};
  answer.version = CI_VERSION;
  answer.traced = admission.traced;
  answer.gpu = wanted_.gpu;
  std::vector<int> fds;
  if (admission.traced && admission.room >= 0) {
    answer.room_size = wanted_.room_size;
    fds.push_back(admission.room);
  }
  if (admission.traced && library) {
    answer.sites = library->count;
    fds.push_back(library->sites.get());
  }
  if (library && (admission.traced || !of_use)) {
    visit.library.emplace();
    visit.library->id = library->id;
    visit.library->library = library->library;
    visit.library->names = library->names;
    visit.library->refused = library->refused;
  }
  if (!of_use && told_.insert({library->id.device, library->id.inode}).second)
    log::warning("{} is not traced: {}", library->library.path,
                 library->library.error.empty() ? "none of its functions can be patched"
                                                : library->library.error);
  bool sent = send(visit.visitor.socket.get(), message_bytes(answer), fds);
  if (!sent) note_impatience(visit);
  return sent;
}

// Who has been let in says at last what became of it, unless it has given up, or is dead.
void Reception::note_impatience(const Visit& visit) {
  if (visit.admitted && kill(visit.visitor.pid, 0) == 0)
    leave_unrecorded(visit.visitor.pid, "it has waited too long for cudabpf");
}

void Reception::note(const Visit& visit, const abi::ci_done& done, std::vector<Library>& patched) {
  if (!visit.library) return;
  if (done.sites != visit.library->names.size())
    return leave_unrecorded(visit.visitor.pid, "it has no room for memory to share");
  const PlannedLibrary& planned = *visit.library;
  std::vector<std::string> refused = planned.refused;
  std::string_view last;
  for (std::size_t i = 0; i < done.sites; i++) {
    if (done.outcomes[i] == abi::CI_PATCHED) continue;
    last = why_not(done.outcomes[i]);
    refused.push_back(fmt::format("{} ({})", planned.names[i], last));
  }
  std::size_t count = planned.names.size() + planned.refused.size() - refused.size();
  Library library = planned.library;
  bool first = told_.insert({planned.id.device, planned.id.inode}).second;
  if (!count && !planned.names.empty()) {  // of a library without any it has been said
    leave_unrecorded(
        visit.visitor.pid,
        visit.tracer ? fmt::format("process {} debugs it, or traces its system calls", visit.tracer)
                     : fmt::format("no function of {} could be patched: {}", library.path, last));
  }
  if (!first) return;
  library.functions -=
      std::min<std::uint32_t>(library.functions, static_cast<std::uint32_t>(refused.size()));
  library.left_out += static_cast<std::uint32_t>(refused.size());
  library.unpatched = std::move(refused);
  patched.push_back(std::move(library));
}

void Reception::leave_unrecorded(pid_t pid, const std::string& why) {
  unrecorded_++;
  log::warning("calls of pid {} are not recorded: {}", pid, why);
}

}  // namespace cudabpf
