#include "trace/end.hpp"

#include <nlohmann/json.hpp>

#include "trace/fields_in.hpp"
#include "trace/write/line_text.hpp"
#include "util/text/json_text.hpp"

namespace cudabpf {

namespace {

LineFields losses_by_name(const Totals& totals) {
  LineFields losses = LineFields::object();
  for (std::size_t i = 0; i < LOSS_COUNT; i++)
    if (totals.losses[i]) losses[std::string(info(static_cast<Loss>(i)).name)] = totals.losses[i];
  return losses;
}

void set_totals(LineFields& object, const Totals& totals) {
  object["duration_ns"] = totals.duration_ns;
  const EventCounts& counts = totals.counts;
  object["calls"] = counts.calls;
  object["unfinished_calls"] = counts.unfinished;
  if (counts.driver_calls) object["driver_calls"] = counts.driver_calls;
  if (counts.read_faults) object["read_faults"] = counts.read_faults;
  object["losses"] = losses_by_name(totals);
}

LineFields work_counts_fields(const GpuOperationCounts& counts) {
  LineFields unjoined = LineFields::object();
  for (std::size_t i = 0; i < UNJOINED; i++)
    if (counts.unjoined[i])
      unjoined[std::string(to_string(static_cast<Unjoined>(i)))] = counts.unjoined[i];
  LineFields out = {{"operations", counts.operations},
                    {"joined", counts.joined},
                    {"calls", counts.calls},
                    {"answered", counts.answered},
                    {"invalid", counts.invalid},
                    {"unjoined", unjoined},
                    {"clock_error_ns", counts.clock_error_ns}};
  return out;
}

using Read = nlohmann::json;

TraceTotals totals_in(const Read& object) {
  TraceTotals totals;
  // A time may be added to another.
  if (auto duration = number_in<std::int64_t>(object, "duration_ns"); duration && *duration >= 0)
    totals.duration_ns = static_cast<std::uint64_t>(*duration);
  totals.calls = count_in(object, "calls");
  totals.unfinished = count_in(object, "unfinished_calls");
  totals.driver_calls = count_in(object, "driver_calls");
  totals.read_faults = count_in(object, "read_faults");
  totals.losses = losses_in(object);
  return totals;
}

GpuOperationCounts work_counts_in(const Read& object) {
  auto count = [&](const char* key) { return count_in(object, key).value_or(0); };
  GpuOperationCounts counts;
  counts.operations = count("operations");
  counts.joined = count("joined");
  counts.invalid = count("invalid");
  counts.calls = count("calls");
  counts.answered = count("answered");
  counts.clock_error_ns = count("clock_error_ns");
  const Read* unjoined = member_of(object, "unjoined");
  for (std::size_t i = 1; unjoined && i < UNJOINED; i++) {
    std::string why(to_string(static_cast<Unjoined>(i)));
    counts.unjoined[i] = count_in(*unjoined, why.c_str()).value_or(0);
  }
  return counts;
}

}  // namespace

std::string end_line(const FileEnd& end) {
  LineFields out = {{"type", "end"}, {"ts", end.part.since + end.totals.duration_ns}};
  if (end.part.number) {
    out["part"] = end.part.number;
    out["last"] = end.last;
  }
  out["lines"] = end.lines;
  set_totals(out, end.totals);
  const Totals& whole = end.whole ? *end.whole : end.totals;
  if (end.last) {
    if (end.whole) {
      LineFields& totals = out["whole"] = LineFields::object();
      set_totals(totals, whole);
    }
    if (end.has_accounts) out["accounts"] = accounts_fields(whole.accounts);
    const KernelNameCounts& names = whole.kernel_names;
    if (names.confirmed || names.contradicted)
      out["kernel_names"] = {{"confirmed", names.confirmed}, {"contradicted", names.contradicted}};
    if (whole.gpu_operations) out["gpu_operations"] = work_counts_fields(*whole.gpu_operations);
    if (whole.clocks)
      out["clocks"] = {{"realtime_ns", whole.clocks->realtime},
                       {"monotonic_ns", whole.clocks->monotonic},
                       {"boottime_ns", whole.clocks->boottime}};
    if (whole.clock_error) out["clock_error"] = clock_error_fields(*whole.clock_error);
    if (whole.command_status) out["command_status"] = *whole.command_status;
    out["reason"] = whole.reason;
  } else {
    out["reason"] = whole.reason.empty() ? "rotated" : whole.reason;
  }
  return line_of(std::move(out));
}

std::optional<TraceEnd> end_in(std::string_view line) {
  if (nests_too_deep(line)) return std::nullopt;
  Read json = parsed(line);
  if (!json.is_object()) return std::nullopt;
  TraceEnd end;
  end.part = number_in<unsigned>(json, "part").value_or(0);
  if (const Read* last = member_of(json, "last")) end.last = *last == true;
  end.lines = count_in(json, "lines");
  end.totals = totals_in(json);
  if (const Read* whole = member_of(json, "whole"); whole && whole->is_object())
    end.whole = totals_in(*whole);
  if (const Read* accounts = member_of(json, "accounts")) end.accounts = accounts_in(*accounts);
  if (const Read* names = member_of(json, "kernel_names")) {
    end.kernel_names.confirmed = count_in(*names, "confirmed").value_or(0);
    end.kernel_names.contradicted = count_in(*names, "contradicted").value_or(0);
  }
  if (const Read* operations = member_of(json, "gpu_operations");
      operations && operations->is_object())
    end.gpu_operations = work_counts_in(*operations);
  end.command_status = number_in<int>(json, "command_status");
  end.clocks = clocks_in(json);
  end.clock_error = clock_error_in(json);
  end.reason = text_in(json, "reason");
  return end;
}

}  // namespace cudabpf
