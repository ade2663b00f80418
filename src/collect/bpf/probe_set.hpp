// The programs in the kernel and the probes that run them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collect/bpf/driver_probes.hpp"
#include "collect/bpf/features.hpp"
#include "collect/bpf/link.hpp"
#include "collect/bpf/tally_maps.hpp"
#include "collect/bpf/uprobe_multi.hpp"
#include "collect/libraries.hpp"
#include "collect/library_functions.hpp"
#include "cudabpf/source.hpp"
#include "util/result.hpp"

struct bpf_map;
struct bpf_program;
struct cudabpf_bpf;

namespace cudabpf {

struct SkeletonDeleter {
  void operator()(cudabpf_bpf* skeleton) const;
};
using Skeleton = std::unique_ptr<cudabpf_bpf, SkeletonDeleter>;

class ProbeSet {
 public:
  // Loads the programs. Nothing is traced until a library is attached and a process is selected.
  struct Options {
    std::uint64_t ring_size = 32 << 20;
    bool follow_children = true;
    bool driver = false;             // also the programs that watch the driver
    std::uint32_t most_tallies = 0;  // kept at once; 0: no calls are only counted
    bool tally_times = false;        // by class, and failures by result
    bool static_probes = false;      // also the program for USDT probes
    std::uint64_t walked_ns = 0;     // calls that take so long have their Python frames walked
    // Probes only in these processes; empty: in every process that uses the library.
    std::vector<std::uint32_t> only_in;
    std::function<bool()> give_up = [] { return false; };  // called between single probes
  };
  static Result<std::unique_ptr<ProbeSet>> load(const Features& features, const Options& options);
  ~ProbeSet();
  ProbeSet(const ProbeSet&) = delete;
  ProbeSet& operator=(const ProbeSet&) = delete;

  // Puts these probes into a library, all or none.
  using Attachment = std::size_t;  // stands for one library's probes
  Result<Attachment> attach(const LibraryFile& file, const std::vector<PlannedProbe>& probes);
  void withdraw(Attachment attachment);
  // Why the kernel last refused a probe, as errno; 0: it never did.
  int refused() const { return refused_; }

  Result<> attach_process_events();
  // Only if Options wants it.
  DriverProbes& driver() { return *driver_; }

  void select_process(std::uint32_t pid);
  void unselect_process(std::uint32_t pid);
  void select_cgroup(const CgroupFolder& folder);
  void select_all();
  bool is_traced(std::uint32_t pid) const;  // selected, and has not ended
  // It was selected at some time; also true for a later process with the same pid.
  bool was_selected(std::uint32_t pid) const;

  // Entries first, so that no call is seen to begin but not to end. Single links may remain for a
  // minute or two after this returns, but record nothing.
  void detach();

  bpf_map* ring() const;
  TallyMaps::Maps tallies() const;
  // What the kernel's side knows of processes that run Python (abi::cb_python_process, by pid).
  int pythons() const;
  // How many codes of Python have been freed at this address, or at one that shares its count.
  std::uint32_t codes_freed(std::uint32_t pid, std::uint64_t code) const;
  // Counts them, by the function at `address` that frees them, which this mapping of the process
  // has. False: that is not possible.
  bool watch_freed_codes(std::uint32_t pid, const Mapping& mapping, std::uint64_t address);
  // A counter of the kernel side, summed over CPUs.
  std::uint64_t counter(unsigned counter) const;
  std::uint64_t tally_counter(unsigned counter) const;
  // How many records a thread has lost so far, as its next record would say.
  std::uint32_t drops(std::uint32_t tid) const;

 private:
  struct Attached {
    std::vector<Link> entries, returns;
    std::vector<Link> walks;  // at both ends of calls
  };
  // Where freed codes are counted.
  struct Freeing {
    FileId file;
    std::uint64_t offset;
    std::vector<Link> links;
  };
  // How programs are attached to functions: one link for each; one for all entries and one for all
  // returns; or one for both.
  enum class Way : std::uint8_t { single_links, multi, session };

  ProbeSet(Skeleton skeleton, Way way, std::vector<std::uint32_t> only_in,
           std::function<bool()> give_up)
      : skeleton_(std::move(skeleton)),
        way_(way),
        only_in_(std::move(only_in)),
        give_up_(std::move(give_up)) {}
  UprobeEnd end_of(const bpf_program* program) const;
  void choose_programs(const Features& features, const Options& options);
  void set_sizes_and_constants(const Features& features, const Options& options);
  bpf_program* entry_program(const PlannedProbe& probe) const;
  bpf_program* return_program(const PlannedProbe& probe) const;  // null: there is none
  std::string refusal();                                         // remembers errno
  std::string hang(const LibraryFile& file, const std::vector<PlannedProbe>& probes,
                   Attached& attached);
  std::string hang_walks(const LibraryFile& file, const std::vector<PlannedProbe>& probes,
                         std::vector<Link>& links);
  std::string hang_program(const LibraryFile& file, bpf_program* program, UprobeEnd end,
                           const UprobePlaces& places, std::vector<Link>& links);

  Skeleton skeleton_;               // first, so that what uses its programs is destroyed before it
  std::optional<ReadTable> reads_;  // once they are loaded
  const Way way_;
  const std::vector<std::uint32_t> only_in_;
  const std::function<bool()> give_up_;
  int refused_ = 0;
  std::string cgroup_path_;  // of the selected one
  std::vector<Attached> attached_;
  std::vector<Link> process_links_;
  std::vector<Freeing> freeing_;
  std::optional<DriverProbes> driver_;
};

}  // namespace cudabpf
