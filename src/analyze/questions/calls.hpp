// How often each CUDA function was called, and how long that took; for the whole trace, or
// separately for each process, thread, device, stream, kernel, range of the program's,
// line of its Python or container.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyze/analysis.hpp"
#include "analyze/derived/streams.hpp"
#include "analyze/short_names.hpp"
#include "util/durations.hpp"
#include "util/hash.hpp"

namespace cudabpf::analyze {

class Calls : public Analysis {
 public:
  enum class By : std::uint8_t { function, pid, tid, device, stream, kernel, range, container };

  struct Figures {
    std::string name;
    std::uint64_t count = 0;
    std::uint64_t errors = 0;
    std::uint64_t ioctls = 0;
    Durations durations;  // of calls that were seen to return

    void add(const Figures& other) {
      count += other.count;
      errors += other.errors;
      ioctls += other.ioctls;
      durations.add(other.durations);
    }
  };
  struct Group {
    std::string name;  // "process 4242"; empty: the whole trace
    std::string
        shown;  // the same, or a kernel's name as short as still distinguishes it from others
    Figures all;
    std::vector<Figures> functions;  // the longest total first

    void add(const Figures& calls);  // of one function
  };

  Calls(Names& names, By by)
      : names_(names), others_(names.add("(others)")), by_(by), kernels_(names) {}

  void line(const Line& line) override;
  void outside(const Line& line) override {
    if (by_ == By::kernel) kernels_.line(line);
  }
  void finish(const TraceFacts&) override { kernels_.settle(); }
  std::vector<Group> groups() const;  // the longest total first

 private:
  // At most this many groups are kept apart; later ones are counted as one.
  static constexpr std::size_t MAX_GROUPS = 4096;
  // And this many functions, in all groups together: a histogram takes up to 11 kB.
  static constexpr std::size_t MAX_COUNTED = 1 << 14;

  struct Key {
    std::uint64_t process = 0;  // process number
    std::uint64_t what = 0;     // a thread, a name
    std::optional<StreamKey> stream;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return hash_of(key.process, key.what, key.stream ? StreamHash()(*key.stream) : 0);
    }
  };
  static constexpr Key OTHERS = {0, ~std::uint64_t{0}, {}};

  Key key_of(const Line& line) const;
  std::string name_of(const Line& line) const;  // of the line's group

  struct Counting {
    std::uint64_t count = 0, errors = 0, ioctls = 0;
    Durations durations;
  };

  Counting& counting_of(Name function);  // in the group of the last call

  Names& names_;
  Name others_;
  By by_;
  ShortNames kernels_;
  using Functions = std::unordered_map<std::uint32_t, Counting>;  // by their name
  struct Counted {
    std::string name;
    Name kernel;                        // if the calls are grouped by that, and have one
    const RangePlace* place = nullptr;  // the same
    Functions functions;
  };
  HashMap<Key, Counted, Hash> groups_;
  Key last_key_;
  Functions* last_group_ = nullptr;
  std::size_t counted_ = 0;
};

Json calls_json(const std::vector<Calls::Group>& groups, Calls::By by);
Json calls_columns();  // of functions, for the page of `report`
void add_calls(Page& page, const std::vector<Calls::Group>& groups, std::size_t at_most);

}  // namespace cudabpf::analyze
