// The processes of a trace, each from its first line to its last: a pid that is used again is
// another process. What an analysis keeps of a process it keeps by its number, and drops when a
// line says that it is gone; so that how many are followed at once bounds them all.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analyze/trace/line.hpp"

namespace cudabpf::analyze {

// As it is when a line of it is read. Valid until the next line.
struct Process {
  std::uint64_t number = 0;  // from 1, in the order of their first lines
  std::uint32_t pid = 0, ppid = 0;
  Name comm;                // what it is called now; none: not told
  Name container;           // "docker 8f2b…"; none: it is in none, or its start was not told
  bool told = false;        // a line about itself has come
  std::uint64_t began = 0;  // ns; 0: before the trace
  // The program that it is was seen to begin: nothing of CUDA was there before.
  bool seen_begin = false;
  std::uint64_t last_line = 0;
};

class Processes {
 public:
  // So many are followed at once. Where there are more, those that have been quiet for longest are
  // taken to be gone, and are another process when they come again.
  static constexpr std::size_t MOST = 1 << 14;

  explicit Processes(Names& names, std::size_t most = MOST);

  // Fills in what the line has of its process.
  void follow(Line& line);
  std::uint64_t put_away() const { return put_away_; }  // that may not be gone at all

 private:
  Process& process(std::uint32_t pid);
  void tell(const Line& line, Process& process);
  void leave(std::uint32_t pid);
  void put_quiet_away();
  Name container_in(const Line& line);

  Names& names_;
  Name start_, fork_, exec_, exit_;
  std::size_t most_;
  bool all_seen_begin_ = false;  // cudabpf started the program
  std::uint64_t lines_ = 0, numbers_ = 0, put_away_ = 0;
  using Live = std::unordered_map<std::uint32_t, Process>;  // by pid
  Live live_;
  Process* last_ = nullptr;
  std::vector<Live::node_type> left_;  // with this line
  std::vector<const Process*> gone_;   // they
};

// Shows the number of each process that has nothing of CUDA any more from this line on: it is gone,
// or another program.
template <typename Forget>
void each_emptied(const Line& line, Forget&& forget) {
  if (line.new_program) forget(line.process->number);
  for (const Process* gone : line.gone) forget(gone->number);
}

// Forgets what they had: all entries of a table whose process, by its number, is one of them.
template <typename Table, typename ProcessOf>
void erase_emptied(const Line& line, Table& table, ProcessOf&& process_of) {
  if (table.empty() || (!line.new_program && line.gone.empty())) return;
  std::unordered_set<std::uint64_t> emptied;
  each_emptied(line, [&](std::uint64_t process) { emptied.insert(process); });
  std::erase_if(table, [&](const auto& entry) { return emptied.contains(process_of(entry)); });
}

}  // namespace cudabpf::analyze
