// What the driver was requests for: ioctls by command, group and the CUDA call that they served,
// and all other operations on its devices.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyze/analysis.hpp"
#include "util/durations.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

class Ioctls : public Analysis {
 public:
  struct Figures {
    std::string name;
    std::uint64_t count = 0, ioctls = 0;
    std::uint64_t failed = 0;
    Durations durations;
    std::uint64_t calls = 0;      // CUDA calls with requests
    std::uint64_t of_calls = 0;   // all calls of that function
    std::uint64_t call_time = 0;  // ns, of those with requests

    void add(const Figures& other);
  };

  // What an answer counts under "(others)".
  struct NotKeptApart {
    std::uint64_t kinds = 0, processes = 0, functions = 0;
  };

  // Each list has the longest total first.
  struct Answer {
    bool traced = false;  // the trace was meant to have these
    std::string way;      // by which feature
    std::vector<Figures> operations;
    std::vector<Figures> groups, commands;  // of ioctls
    std::vector<Figures> calls;             // by the CUDA function that they served
    std::vector<Figures> outside;           // outside any traced call, by process
    std::vector<Figures> devices, processes;
    NotKeptApart not_kept_apart;
  };

  explicit Ioctls(Names& names);

  void line(const Line& line) override;
  void finish(const TraceFacts& facts) override;
  Answer answer() const;

 private:
  // At most this many of each are kept apart; later ones are counted as one.
  static constexpr std::size_t MAX_KINDS = 4096, MAX_PROCESSES = 4096, MAX_FUNCTIONS = 4096;
  static constexpr std::size_t MAX_OPEN_CALLS = 1 << 14;

  struct Kind {
    Name op, name, detail, group, device;
    bool of_process = false;
    bool operator==(const Kind&) const = default;
  };
  struct KindHash {
    std::size_t operator()(const Kind& kind) const;
  };
  struct Process {
    Name comm;
    std::uint32_t pid = 0;
    bool operator==(const Process&) const = default;
  };
  struct ProcessHash {
    std::size_t operator()(const Process& process) const {
      return hash_of(process.comm.id, process.pid);
    }
  };
  struct OfProcess {
    Figures all, outside;  // outside: outside any call
  };
  struct Function {
    std::uint64_t calls = 0;
    bool has_requests = false;
  };

  void operation(const Line& line);
  void call(const Line& line);
  void count(Figures& figures, const Line& line) const;
  Figures& of_kind(const Line& line);
  OfProcess& of_process(const Line& line);
  void add_function(Name function, const Figures& requests);
  void close_calls();
  template <typename NameOf>
  std::vector<Figures> fold(NameOf name_of) const;
  void add_functions(Answer& answer) const;
  void add_processes(Answer& answer) const;

  Names& names_;
  struct {
    Name ioctl, nv_ok, calls_lost, others;
  } words_;
  HashMap<Kind, Figures, KindHash> kinds_;
  HashMap<Process, OfProcess, ProcessHash> processes_;
  // Requests of calls whose own lines have not come yet: operations come before their call.
  HashMap<std::uint64_t, Figures> open_;
  std::unordered_map<std::uint32_t, Figures> requests_;  // by the function's name
  std::vector<Function> functions_;                      // by their name
  NotKeptApart not_kept_apart_;
  bool traced_ = false;
  std::string way_;
};

enum class IoctlsBy : std::uint8_t { everything, command, group, call, device, process };

Json ioctls_json(const Ioctls::Answer& answer);
Json ioctls_columns();  // for the page of `report`
void add_ioctls(Page& page, const Ioctls::Answer& answer, IoctlsBy by, std::size_t at_most);

}  // namespace cudabpf::analyze
