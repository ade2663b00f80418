#include "replay/replay_page.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "replay/contents.hpp"
#include "replay/launches.hpp"
#include "replay/listing.hpp"
#include "replay/microseconds.hpp"
#include "util/page/table.hpp"

namespace cudabpf::replay {

using bundle::Json, bundle::Writing;

namespace {

// Bytes that the tape wrote, and that were the same in both runs.
std::uint64_t sum(const Comparison& all, std::uint64_t Bytes::*member) {
  return all.memory.*member + all.copies.*member + all.variables.*member;
}

bool is_incomplete(const FullReplay& replay) {
  return !replay.skipped.empty() || !replay.failures.empty();
}

std::string verdict_word(const FullReplay& replay) {
  if (!replay.comparison) return "not compared";
  if (replay.is_different()) return "different";
  return is_incomplete(replay) ? "equal, but incomplete" : "equal";
}

std::string verdict_of(const FullReplay& replay) {
  if (!replay.comparison) return "The capture has no contents, so nothing could be compared.";
  std::uint64_t compared = sum(*replay.comparison, &Bytes::compared);
  std::uint64_t different = sum(*replay.comparison, &Bytes::different);
  std::uint64_t varying = sum(*replay.comparison, &Bytes::not_deterministic);
  std::string text =
      different
          ? fmt::format("{} of {} compared bytes are not what the program left",
                        with_commas(different), with_commas(compared))
          : fmt::format("all {} bytes that are the same in each run are what the program left",
                        with_commas(sum(*replay.comparison, &Bytes::equal)));
  if (varying)
    text +=
        fmt::format("; {} of values that differ between runs were left out", with_commas(varying));
  if (is_incomplete(replay)) text += "; some operations were not run, which may change memory";
  return text + ".";
}

Json comparison_json(const Comparison& comparison) {
  Json json = {{"memory", Writing::json_of(comparison.memory)},
               {"copies_to_host", Writing::json_of(comparison.copies)},
               {"variables", Writing::json_of(comparison.variables)},
               {"unknown", comparison.unknown},
               {"runs", comparison.runs},
               {"differences", Json::array()}};
  for (const Difference& one : comparison.differences)
    json["differences"].push_back({{"where", one.where},
                                   {"at", fmt::format("{:#x}", one.at.value)},
                                   {"bytes", one.size},
                                   {"expected", one.expected},
                                   {"got", one.got}});
  return json;
}

Json launches_json(const Timing& timing, const Manifest& manifest, const Tape& tape) {
  auto launches = distinct_launches(tape, manifest);
  Json list = Json::array();
  for (const LaunchTime& time : timing.launches) {
    if (time.launch >= launches.size() || !time.count) continue;
    Json one = launch_json(launches[time.launch], manifest);
    one["count"] = time.count;
    one["total_us"] = us(time.total_ns);
    one["mean_us"] = us(time.total_ns) / static_cast<double>(time.count);
    one["min_us"] = us(time.least_ns);
    one["max_us"] = us(time.most_ns);
    list.push_back(std::move(one));
  }
  return list;
}

void add_bytes(Page& page, std::string_view name, const Bytes& bytes) {
  if (!bytes.compared) return;
  std::string text =
      fmt::format("{} bytes compared, {} equal, {} different", with_commas(bytes.compared),
                  with_commas(bytes.equal), with_commas(bytes.different));
  if (bytes.not_deterministic)
    text += fmt::format(", {} not deterministic", with_commas(bytes.not_deterministic));
  if (bytes.not_written) text += fmt::format(", {} never written", with_commas(bytes.not_written));
  page.term(name, text);
}

// The block that has the address, for people who know the program's memory.
std::string block_of(const Difference& difference, const Manifest& manifest) {
  std::uint64_t at = difference.at.value;
  for (const bundle::Block& block : manifest.blocks)
    if (difference.where == "memory" && at >= block.address.value &&
        at - block.address.value < block.size)
      return fmt::format(" (byte {} of the block of {} at {:#x})",
                         with_commas(at - block.address.value), human_bytes(block.size),
                         block.address.value);
  return "";
}

void add_comparison(Page& page, const Comparison& comparison, const Manifest& manifest) {
  add_section(page, "Compared with what the program left");
  add_bytes(page, "memory", comparison.memory);
  add_bytes(page, "copied to host", comparison.copies);
  add_bytes(page, "variables", comparison.variables);
  if (comparison.unknown)
    page.line(
        fmt::format("  {} bytes of memory were not captured", with_commas(comparison.unknown)));
  for (const Difference& one : comparison.differences)
    page.paragraph(
        fmt::format("{} at {:#x}{}: {} bytes; expected {}, got {}", one.where, one.at.value,
                    block_of(one, manifest), with_commas(one.size), one.expected, one.got),
        2);
}

void add_timing(Page& page, const Timing& timing, const Manifest& manifest, const Tape& tape) {
  if (timing.runs_ns.empty()) return;
  auto [least, most] = std::minmax_element(timing.runs_ns.begin(), timing.runs_ns.end());
  add_section(page, "Time");
  page.line(fmt::format("  the tape takes {:.1f} us (median of {}; {:.1f} to {:.1f})",
                        median_us(timing.runs_ns), count_of(timing.runs_ns.size(), "run", "runs"),
                        us(*least), us(*most)));
  auto launches = distinct_launches(tape, manifest);
  auto times = timing.launches;
  std::sort(times.begin(), times.end(),
            [](const LaunchTime& a, const LaunchTime& b) { return a.total_ns > b.total_ns; });
  Table table("Launches, with an event before and after each",
              {{"count"}, {"total us"}, {"mean us"}, {"grid", 1, true}, {"block", 1, true}});
  for (const LaunchTime& time : times)
    if (time.launch < launches.size() && time.count)
      table.row(kernel_name(launches[time.launch].kernel, manifest),
                {with_commas(time.count), fmt::format("{:.1f}", us(time.total_ns)),
                 fmt::format("{:.2f}", us(time.total_ns) / static_cast<double>(time.count)),
                 dim_text(launches[time.launch].grid), dim_text(launches[time.launch].block)});
  table.add_to(page);
}

}  // namespace

Json timing_json(const FullReplay& replay, const Manifest& manifest, const Tape& tape) {
  Json json = {{"gpu", replay.gpu.name}, {"driver", replay.gpu.driver}};
  if (!replay.timing || replay.timing->runs_ns.empty()) return json;
  json["full_model_inference_us"] = samples_json(replay.timing->runs_ns);
  json["launches"] = launches_json(*replay.timing, manifest, tape);
  return json;
}

Json full_json(const FullReplay& replay, const Manifest& manifest, const Tape& tape) {
  Json json = {{"verdict", verdict_word(replay)}};
  if (replay.comparison) json["comparison"] = comparison_json(*replay.comparison);
  json["timing"] = timing_json(replay, manifest, tape);
  json["failed"] = Writing::json_of(replay.failures);
  json["not_run"] = Writing::json_of(replay.skipped);
  json["notes"] = replay.notes;
  return json;
}

void add_outcome(Page& page, const FullReplay& replay, const Manifest& manifest) {
  page.paragraph(origin_of(manifest) + fmt::format("; replayed on {}", replay.gpu.name), 0);
  page.blank();
  page.statement(replay.comparison ? replay.is_different() ? "Different" : "Equal" : "Not compared",
                 verdict_of(replay));
  add_paragraphs(page, "Failed", replay.failures, &Failure::text);
  add_paragraphs(page, "Not run", replay.skipped, [](const Skipped& one) {
    return fmt::format("{} x {}, first in call {}: {}", with_commas(one.count), one.what, one.call,
                       one.why);
  });
  if (replay.comparison) add_comparison(page, *replay.comparison, manifest);
  auto notes = replay.notes;
  auto reasons = against(manifest, replay.gpu);
  notes.insert(notes.end(), reasons.begin(), reasons.end());
  add_paragraphs(page, "Notes", notes);
}

void add_full(Page& page, const FullReplay& replay, const Manifest& manifest, const Tape& tape) {
  add_outcome(page, replay, manifest);
  if (replay.timing) add_timing(page, *replay.timing, manifest, tape);
}

}  // namespace cudabpf::replay
