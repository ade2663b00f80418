// What a merged trace says of the traces that it was made of: in its header, a list
// (docs/trace-format.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cudabpf/sink.hpp"

namespace cudabpf {

// How a trace was put on the time of the first.
enum class Alignment : std::uint8_t {
  same_boot,    // the same CLOCK_MONOTONIC: exact
  time_of_day,  // CLOCK_REALTIME, as far as each machine's is known to be right
  collectives,  // what ranks did together
};
std::string_view to_string(Alignment alignment);  // "same boot"

// Numbers of different hosts stay apart: from the second host on, these are added to its own, once
// for each host before it. No pid, and no machine's GPU, has a number that large.
inline constexpr std::uint32_t PIDS_OF_HOST = 10'000'000, DEVICES_OF_HOST = 1000;
inline constexpr std::size_t MAX_HOSTS = 64, MAX_MERGED = 128;

struct MergedTrace {
  std::string file;          // the first, if it was rotated
  std::string host;          // as lines name it: no two hosts have the same name
  std::uint32_t number = 0;  // of the host, from 0
  std::string boot_id;
  RankVariables rank;
  Alignment alignment = Alignment::same_boot;
  std::uint64_t offset_ns = 0;            // added to its times
  std::optional<std::uint64_t> error_ns;  // of its place in the time of day; nothing: not known
  std::optional<std::uint64_t> bound_ns;  // of the offset to the first; nothing: not known
  std::string why_unknown;                // why it is not
  std::uint64_t since_ns = 0, duration_ns = 0;  // in its own time
  std::uint64_t calls = 0;
  std::optional<Accounts> accounts;             // nothing: it was cut off, or recording goes on
  std::map<std::string, std::uint64_t> losses;  // by reason
  std::vector<std::string> cut_off, missing;    // files without an end; files that were not given
  std::uint64_t malformed = 0;                  // lines that could not be read
  // Lines about the machine, which another trace of the same boot has, too.
  std::uint64_t repeated = 0;
  bool operator==(const MergedTrace&) const = default;
};

nlohmann::ordered_json merged_fields(const std::vector<MergedTrace>& merged);
std::vector<MergedTrace> merged_in(const nlohmann::json& header);

// The hosts' names, by their numbers.
std::vector<std::string> hosts_of(const std::vector<MergedTrace>& merged);

// Between events of different hosts that are closer than this, it is not known which was first.
struct OrderBound {
  bool known = true;
  std::uint64_t ns = 0;  // 0: every order is known
  bool operator==(const OrderBound&) const = default;
};
OrderBound order_bound(const std::vector<MergedTrace>& merged);

}  // namespace cudabpf
