// Threads that record at the same time, while cudabpf reads: nothing is lost uncounted. Under
// ThreadSanitizer, nothing is read that another thread may just be writing.
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "collect/inside/listener.hpp"
#include "support/temporary_folder.hpp"
#include "traced_process.hpp"

using namespace cudabpf;

namespace {

// Sanitizers slow threads down.
constexpr std::uint64_t THREADS = 4, CALLS = 20'000;

// What has been read of threads' calls: each call's first word is the thread's number and how many
// calls it has made before.
struct Seen {
  std::map<std::pair<std::size_t, std::uint64_t>, std::uint64_t> last;  // by ring and thread
  std::uint64_t records = 0, entries = 0;
  bool in_order = true;

  void note(std::size_t ring, const Record& record) {
    records++;
    if (record.head.kind != abi::CB_ENTRY) return;
    entries++;
    std::uint64_t thread = record.words[0] / CALLS, call = record.words[0] % CALLS;
    auto [last_one, first] = last.try_emplace({ring, thread}, call);
    in_order &= first || call > last_one->second;
    last_one->second = call;
  }
};

void make_calls(std::uint64_t thread, std::uint64_t from, std::uint64_t to) {
  abi::cb_plan plan = plan_of(3);
  for (std::uint64_t call = from; call < to; call++) {
    Arguments arguments{thread * CALLS + call};
    calling(&plan, nullptr, false, arguments.data(), 0);
  }
}

void check_books(TracedProcess& process, const Seen& seen) {
  std::uint64_t dropped = 0;
  for (int i = abi::CB_DROPPED_ENTRY; i < abi::CB_COUNTERS; i++)
    dropped += process.counted(static_cast<abi::cb_counter>(i));
  CHECK(process.counted(abi::CB_ENTERED) == process.counted(abi::CB_EMITTED) + dropped);
  CHECK(seen.records == process.counted(abi::CB_EMITTED));
  CHECK(seen.in_order);
  CHECK(process.broken() == 0);
}

// cudabpf's listener, where each process gets shared memory of its own, and nothing to patch.
class OpenListener {
 public:
  OpenListener() : path_(folder_.path() / "in" / "listener") {
    auto listener = Listener::open(path_, {getuid()});
    REQUIRE(listener);
    listener_.emplace(std::move(*listener));
    setenv(CI_LISTENER, path_.c_str(), 1);
    host_ = std::thread([this] { serve(); });
  }
  ~OpenListener() {
    if (host_.joinable()) close();
    unsetenv(CI_LISTENER);
  }
  OpenListener(const OpenListener&) = delete;
  OpenListener& operator=(const OpenListener&) = delete;

  // Lets no process in any more; returns those that are traced.
  std::list<SharedRings>& close() {
    closed_ = true;
    host_.join();
    return rings_;
  }

 private:
  void serve() {
    std::vector<Connection> connections;
    while (!closed_) {
      pollfd polled{listener_->fd(), POLLIN, 0};
      poll(&polled, 1, 1);
      while (auto connection = listener_->next()) connections.push_back(std::move(*connection));
      for (const Connection& connection : connections) answer(connection);
    }
  }
  void answer(const Connection& connection) {
    alignas(8) std::byte buffer[sizeof(abi::ci_done)];
    // The kernel closes what a message brings and is not taken, such as descriptors.
    if (recv(connection.socket.get(), buffer, sizeof(buffer), MSG_DONTWAIT) !=
        sizeof(abi::ci_hello))
      return;
    rings_.push_back(std::move(*SharedRings::make({}, {}, abi::CI_MONOTONIC)));
    abi::ci_answer answer{};
    answer.version = CI_VERSION;
    answer.traced = 1;
    answer.memory_size = SharedRings::size();
    int shared = rings_.back().fd();
    send(connection.socket.get(), std::as_bytes(std::span(&answer, 1)), std::span(&shared, 1));
  }

  TemporaryFolder folder_;
  std::string path_;
  std::optional<Listener> listener_;
  std::list<SharedRings> rings_;
  std::atomic<bool> closed_ = false;
  std::thread host_;
};

// Loads the library as libcuda does: from a library, which this program is not.
void load() {
  void* library = dlopen(CALLING_DRIVER, RTLD_NOW);
  REQUIRE(library);
  auto load_injection = reinterpret_cast<int (*)(int (*)())>(dlsym(library, "load_injection"));
  REQUIRE(load_injection);
  CHECK(load_injection(InitializeInjection) == 1);
}

}  // namespace

TEST_CASE("When rings are unread for long, threads take no more, and their calls are lost") {
  TracedProcess process;
  process.read_all();
  std::thread(make_calls, 0, 0, 10).join();
  CHECK(process.counted(abi::CB_EMITTED) == 20);
  calling_unread_for(60);
  std::thread(make_calls, 1, 0, 10).join();
  CHECK(process.counted(abi::CB_EMITTED) == 20);
  CHECK(process.counted(abi::CB_DROPPED_ENTRY) == 10);
  CHECK(process.read_all().size() == 20);
  std::thread(make_calls, 2, 0, 10).join();
  CHECK(process.counted(abi::CB_EMITTED) == 40);
}

TEST_CASE("Threads come and go, and their records are read meanwhile") {
  TracedProcess process;
  Seen seen;
  std::atomic<bool> over = false;
  std::thread reader([&] {
    while (!over)
      process.read([&](std::size_t ring, const Record& record) { seen.note(ring, record); });
  });
  constexpr std::uint64_t LIVES = 10;  // of each thread, one after the other
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < THREADS; thread++)
    threads.emplace_back([=] {
      for (std::uint64_t life = 0; life < LIVES; life++)
        std::thread(make_calls, thread, life * CALLS / LIVES, (life + 1) * CALLS / LIVES).join();
    });
  for (std::thread& thread : threads) thread.join();
  over = true;
  reader.join();
  process.read([&](std::size_t ring, const Record& record) { seen.note(ring, record); });
  check_books(process, seen);
  CHECK(process.counted(abi::CB_ENTERED) == 2 * THREADS * CALLS);
}

TEST_CASE("A ring that is not read takes no more, and counts what it does not take") {
  TracedProcess process;
  make_calls(0, 0, CALLS);
  CHECK(process.counted(abi::CB_DROPPED_ENTRY) + process.counted(abi::CB_DROPPED_RETURN) > 0);
  Seen seen;
  process.read([&](std::size_t ring, const Record& record) { seen.note(ring, record); });
  check_books(process, seen);
  make_calls(0, 0, 1);
  CHECK(process.read_all().size() == 2);
}

TEST_CASE("A signal's handler makes calls at any moment") {
  static std::atomic<std::uint64_t> handled;
  handled = 0;
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) {
    abi::cb_plan plan = plan_of(3);
    Arguments arguments{THREADS * CALLS + handled++};
    calling(&plan, nullptr, false, arguments.data(), 0);
  };
  TracedProcess process;
  sigaction(SIGALRM, &action, &before);
  // The next signal comes only after the last was handled: a slow machine, or one that checks each
  // access to memory, would do nothing else if the timer ran on by itself.
  itimerval soon{{0, 0}, {0, 50}}, never{};
  Seen seen;
  std::uint64_t made = 0, armed = 0;
  for (; made < CALLS; made++) {
    if (handled == armed && !setitimer(ITIMER_REAL, &soon, nullptr)) armed++;
    make_calls(0, made, made + 1);
    process.read([&](std::size_t ring, const Record& record) { seen.note(ring, record); });
  }
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  process.read([&](std::size_t ring, const Record& record) { seen.note(ring, record); });
  check_books(process, seen);
  CHECK(handled > 0);
  // A handler that comes while the thread takes its ring loses the whole call at its entry.
  CHECK(process.counted(abi::CB_ENTERED) >= 2 * made + handled);
  CHECK(process.counted(abi::CB_ENTERED) <= 2 * (made + handled));
}

TEST_CASE(
    "A child's threads that call at once get one piece of shared memory, by the first of them") {
  OpenListener listener;
  load();
  constexpr int CHILDREN = 20;
  for (int child = 0; child < CHILDREN; child++) {
    calling_as_a_child();
    std::vector<std::thread> threads;
    for (std::uint64_t thread = 0; thread < THREADS; thread++)
      threads.emplace_back(make_calls, thread, 0, 100);
    for (std::thread& thread : threads) thread.join();
  }
  std::list<SharedRings>& traced = listener.close();
  REQUIRE(traced.size() == 1 + CHILDREN);
  traced.pop_front();  // of the process itself, which has made no call
  for (SharedRings& shared : traced) CHECK(shared.counts().entered == 2 * THREADS * 100);
}
