// The memory that a trace's processes held: how much over time, what held it at its peak, what was
// never freed, and how fast it was turned over; in each process, or by the program's range in which
// it was allocated.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "analyze/analysis.hpp"
#include "analyze/memory/blocks.hpp"
#include "analyze/memory/driver_memory.hpp"
#include "analyze/memory/memory_peak.hpp"
#include "analyze/memory/out_of_memory.hpp"
#include "analyze/memory/traced_memory.hpp"
#include "analyze/time_buckets.hpp"
#include "state/memory_figures.hpp"
#include "util/durations.hpp"
#include "util/hash.hpp"
#include "util/keyed_rows.hpp"
#include "util/largest.hpp"

namespace cudabpf::analyze {

class Memory : public Analysis, private LiveMemory::Listener {
 public:
  using Block = LiveMemory::Block;
  using Ended = LiveMemory::Ended;
  enum class By : std::uint8_t { process, range, line, holder };
  using ByKind = std::array<std::uint64_t, MEMORY_KINDS>;

  // Pinned host memory is not GPU memory, and is counted separately.
  enum class Side : std::uint8_t { gpu, host };
  static constexpr std::size_t SIDES = 2;
  static Side side_of(MemoryKind kind) { return kind == MemoryKind::host ? Side::host : Side::gpu; }

  // What is held, and what PyTorch's allocator has given away of it in blocks.
  struct Held {
    ByKind kinds{};
    std::uint64_t blocks = 0;
  };
  // What was held during a bucket of time: each kind when its side held most, the most in blocks,
  // and all at the end.
  struct Level {
    Held most, last;
    std::array<std::uint64_t, SIDES> sums{};  // of `most`
    bool touched = false;
    void set(const Held& held);
    void merge(const Level& next);
  };
  using Curve = TimeBuckets<Level>;

  struct Holder {  // a process, a range, a line, a file whose code asked, or all of them
    std::uint32_t pid = 0;
    Name comm;
    const RangePlace* place = nullptr;
    Name file;            // none: it is not known
    bool others = false;  // for all that found no room
    MemoryByKind kinds;
    std::array<MemoryPeak, SIDES> peaks;
    std::array<MemoryPeak::Holders, SIDES> at_peak;  // known once all lines were seen
    Held held;
    std::uint64_t most_blocks = 0;  // only of processes, and of all of them
    Curve curve;
  };

  // How a block that was never freed came to its end.
  enum class Fate : std::uint8_t { still_held, with_context, with_process };
  struct NeverFreed {
    Block block;
    Fate how = Fate::still_held;
    std::uint64_t age = 0;  // ns: until then, or until the trace's end
  };
  // What one file's code asked for.
  struct Asked {
    Name holder;  // none: it is not known
    std::array<std::uint64_t, SIDES> allocations{};
    std::array<std::uint64_t, SIDES> held{};
    std::array<std::uint64_t, SIDES> at_peak{};  // of all
  };
  struct UnknownFree {
    Name function;
    std::uint32_t pid = 0;
    std::uint64_t address = 0, ts = 0, call = 0;
  };
  struct Churn {             // of blocks of one size
    std::uint64_t size = 0;  // 0: all sizes beyond the first MAX_SIZES
    std::uint64_t allocations = 0, frees = 0;
    std::uint64_t again = 0;  // allocated within SOON after one of this size was freed
    Durations lifetimes;
    std::uint64_t last_freed = 0;
    std::uint32_t last_pid = 0;  // whose block that was
  };
  static constexpr std::uint64_t SOON = 1'000'000;  // ns

  // Blocks are followed through the whole trace. What happens in the part is counted: blocks held
  // when it begins are held, but were not allocated in it; blocks never freed are those allocated
  // in it.
  explicit Memory(Names& names, Part part = {}, By by = By::process);

  void line(const Line& line) override;
  void outside(const Line& line) override { this->line(line); }
  void finish(const TraceFacts& facts) override;

  const Names& names() const { return names_; }
  By by() const { return by_; }
  bool is_by_place() const { return by_ == By::range || by_ == By::line; }
  const Holder& all() const { return all_; }
  // Processes or ranges, the highest peak first. If there are more than MAX_HOLDERS, one stands for
  // the rest.
  const std::vector<Holder>& holders() const { return holders_; }
  // The most at the peak of GPU memory first; empty: no holder is known.
  const std::vector<Asked>& asked() const { return asked_; }
  const MemoryOrigin& origin_of(const Block& block) const { return memory_.origin_of(block); }
  const Blocks& blocks() const { return blocks_; }
  const DriverMemory& driver() const { return driver_; }
  // The first moments at which memory ran out, and how many there were.
  const std::vector<OutOfMemory>& ran_out() const { return ran_out_; }
  std::uint64_t times_ran_out() const { return times_ran_out_; }
  // Some frees are not in the trace, so what was never freed is not known.
  bool frees_left_out() const { return frees_left_out_; }
  const std::vector<NeverFreed>& never_freed() const { return never_freed_; }  // the largest first
  std::uint64_t never_freed_blocks() const { return never_freed_blocks_; }
  std::uint64_t never_freed_bytes() const { return never_freed_bytes_; }
  const std::vector<UnknownFree>& unknown_frees() const { return unknown_frees_; }  // the first few
  std::uint64_t unknown_free_count() const { return unknown_free_count_; }
  std::vector<Churn> churn()
      const;  // sizes that were turned over; the most frequent first, other sizes last
  // From the first allocation to the last.
  std::uint64_t allocating_time() const { return last_allocation_ - first_allocation_; }
  // When the part that is wanted begins and ends.
  std::uint64_t begin() const { return part_.clipped(0); }
  std::uint64_t end() const { return std::max(begin(), part_.clipped(duration_)); }
  std::uint64_t not_returned() const { return not_returned_; }  // allocations of unknown outcome
  const LiveMemory::LeftOut& left_out() const { return memory_.live().left_out(); }

  // The curve in `count` columns, from the part's beginning to its end.
  std::vector<Level> columns(const Curve& curve, std::size_t count) const;

 private:
  static constexpr std::size_t MAX_HOLDERS = 256;
  static constexpr std::size_t MAX_SIZES = 1024;
  static constexpr std::size_t KEPT_NEVER_FREED = 1000;
  static constexpr std::size_t KEPT_UNKNOWN = 20;
  static constexpr std::size_t KEPT_RAN_OUT = 3;

  void allocated(const Block& block) override;
  void ended(const Block& block, std::uint64_t ts, Ended how) override;
  void freed_unknown(const MemoryCall& free) override;

  void begin_part();
  std::size_t new_holder(const Block& block);
  Holder& holder_of(const Block& block);
  void find_holders();
  void find_asked();
  Asked& asked_by(const Block& block);
  std::uint64_t number_of(const Block& block, const RangePlace* place) const;
  void blocks_changed(const Line& line);
  void set_blocks(std::uint64_t process, std::uint64_t bytes, std::uint64_t ts);
  void add(Holder& holder, const Block& block) const;
  void drop(Holder& holder, const Block& block, std::uint64_t ts, Ended how) const;
  Churn& churn_of(std::uint64_t size);
  void keep_never_freed(const NeverFreed& block);
  struct Larger {
    bool operator()(const NeverFreed& a, const NeverFreed& b) const {
      return std::tuple(a.block.size, b.block.number) > std::tuple(b.block.size, a.block.number);
    }
  };

  Names& names_;
  Part part_;
  By by_;
  bool begun_;                // the part has
  std::uint64_t number_ = 0;  // of the last block
  TracedMemory memory_;
  Blocks blocks_;
  DriverMemory driver_;
  Holder all_;
  std::vector<Holder> holders_;
  KeyedRows<std::uint32_t, Asked> by_file_;
  std::vector<Asked> asked_;  // those, in the end
  std::vector<OutOfMemory> ran_out_;
  std::uint64_t times_ran_out_ = 0;
  std::unordered_map<std::uint64_t, std::size_t> holder_by_number_;  // of a process or a range
  HashMap<std::uint64_t, std::size_t> holder_by_block_;              // if by range
  HashSet<std::uint64_t> not_wanted_;                                // blocks of other ranges
  const Line* line_ = nullptr;                                       // the current one
  HashMap<std::uint64_t, Churn> churn_;                              // by size
  Largest<NeverFreed, Larger> largest_never_freed_{KEPT_NEVER_FREED};
  std::vector<NeverFreed> never_freed_;
  std::uint64_t never_freed_blocks_ = 0, never_freed_bytes_ = 0;
  std::vector<UnknownFree> unknown_frees_;
  std::uint64_t unknown_free_count_ = 0;
  std::uint64_t first_allocation_ = 0, last_allocation_ = 0;
  std::uint64_t duration_ = 0, not_returned_ = 0;
  bool frees_left_out_ = false;
};

std::string_view to_string(Memory::Fate fate);
// "4242 python"; printable.
std::string name_of(const Memory& memory, const Memory::Holder& holder);
// "process", "range", "line" or "holder".
std::string what_holds(const Memory& memory);
std::string several_hold(const Memory& memory);
Json memory_json(const Memory& memory);
Json memory_columns();  // of blocks, for the page of `report`
void add_memory(Page& page, const Memory& memory, std::size_t at_most);
// The blocks of PyTorch's allocator.
Json blocks_json(const Memory& memory);
void add_blocks(Page& page, const Memory& memory);
// What the driver took, beside what NVML says.
Json driver_memory_json(const Memory& memory);
void add_driver_memory(Page& page, const Memory& memory);
// The moments at which memory ran out.
Json out_of_memory_json(const Memory& memory);
void add_out_of_memory(Page& page, const Memory& memory);
// The curve as a picture, by kind, for all processes and for each, with PyTorch's blocks as a line.
std::string memory_svg(const Memory& memory, std::string_view title);

}  // namespace cudabpf::analyze
