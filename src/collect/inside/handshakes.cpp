#include "collect/inside/handshakes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "collect/libraries.hpp"
#include "util/console/log.hpp"
#include "util/system/clock.hpp"
#include "util/system/procfs.hpp"

namespace cudabpf {

namespace {

constexpr std::size_t MAX_HANDSHAKES = 256;
// An honest process has one for each library that it loads, one after the other.
constexpr std::size_t MAX_OF_ONE = 4;
constexpr std::size_t MAX_READINGS = 4;  // of files, at once; one for each process
constexpr std::uint64_t WELCOME_NS = 2'000'000, LOOK_NS = 3'000'000;
constexpr std::uint64_t CLOSE_NS = 500'000'000;
constexpr const char* NO_DESCRIPTOR = "cudabpf may open no more files (ulimit -n)";
constexpr const char* GAVE_UP = "it waited too long for cudabpf, or could not receive its answer";
constexpr const char* SILENT =
    "it connected to cudabpf but sent no message; a seccomp filter may refuse it sendmsg or "
    "recvmsg";
constexpr std::uint64_t PATIENCE_NS = 5'000'000'000;  // with a process that says nothing

std::string_view why_not(std::uint8_t outcome) {
  switch (outcome) {
    case abi::CI_DIFFERS:
      return "its code in memory differs from the file";
    case abi::CI_TOO_FAR:
      return "there is no memory within reach of a jump";
    default:
      return "its code cannot be changed, or a debugger or strace is attached";
  }
}

bool has_descriptors(std::size_t count) {
  std::vector<Fd> some(count);
  return std::all_of(some.begin(), some.end(), [](Fd& one) {
    one = Fd(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
    return bool(one) || errno == EBADF;
  });
}
// With fewer, a process can neither be looked at nor get shared memory.
constexpr std::size_t NEEDED = 4;

template <typename T>
std::span<const std::byte> message_bytes(const T& message) {
  return std::as_bytes(std::span(&message, 1));
}

// A message of this type; nothing if it cannot be one.
template <typename T>
std::optional<T> message_of(const Waiting& first, std::span<const std::byte> bytes) {
  T message{};
  if (first.size != sizeof(message)) return std::nullopt;
  std::memcpy(&message, bytes.data(), sizeof(message));
  return message.version == CI_VERSION ? std::optional(message) : std::nullopt;
}

// The name of a process that says that it has given up.
std::optional<std::string> given_up(const Waiting& first, std::span<const std::byte> bytes) {
  auto said = message_of<abi::ci_given_up>(first, bytes);
  if (!said || said->reason != abi::CI_GIVEN_UP || first.brings_descriptors) return std::nullopt;
  return std::string(said->comm, strnlen(said->comm, sizeof(said->comm)));
}

}  // namespace

Handshakes::Handshakes(Listener listener, const elf::Reader& reader, PlannedLibraries& libraries,
                       const std::vector<std::string>& named, Host& host, Wanted wanted)
    : listener_(std::move(listener)),
      reader_(reader),
      parting_(reader),
      libraries_(libraries),
      host_(host),
      wanted_(wanted) {
  for (const std::string& path : named)
    if (auto file = open_named(path)) named_.push_back(file->id);
}

Handshakes::~Handshakes() {
  for (Handshake& handshake : handshakes_) part(handshake);
}

std::vector<int> Handshakes::watch_fds() const {
  std::vector<int> fds;
  if (!parting_.is_behind()) fds.push_back(listener_.fd());
  for (const Handshake& handshake : handshakes_) {
    if (handshake.reading)
      fds.push_back(handshake.reading->fd());
    else if (!handshake.waits_for_reading)
      fds.push_back(handshake.connection.socket.get());
  }
  return fds;
}

// ----- coming and going

void Handshakes::look(News& news) {
  parting_.go_on();
  welcome(now_ns(CLOCK_MONOTONIC) + WELCOME_NS, news);
  // However many come, there is time for all. In turn: a process that was looked at comes last.
  std::uint64_t until = now_ns(CLOCK_MONOTONIC) + LOOK_NS;
  for (std::size_t count = handshakes_.size(); count && now_ns(CLOCK_MONOTONIC) < until; count--) {
    handshakes_.splice(handshakes_.end(), handshakes_, handshakes_.begin());
    Handshake& handshake = handshakes_.back();
    if (!is_over(handshake, news)) continue;
    part(handshake);
    handshakes_.pop_back();
  }
}

void Handshakes::close(News& news) {
  closed_ = true;
  std::uint64_t until = now_ns(CLOCK_MONOTONIC) + CLOSE_NS;
  bool more = true;
  while (more && now_ns(CLOCK_MONOTONIC) < until) {
    look(news);
    constexpr int FOR_A_FILE_MS = 50;
    bool reading =
        std::any_of(handshakes_.begin(), handshakes_.end(),
                    [](const Handshake& handshake) { return handshake.reading.has_value(); });
    std::vector<pollfd> watched;
    for (int fd : watch_fds()) watched.push_back({fd, POLLIN, 0});
    more = poll(watched.data(), watched.size(), reading ? FOR_A_FILE_MS : 0) > 0 || reading;
  }
}

void Handshakes::welcome(std::uint64_t until, News& news) {
  while (!parting_.is_behind() && now_ns(CLOCK_MONOTONIC) < until) {
    auto connection = listener_.next();
    if (!connection) return;
    if (!connection->is_let_in)
      parting_.with(std::move(connection->socket));
    else if (connection->is_last || !has_descriptors(NEEDED))
      turn_away(std::move(*connection), news);
    else
      greet(std::move(*connection));
  }
}

void Handshakes::turn_away(Connection connection, News& news) {
  listener_.give_up_spares();  // identifying a process takes some,
  Host::Kin kin = Host::Kin::stranger;
  // and one that cannot be identified looks like a stranger: another thread may have had the last
  // one.
  constexpr int TIMES = 3;
  for (int i = 0; i < TIMES && kin == Host::Kin::stranger; i++) kin = host_.kin(connection.pid);
  bool may_be_ours = kin == Host::Kin::ours || (kin == Host::Kin::stranger && !has_descriptors(1));
  alignas(8) std::byte buffer[sizeof(abi::ci_given_up)];
  std::string name;
  if (auto first = peek(connection.socket.get(), buffer); first && kin == Host::Kin::gone)
    if (auto said = given_up(*first, buffer)) {
      may_be_ours = true;
      name = std::move(*said);
    }
  parting_.with(std::move(connection.socket));  // its process may soon have ended
  if (may_be_ours) leave_unrecorded(connection.pid, std::move(name), NO_DESCRIPTOR, news);
}

// Nothing that a stranger has sent is read.
void Handshakes::greet(Connection connection) {
  Host::Kin kin = host_.kin(connection.pid);
  auto of_one = [&](const Handshake& handshake) {
    return handshake.connection.pid == connection.pid;
  };
  if (kin == Host::Kin::stranger || std::count_if(handshakes_.begin(), handshakes_.end(), of_one) >=
                                        static_cast<std::ptrdiff_t>(MAX_OF_ONE))
    return parting_.with(std::move(connection.socket));
  // A traced process speaks at once, so the oldest that is still silent makes room.
  if (handshakes_.size() >= MAX_HANDSHAKES) {
    auto first = std::min_element(handshakes_.begin(), handshakes_.end(),
                                  [](const Handshake& one, const Handshake& other) {
                                    return one.give_up_ns < other.give_up_ns;
                                  });
    part(*first);
    handshakes_.erase(first);
  }
  Handshake& handshake = handshakes_.emplace_back();
  handshake.connection = std::move(connection);
  handshake.is_ours = kin == Host::Kin::ours;
  handshake.give_up_ns = now_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
}

void Handshakes::part(Handshake& handshake) {
  if (handshake.reading)
    parting_.with_one_in_use(std::move(handshake.connection.socket));
  else
    parting_.with(std::move(handshake.connection.socket));
}

// ----- one handshake

bool Handshakes::is_over(Handshake& handshake, News& news) {
  for (;;) {
    Then then = handshake.reading ? read(handshake, news) : hear(handshake, news);
    if (then != Then::go_on) return then == Then::part;
  }
}

Handshakes::Then Handshakes::hear(Handshake& handshake, News& news) {
  alignas(8) std::byte buffer[sizeof(abi::ci_done)];
  auto first = peek(handshake.connection.socket.get(), buffer);
  bool late = handshake.give_up_ns < now_ns(CLOCK_MONOTONIC);
  if (!handshake.hello && handshake.is_ours && (first ? first->is_none : late))
    leave_unrecorded(handshake, SILENT, news);
  if (!first) return late ? Then::part : Then::wait;
  if (first->is_none || first->size > sizeof(buffer)) return Then::part;
  if (auto name = given_up(*first, buffer)) {
    leave_unrecorded(handshake.connection.pid, std::move(*name), GAVE_UP, news);
    return Then::part;
  }
  if (!handshake.hello) {
    auto hello = message_of<abi::ci_hello>(*first, buffer);
    return hello ? hear_hello(handshake, *first, *hello, news) : Then::part;
  }
  if (first->brings_descriptors) return Then::part;
  abi::ci_done done{};
  constexpr std::size_t HEAD = offsetof(abi::ci_done, outcomes);
  if (!handshake.answered || first->size < HEAD) return Then::part;
  std::memcpy(&done, buffer, first->size);
  if (done.sites <= CI_MAX_SITES && first->size == HEAD + done.sites) note(handshake, done, news);
  return Then::part;
}

Handshakes::Then Handshakes::hear_hello(Handshake& handshake, const Waiting& first,
                                        const abi::ci_hello& hello, News& news) {
  if (first.brings_descriptors != (hello.reason == abi::CI_LOADED) ||
      hello.library >= std::size(APIS) || APIS[hello.library].has_probes())
    return Then::part;
  if (!has_descriptors(NEEDED)) {
    leave_unrecorded(handshake, NO_DESCRIPTOR, news);
    return Then::part;
  }
  handshake.tracer =
      Procfs().tracer(handshake.connection.pid);  // the process waits; later it may have ended
  if (hello.reason == abi::CI_LOADED) return begin_to_read(handshake, hello, news);
  take_away(handshake.connection.socket.get());
  handshake.hello = hello;
  if (hello.reason == abi::CI_FORKED || hello.reason == abi::CI_NAMES)
    return answer(handshake, nullptr, news);
  if (hello.reason == abi::CI_STOPPED) {
    host_.stopped(std::exchange(handshake.connection, {}), hello.tid);
    return Then::part;
  }
  if (hello.reason != abi::CI_LEAVING) return Then::part;
  // Its handshake is not over: it stays until this cudabpf ends, or until its time is over.
  host_.depart(handshake.connection.pid);
  handshake.answered = true;
  return Then::go_on;
}

Handshakes::Then Handshakes::begin_to_read(Handshake& handshake, const abi::ci_hello& hello,
                                           News& news) {
  std::size_t all = 0, of_one = 0;
  for (const Handshake& other : handshakes_) {
    all += other.reading.has_value();
    of_one += other.reading && other.connection.pid == handshake.connection.pid;
  }
  if (all < MAX_READINGS && of_one == 0)
    handshake.reading = reader_.take(handshake.connection.socket.get(),
                                     PlannedLibraries::contents_wanted(APIS[hello.library]));
  handshake.waits_for_reading = !handshake.reading;
  if (handshake.reading) {
    handshake.hello = hello;
    return Then::go_on;
  }
  if (now_ns(CLOCK_MONOTONIC) < handshake.give_up_ns) return Then::wait;
  leave_unrecorded(handshake, "too many files are to be read at once", news);
  return Then::part;
}

Handshakes::Then Handshakes::read(Handshake& handshake, News& news) {
  elf::Reading& reading = *handshake.reading;
  reading.look();
  auto contents = reading.result();
  if (!reading.taken()) {
    if (!contents) return Then::wait;
    leave_unrecorded(
        handshake, fmt::format("its {}: {}", handshake.api().library(), contents->error().message),
        news);
    return Then::part;
  }
  elf::Reading::Taken file = *reading.taken();
  const PlannedLibrary* library = wanted_.calls ? libraries_.find(handshake.api(), file) : nullptr;
  if (wanted_.calls && !library) {
    if (!contents) {
      reading.go_on();
      return Then::wait;
    }
    bool named = std::any_of(named_.begin(), named_.end(),
                             [&](const FileId& one) { return one.same_file(file.id); });
    auto planned = libraries_.plan(handshake.api(), file, *contents, named);
    if (!planned) {
      leave_unrecorded(handshake, planned.error().message, news);
      return Then::part;
    }
    library = *planned;
  }
  handshake.reading.reset();
  for (Handshake& other : handshakes_) other.waits_for_reading = false;
  return answer(handshake, library, news);
}

Handshakes::Then Handshakes::answer(Handshake& handshake, const PlannedLibrary* library,
                                    News& news) {
  // A process that has given up meanwhile, or has died, gets no shared memory.
  if (peek(handshake.connection.socket.get(), {})) return Then::go_on;
  // A libcuda of which nothing is recorded has a process's other libraries recorded.
  bool of_use = !library || library->count || (wanted_.others && !handshake.hello->library);
  Host::Admission admission;
  if (!closed_ && of_use) admission = host_.admit({handshake.connection.pid, *handshake.hello});
  if (!admission.failed.empty()) leave_unrecorded(handshake, admission.failed, news);
  if (library && (admission.traced || !of_use)) {
    handshake.library.emplace();
    handshake.library->id = library->id;
    handshake.library->api = library->api;
    handshake.library->library = library->library;
    handshake.library->names = library->names;
    handshake.library->refused = library->refused;
  }
  if (!of_use) report_unusable(*library);
  handshake.answered = true;
  if (send_answer(handshake, admission, library)) return Then::wait;
  if (errno == EPIPE || errno == ECONNRESET) return Then::go_on;  // it has given up, or is dead
  if (admission.traced) leave_unrecorded(handshake, errno_error("answering it").message, news);
  return Then::part;
}

bool Handshakes::send_answer(Handshake& handshake, const Host::Admission& admission,
                             const PlannedLibrary* library) {
  abi::ci_answer answer{};
  answer.version = CI_VERSION;
  answer.traced = admission.traced;
  answer.gpu = wanted_.gpu;
  answer.gpu_window = wanted_.gpu_window;
  answer.gpu_period = wanted_.gpu_period;
  answer.python = wanted_.python;
  std::vector<int> fds;
  if (admission.traced && admission.shared >= 0) {
    answer.memory_size = wanted_.memory_size;
    fds.push_back(admission.shared);
  }
  if (admission.traced && admission.tape >= 0) {
    answer.tape_size = wanted_.tape_size;
    fds.push_back(admission.tape);
  }
  if (admission.traced && library && library->count) {
    answer.sites = library->count;
    fds.push_back(library->sites.get());
  }
  return send(handshake.connection.socket.get(), message_bytes(answer), fds);
}

void Handshakes::report_unusable(const PlannedLibrary& planned) {
  if (!reported_.insert({planned.id.device, planned.id.inode}).second) return;
  log::warning("{} is not traced: {}", planned.library.path,
               planned.library.error.empty() ? "none of its functions can be patched"
                                             : planned.library.error);
}

// Its calls until now may be missing, if there can have been any.
void Handshakes::report_late(const Handshake& handshake, News& news) const {
  LossEvent loss;
  loss.reason = Loss::late_library;
  loss.detail = fmt::format("{} in pid {}: it was loaded after cuInit",
                            handshake.library->library.path, handshake.connection.pid);
  news.losses.push_back(std::move(loss));
}

void Handshakes::note(const Handshake& handshake, const abi::ci_done& done, News& news) {
  if (!handshake.library) return;
  if (done.sites != handshake.library->names.size())
    return leave_unrecorded(handshake, "it has no room for shared memory", news);
  const PlannedLibrary& planned = *handshake.library;
  bool may_miss_calls = handshake.hello->late && planned.api->first.empty();
  if (may_miss_calls && done.sites && wanted_.reported) report_late(handshake, news);
  std::vector<std::string> refused = planned.refused;
  std::string_view last;
  for (std::size_t i = 0; i < done.sites; i++) {
    if (done.outcomes[i] == abi::CI_PATCHED) continue;
    last = why_not(done.outcomes[i]);
    refused.push_back(fmt::format("{} ({})", planned.names[i], last));
  }
  std::size_t count = planned.names.size() + planned.refused.size() - refused.size();
  Library library = planned.library;
  bool first = reported_.insert({planned.id.device, planned.id.inode}).second;
  // A library without any names has been reported already.
  if (!count && !planned.names.empty() && !handshake.hello->library) {
    leave_unrecorded(
        handshake,
        handshake.tracer
            ? fmt::format("process {} debugs it, or traces its system calls", handshake.tracer)
            : fmt::format("no function of {} could be patched: {}", library.path, last),
        news);
  }
  bool selected = !planned.names.empty() || !planned.refused.empty();
  if (!first || !selected) return;
  if (!wanted_.reported) {
    if (!refused.empty())
      log::warning("calls of these functions have no lines of Python: {}",
                   fmt::join(refused, ", "));
    return;
  }
  library.functions -=
      std::min<std::uint32_t>(library.functions, static_cast<std::uint32_t>(refused.size()));
  library.left_out += static_cast<std::uint32_t>(refused.size());
  library.unpatched = std::move(refused);
  news.libraries.push_back(std::move(library));
}

// ----- processes that came to be recorded but are not

void Handshakes::leave_unrecorded(const Handshake& handshake, const std::string& why, News& news) {
  leave_unrecorded(handshake.connection.pid, {}, why, news);
}

// A process counts once, however often it comes.
void Handshakes::leave_unrecorded(pid_t pid, std::string name, const std::string& why, News& news) {
  constexpr std::uint64_t ONCE_NS = 10'000'000'000;  // its id may be another's by then
  std::uint64_t now = now_ns(CLOCK_MONOTONIC);
  std::erase_if(unrecorded_at_, [&](const auto& one) { return now - one.second > ONCE_NS; });
  if (!unrecorded_at_.try_emplace(pid, now).second) return;
  if (std::string known = Procfs().process(pid).comm; !known.empty()) name = known;
  std::string process =
      fmt::format("pid {}{}", pid, name.empty() ? "" : fmt::format(" ({})", name));
  log::warning("calls of {} are not recorded: {}", process, why);
  LossEvent loss;
  loss.reason = Loss::process_unrecorded;
  loss.count = 1;
  loss.detail = fmt::format("{}: {}", process, why);
  news.losses.push_back(std::move(loss));
}

}  // namespace cudabpf
