// The processes of a trace, each from its first line to its last: a pid that is reused is another
// process. An analysis keeps what it knows about a process by the process's number, and drops it
// when a line says that the process is gone, so the limit on processes followed at once bounds
// every analysis.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

#include "trace/read/line.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

// A process as it is when one of its lines is read. Valid until the next line.
struct Process {
  std::uint64_t number = 0;  // from 1, in the order of their first lines
  std::uint32_t pid = 0, ppid = 0;
  Name host;       // in a merge of several hosts' traces; none: there is one
  Name comm;       // its current name; none: not known
  Name command;    // its command line; none: not known
  Name container;  // "docker 8f2b…"; none: in none, or no line said so
  // Its number among the processes of its job: as the launcher has told it, or else in the largest
  // of its communicators, which has so many ranks.
  std::optional<std::uint32_t> rank;
  std::uint32_t ranks = 0;
  bool known = false;       // a line about the process itself has come
  std::uint64_t began = 0;  // ns; 0: before the trace
  // Its program was seen to begin, so it had no CUDA state before.
  bool seen_begin = false;
  std::uint64_t last_line = 0;
};

class Processes {
 public:
  // At most this many are followed at once. If there are more, those that have been quiet for
  // longest are taken to be gone, and count as new processes if they come again.
  static constexpr std::size_t MAX = 1 << 14;

  explicit Processes(Names& names, std::size_t most = MAX);

  // Fills in what the line says about its process.
  void follow(Line& line);
  std::uint64_t put_away() const { return put_away_; }  // processes that may not be gone at all

 private:
  Process& process(std::uint32_t pid);
  void note(const Line& line, Process& process);
  void leave(std::uint32_t pid);
  void put_quiet_away();
  void note_communicator(Line& line);
  Name container_in(const Line& line);

  Names& names_;
  Name start_, fork_, exec_, exit_;
  std::size_t most_;
  bool all_seen_begin_ = false;  // cudabpf started the program
  std::uint64_t lines_ = 0, numbers_ = 0, put_away_ = 0;
  using Live = HashMap<std::uint32_t, Process>;  // by pid
  Live live_;
  Process* last_ = nullptr;
  std::vector<Live::node_type> left_;  // those that end with this line
  std::vector<const Process*> gone_;   // pointers to them
};

// Calls `forget` with the number of each process that has no CUDA state from this line on: it is
// gone, or runs another program.
template <typename Forget>
void each_emptied(const Line& line, Forget&& forget) {
  if (line.new_program) forget(line.process->number);
  for (const Process* gone : line.gone) forget(gone->number);
}

// Erases the table's entries that belong to such processes.
template <typename Table, typename ProcessOf>
void erase_emptied(const Line& line, Table& table, ProcessOf&& process_of) {
  if (table.empty() || (!line.new_program && line.gone.empty())) return;
  std::unordered_set<std::uint64_t> emptied;
  each_emptied(line, [&](std::uint64_t process) { emptied.insert(process); });
  std::erase_if(table, [&](const auto& entry) { return emptied.contains(process_of(entry)); });
}

}  // namespace cudabpf::analyze
