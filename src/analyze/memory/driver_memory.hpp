// The memory of GPUs that the driver took for each process, as its requests to the kernel say: for
// what the process asked for, and for the driver's own needs (contexts, code, the local memory of
// kernels, streams). Beside it, what NVML says that the process had: the rest is unexplained.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "cudabpf/event.hpp"
#include "trace/read/line.hpp"
#include "trace/read/part.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

class DriverMemory {
 public:
  // What the driver took in calls of one kind.
  struct Share {
    // own: for itself, in calls of the function `name`; asked: for allocations of the file `name`.
    enum class Of : std::uint8_t { own, asked, others };
    Of of = Of::own;
    Name name;  // none: in no recorded call; whose code asked is not known
    std::uint64_t bytes = 0, objects = 0;
    void add(std::uint64_t size) { bytes += size, objects++; }
    void remove(std::uint64_t size) { bytes -= size, objects--; }
  };
  struct Moment {
    std::uint64_t ts = 0, nvml = 0;  // what NVML said, of all GPUs; 0: there was no such moment
    std::vector<Share> shares;       // the largest first
    std::uint64_t taken() const { return own() + asked(); }
    std::uint64_t own() const;  // with the shares that found no room
    std::uint64_t asked() const;
  };
  struct OfProcess {
    std::uint32_t pid = 0;
    Name comm;
    bool from_start = false;  // it had no memory before the trace
    Moment most, last;        // of those when its memory was steady
  };

  DriverMemory(Names& names, Part part);

  void line(const Line& line);
  void finish();

  bool any() const { return seen_; }
  // What the driver has now for its own needs, for all processes of a machine, on all its GPUs.
  std::uint64_t own_of(Name host) const;
  // Those that had most first.
  const std::vector<OfProcess>& processes() const { return processes_; }
  std::uint64_t left_out() const { return left_out_; }  // objects that found no room

  // NVML is read while the program runs: a figure counts if nothing changed for so long before it
  // and after it.
  static constexpr std::uint64_t STEADY = 50'000'000;  // ns

 private:
  static constexpr std::size_t MAX_OBJECTS = std::size_t{1} << 20;  // at once, of all processes
  // No GPU has as much, and so many objects of that size add up.
  static constexpr std::uint64_t MAX_BYTES = std::uint64_t{1} << 42;
  static constexpr std::size_t MAX_SHARES = 256, MAX_PROCESSES = 4096, MAX_GPUS = 256;

  struct Object {
    std::uint64_t parent = 0, bytes = 0;
    std::size_t share = 0;
  };
  struct Client {
    HashMap<std::uint64_t, Object> objects;
    HashMap<std::uint64_t, HashSet<std::uint64_t>> below;  // objects by their parents
  };
  struct Live {
    OfProcess known;
    Name host;
    HashMap<std::uint64_t, Client> clients;
    std::vector<Share> shares;
    std::map<std::pair<Share::Of, std::uint32_t>, std::size_t> share_numbers;
    // Objects of calls that have not returned.
    HashMap<std::uint64_t, std::vector<std::pair<std::uint64_t, std::uint64_t>>> open_calls;
    using Said = std::pair<std::uint64_t, std::uint64_t>;  // by NVML: when, and how many bytes
    std::map<std::uint32_t, Said> nvml;                    // by GPU
    std::optional<Said> found;                             // of all GPUs
    std::uint64_t changed = 0;                             // when memory was taken or given back
  };

  void request(const Line& line);
  void returned(const Line& line);
  void sample(const Line& line);
  void nvml_says(Live& live, const GpuSample& sample, const GpuProcess* process);
  void changes(Live& live, std::uint64_t ts);
  void settle(Live& live, std::uint64_t ts);
  std::size_t share_of(Live& live, Share::Of of, Name name);
  void take(Live& live, const Line& line);
  void give_back(Live& live, const Line& line);
  void drop(Live& live, const Object& object);
  void forget(Live& live, Client& client, std::uint64_t handle);
  void leave(std::uint64_t process, std::uint64_t ts);

  Part part_;
  Name memory_class_, free_, ok_;
  bool seen_ = false;
  std::size_t objects_ = 0, waiting_ = 0;  // for their calls to return
  std::map<std::uint64_t, Live> live_;     // by the process's number
  std::vector<OfProcess> processes_;
  std::uint64_t left_out_ = 0;
};

}  // namespace cudabpf::analyze
