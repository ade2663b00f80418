// Which file's code lay at an address of a process at a moment.
//
// A mapping is taken to be there until another replaces it: what was unmapped is called by nobody.
// Every mapping of code since a process began has to be known, or since it was looked through: then
// an address can never be taken for that of a file that was there before or comes later. What
// processes do may be read long after they did it: a look shows what there was when it was taken,
// and nothing of the time before.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "collect/mapping_records.hpp"
#include "util/system/procfs.hpp"

namespace cudabpf {

class CodeMaps {
 public:
  void mapped(MappedCode code);
  // What a process has mapped at `ts`; nothing, if it has ended.
  void looked_through(std::uint32_t pid, const std::vector<Mapping>& maps, std::uint64_t ts);
  void forked(std::uint32_t parent, std::uint32_t child, std::uint64_t ts);
  void executed(std::uint32_t pid, std::uint64_t ts);  // its old mappings are gone
  void ended(std::uint32_t pid) { processes_.erase(pid); }
  // Mappings from before `ts` are missing: no process is known any more.
  void lost(std::uint64_t ts);

  bool knows(std::uint32_t pid) const;
  // Null: it is not known, or no code.
  const MappedCode* at(std::uint32_t pid, std::uint64_t address, std::uint64_t ts) const;

 private:
  static constexpr std::uint64_t NEVER = ~std::uint64_t{0};
  static constexpr std::size_t MAX_MAPPINGS = 8192, MAX_PROCESSES = 4096;
  struct OfProcess {
    std::uint64_t whole_since = NEVER;
    std::uint64_t forgotten_until = 0;  // some mappings from before that are not kept
    std::vector<MappedCode> code;       // in the order in which they became known
  };

  OfProcess* process(std::uint32_t pid);  // null: there are too many
  // Forgets all that is kept, up to `ts`, if there is no room for so many more.
  static void make_room(OfProcess& of, std::size_t more, std::uint64_t ts);

  std::map<std::uint32_t, OfProcess> processes_;
  std::uint64_t lost_until_ = 0;
};

}  // namespace cudabpf
