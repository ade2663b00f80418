#include "trace/merged.hpp"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "trace/fields_in.hpp"
#include "trace/write/line_text.hpp"
#include "util/saturating.hpp"

namespace cudabpf {

namespace {

constexpr std::string_view ALIGNMENTS[] = {"same boot", "time of day", "collectives"};
constexpr std::size_t MAX_FILES = 64;  // that are named

LineFields known_or_null(const std::optional<std::uint64_t>& number) {
  return number ? LineFields(*number) : LineFields(nullptr);
}

LineFields fields_of(const MergedTrace& one) {
  LineFields out = {{"file", one.file},
                    {"host", one.host},
                    {"number", one.number},
                    {"boot_id", one.boot_id},
                    {"alignment", to_string(one.alignment)},
                    {"offset_ns", one.offset_ns},
                    {"error_ns", known_or_null(one.error_ns)},
                    {"bound_ns", known_or_null(one.bound_ns)}};
  set_unless_empty(out, "why", one.why_unknown);
  if (!one.rank.empty()) out["rank"] = rank_fields(one.rank);
  if (one.since_ns) out["since"] = one.since_ns;
  out["duration_ns"] = one.duration_ns;
  out["calls"] = one.calls;
  out["losses"] = LineFields::object();
  for (const auto& [reason, count] : one.losses) out["losses"][reason] = count;
  if (one.accounts) out["accounts"] = accounts_fields(*one.accounts);
  if (!one.cut_off.empty()) out["cut_off"] = one.cut_off;
  if (!one.missing.empty()) out["missing"] = one.missing;
  if (one.malformed) out["malformed"] = one.malformed;
  if (one.repeated) out["repeated"] = one.repeated;
  return out;
}

Alignment alignment_in(const nlohmann::json& json) {
  auto at = std::ranges::find(ALIGNMENTS, text_in(json, "alignment"));
  return at == std::end(ALIGNMENTS) ? Alignment::time_of_day
                                    : static_cast<Alignment>(at - std::begin(ALIGNMENTS));
}

std::optional<MergedTrace> merged_trace_in(const nlohmann::json& json) {
  auto number = number_in<std::uint32_t>(json, "number");
  if (!number || *number >= MAX_HOSTS) return std::nullopt;
  auto count = [&](const char* key) { return count_in(json, key).value_or(0); };
  auto time = [&](const char* key) { return time_in(json, key); };
  MergedTrace one;
  one.number = *number;
  one.file = text_in(json, "file");
  one.host = text_in(json, "host");
  one.boot_id = text_in(json, "boot_id");
  one.alignment = alignment_in(json);
  one.offset_ns = time("offset_ns");
  one.error_ns = count_in(json, "error_ns");
  one.bound_ns = count_in(json, "bound_ns");
  one.why_unknown = text_in(json, "why");
  one.rank = rank_in(json);
  one.since_ns = time("since");
  one.duration_ns = time("duration_ns");
  one.calls = count("calls");
  one.losses = losses_in(json);
  if (const auto* accounts = member_of(json, "accounts")) one.accounts = accounts_in(*accounts);
  one.cut_off = texts_in(json, "cut_off", MAX_FILES);
  one.missing = texts_in(json, "missing", MAX_FILES);
  one.malformed = count("malformed");
  one.repeated = count("repeated");
  return one;
}

}  // namespace

std::string_view to_string(Alignment alignment) {
  return ALIGNMENTS[static_cast<std::size_t>(alignment)];
}

LineFields merged_fields(const std::vector<MergedTrace>& merged) {
  LineFields list = LineFields::array();
  for (const MergedTrace& one : merged) list.push_back(fields_of(one));
  return list;
}

std::vector<MergedTrace> merged_in(const nlohmann::json& header) {
  return things_in<MergedTrace>(header, "merged", MAX_MERGED, merged_trace_in);
}

std::vector<std::string> hosts_of(const std::vector<MergedTrace>& merged) {
  std::vector<std::string> hosts;
  for (const MergedTrace& one : merged) {
    if (one.number >= hosts.size()) hosts.resize(one.number + std::size_t{1});
    hosts[one.number] = one.host;
  }
  return hosts;
}

namespace {

// How far two machines' times may be apart. Nothing: it is not known.
std::optional<std::uint64_t> distance_of(const MergedTrace& a, const MergedTrace& b) {
  auto is_by_day = [](const MergedTrace& one) { return one.alignment != Alignment::collectives; };
  // Both times of day are as wrong as they are; else each was put beside the first.
  bool by_day = is_by_day(a) && is_by_day(b);
  const auto &one = by_day ? a.error_ns : a.bound_ns, &other = by_day ? b.error_ns : b.bound_ns;
  if (!one || !other) return std::nullopt;
  return saturating_sum(*one, *other);
}

}  // namespace

// Traces of one boot are on the same clock.
OrderBound order_bound(const std::vector<MergedTrace>& merged) {
  std::set<std::string> boots;
  std::vector<const MergedTrace*> machines;
  OrderBound bound;
  for (const MergedTrace& one : merged) {
    if (!one.boot_id.empty() && !boots.insert(one.boot_id).second) continue;
    for (const MergedTrace* other : machines) {
      auto distance = distance_of(one, *other);
      bound.known &= distance.has_value();
      bound.ns = std::max(bound.ns, distance.value_or(0));
    }
    machines.push_back(&one);
  }
  return bound.known ? bound : OrderBound{false, 0};
}

}  // namespace cudabpf
