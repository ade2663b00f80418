// Answers traced processes that come to the listener: what to record, and into which memory.
// Nothing here waits for them: a look takes a few milliseconds, whatever they do.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collect/inside/listener.hpp"
#include "collect/inside/parting.hpp"
#include "collect/inside/planned_library.hpp"
#include "cudabpf/event.hpp"
#include "cudabpf/inside.h"
#include "cudabpf/source.hpp"
#include "util/elf/elf_reader.hpp"

namespace cudabpf {

// A process that has said hello.
struct Arrival {
  pid_t pid = 0;
  abi::ci_hello hello{};
};

// Knows which processes are to be recorded.
class Host {
 public:
  enum class Kin : std::uint8_t {
    ours,  // one that is to be recorded
    stranger,
    gone,  // that cannot be found out any more
  };
  // Whether the process is traced, and the descriptors of what it shares, if it needs any (else
  // -1).
  struct Admission {
    bool traced = false;
    int shared = -1;
    int tape = -1;       // of its memory for a capture
    std::string failed;  // why the process is not recorded, although it should be
  };

  virtual ~Host() = default;
  virtual Kin kin(pid_t pid) = 0;
  virtual Admission admit(const Arrival& arrival) = 0;
  virtual void depart(pid_t pid) = 0;
  // A thread of it stands at a launch, and waits for orders.
  virtual void stopped(Connection connection, std::uint32_t inner_tid) = 0;
};

class Handshakes {
 public:
  struct Wanted {
    bool calls = true;     // something of them: see PlannedLibraries
    bool reported = true;  // libraries whose calls are recorded are news
    bool python = false;
    bool others = false;    // calls of libraries besides libcuda
    std::uint32_t gpu = 0;  // abi::cb_gpu_times_of
    std::uint64_t gpu_window = 0, gpu_period = 0;
    std::uint64_t memory_size = 0;
    std::uint64_t tape_size = 0;
  };

  Handshakes(Listener listener, const elf::Reader& reader, PlannedLibraries& libraries,
             const std::vector<std::string>& named, Host& host, Wanted wanted);
  Handshakes(const Handshakes&) = delete;
  Handshakes& operator=(const Handshakes&) = delete;
  ~Handshakes();

  std::vector<int> watch_fds() const;  // readable when there is something to do
  // Serves them. News: libraries whose functions have been patched for the first time, and
  // processes that came to be recorded but are not.
  void look(News& news);
  // No process is let in any more; what those that have come already have to say is heard.
  void close(News& news);
  // A process was to be recorded, but is not.
  void miss(pid_t pid, const std::string& why, News& news) { leave_unrecorded(pid, {}, why, news); }

 private:
  struct Handshake {
    Connection connection;
    std::uint64_t give_up_ns = 0;
    bool is_ours = false;  // it still existed when this was to be decided
    std::optional<abi::ci_hello> hello;
    std::optional<elf::Reading> reading;
    bool waits_for_reading = false;  // until other files have been read
    bool answered = false;
    pid_t tracer = 0;                       // a process that debugs it; 0: none
    std::optional<PlannedLibrary> library;  // without its descriptor
    const Api& api() const { return APIS[hello->library]; }
  };
  enum class Then : std::uint8_t { wait, go_on, part };

  void welcome(std::uint64_t until, News& news);
  void turn_away(Connection connection, News& news);
  void greet(Connection connection);
  void part(Handshake& handshake);

  bool is_over(Handshake& handshake, News& news);
  Then hear(Handshake& handshake, News& news);
  Then hear_hello(Handshake& handshake, const Waiting& first, const abi::ci_hello& hello,
                  News& news);
  Then begin_to_read(Handshake& handshake, const abi::ci_hello& hello, News& news);
  Then read(Handshake& handshake, News& news);
  Then answer(Handshake& handshake, const PlannedLibrary* library, News& news);
  bool send_answer(Handshake& handshake, const Host::Admission& admission,
                   const PlannedLibrary* library);
  void report_unusable(const PlannedLibrary& library);
  void report_late(const Handshake& handshake, News& news) const;
  void note(const Handshake& handshake, const abi::ci_done& done, News& news);
  void leave_unrecorded(const Handshake& handshake, const std::string& why, News& news);
  // `name`: of a process that may have ended.
  void leave_unrecorded(pid_t pid, std::string name, const std::string& why, News& news);

  Listener listener_;
  const elf::Reader& reader_;
  Parting parting_;
  PlannedLibraries& libraries_;
  std::vector<FileId> named_;  // files that the user says are libcuda
  Host& host_;
  const Wanted wanted_;
  bool closed_ = false;
  std::list<Handshake> handshakes_;
  std::map<pid_t, std::uint64_t> unrecorded_at_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> reported_;  // devices and inodes of libraries
};

}  // namespace cudabpf
