// What every answer says about its trace.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "analyze/analysis.hpp"
#include "analyze/merged_hosts.hpp"

namespace cudabpf::analyze {

namespace {

std::string missing_in(const TraceFacts& facts) {
  std::string text;
  auto add = [&](const std::string& one) { text += (text.empty() ? "" : "; ") + one; };
  for (const std::string& file : facts.cut_off) add(file);
  for (const std::string& part : facts.missing) add(part + " of a rotated trace");
  if (facts.malformed) add(count_of(facts.malformed, "line", "lines") + " that could not be read");
  for (const auto& [reason, loss] : facts.losses)
    if (!loss.degraded) add(loss.text(reason));
  return text;
}

// What cannot be known if calls of a kind are left out.
struct LeftOut {
  std::string_view kind, consequence;
};
constexpr LeftOut LEFT_OUT[] = {
    {"launches", "figures of kernels, iterations and idle times are those of the others alone"},
    {"copies", "figures of copies are those of the others alone"},
    {"waits", "when the GPU was idle, and what was waited for, is not known"},
    {"allocations", "how much memory was held is not known"},
    {"frees", "how long memory was held, and what was never freed, is not known"},
};

void add_left_out(Page& page, const TraceFacts& facts) {
  if (facts.left_out.empty()) return;
  if (!page.empty()) page.blank();
  page.heading("not traced");
  for (const std::string& kind : facts.left_out) {
    const auto* known = std::find_if(std::begin(LEFT_OUT), std::end(LEFT_OUT),
                                     [&](const LeftOut& one) { return one.kind == kind; });
    page.paragraph(
        known == std::end(LEFT_OUT)
            ? fmt::format("Not all {}.", printable(kind))
            : fmt::format("Not all {}, or not their results: {}.", kind, known->consequence),
        2);
  }
}

}  // namespace

// "2 × NVIDIA H200, NVIDIA L4"
std::string gpus_in(const TraceHeader& header) {
  std::vector<std::pair<std::string, std::size_t>> kinds;
  for (const Gpu& gpu : header.gpus) {
    if (kinds.empty() || kinds.back().first != gpu.name) kinds.emplace_back(gpu.name, 0);
    kinds.back().second++;
  }
  std::string text;
  for (const auto& [name, count] : kinds)
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ",
                        count > 1 ? fmt::format("{} × ", count) : "", name);
  return text;
}

std::string heading_of(const TraceFacts& facts, const Moments& moments) {
  const TraceHeader& header = facts.header;
  std::string text = moments.beginning();
  std::string host = header.host.empty() ? hosts_text(header.merged) : header.host;
  if (!host.empty()) text += (text.empty() ? "" : " on ") + host;
  auto add = [&](const std::string& before, const std::string& what) {
    if (!what.empty()) text += (text.empty() ? "" : ", ") + before + what;
  };
  add("", gpus_in(header));
  add("driver ", header.driver);
  add("profile ", header.profile);
  if (missing_in(facts).empty()) return text;
  return "INCOMPLETE" + (text.empty() ? text : ": " + text);
}

void add_heading(Page& page, const TraceFacts& facts) {
  std::string text = shortened(printable(heading_of(facts, page.moments())), page.width());
  std::string missing = missing_in(facts);
  if (!missing.empty())
    page.heading(text);
  else if (!text.empty())
    page.line(text);
  if (!missing.empty()) page.paragraph("missing: " + printable(missing), 2);
  if (const auto& merged = facts.header.merged; !merged.empty())
    page.paragraph(fmt::format("{}. {}", count_of(merged.size(), "merged trace", "merged traces"),
                               printable(order_text(merged))),
                   2);
  for (const auto& [pid, what] : facts.attached)
    page.paragraph(fmt::format("attached to process {} {}", pid, printable(what)), 2);
  if (std::uint64_t since = facts.part.recorded_from)
    page.paragraph(fmt::format("begins at {}: anything earlier is not in it", page.at(since)), 2);
  if (facts.part.is_whole()) return;
  std::uint64_t from = facts.part.from, to = std::min(facts.part.to, facts.duration());
  std::string name = facts.part_name.empty() ? "" : facts.part_name + ", ";
  if (facts.part.of_ranges) name.insert(0, fmt::format("in {}, ", printable(facts.ranges.pattern)));
  page.paragraph(fmt::format("part: {}from {} to {}, {}", name, page.at(from), page.at(to),
                             human_time(to - std::min(from, to))),
                 2);
}

Json facts_json(const TraceFacts& facts) {
  Json losses = Json::object();
  for (const auto& [reason, loss] : facts.losses) {
    losses[reason] = {{"severity", loss.degraded ? "degraded" : "lost"}, {"count", loss.count}};
    if (loss.uncounted) losses[reason]["uncounted"] = true;
  }
  Json json = {{"files", facts.paths}};
  if (std::uint64_t began = facts.header.began()) json["started"] = iso_time(began);
  if (!facts.header.merged.empty()) json.update(merged_json(facts.header.merged));
  if (facts.part.recorded_from) json["since_us"] = microseconds(facts.part.recorded_from);
  if (!facts.part.is_whole()) {
    json["part"] = {{"from_us", microseconds(facts.part.from)},
                    {"to_us", microseconds(std::min(facts.part.to, facts.duration()))},
                    {"calls", facts.calls_in_part}};
    if (!facts.part_name.empty()) json["part"]["name"] = facts.part_name;
    if (facts.part.of_ranges) json["part"]["ranges"] = facts.ranges.pattern;
  }
  json.update(Json{{"lines", facts.lines},
                   {"bytes", facts.bytes},
                   {"calls", facts.calls},
                   {"operations", facts.operations},
                   {"duration_us", microseconds(facts.duration())},
                   {"complete", facts.cut_off.empty() && facts.missing.empty() && !facts.malformed},
                   {"losses", losses},
                   {"left_out", facts.left_out},
                   {"cut_off", facts.cut_off},
                   {"missing", facts.missing},
                   {"malformed", facts.malformed},
                   {"malformed_at", facts.first_malformed},
                   {"unknown", facts.unknown},
                   {"processes_put_away", facts.put_away}});
  if (facts.not_recorded.any(facts.calls))
    json["not_recorded"] = facts.not_recorded.json(facts.calls);
  return json;
}

void add_facts(Page& page, const TraceFacts& facts) {
  add_left_out(page, facts);
  facts.not_recorded.add_to(page, facts.calls);
  if (!facts.losses.empty()) {
    if (!page.empty()) page.blank();
    page.heading("lost");
  }
  for (const auto& [reason, loss] : facts.losses) {
    page.paragraph(
        loss.text(reason) + (loss.degraded ? " (the events are there, but lack something)" : ""),
        2);
    if (const LossInfo* known = find_loss(reason)) page.paragraph(known->advice, 4);
  }
  if (facts.cut_off.empty() && facts.missing.empty() && !facts.malformed && !facts.unknown &&
      !facts.put_away)
    return;
  if (!page.empty()) page.blank();
  page.heading("not all of a trace");
  for (const auto& file : facts.cut_off) page.paragraph("cut off: " + file, 2);
  for (const auto& part : facts.missing)
    page.paragraph("not given: " + part + " of a rotated trace", 2);
  if (facts.malformed) {
    std::string where;
    for (const auto& at : facts.first_malformed) where += (where.empty() ? "" : ", ") + at;
    page.paragraph(
        fmt::format("{} could not be read: {}{}", count_of(facts.malformed, "line", "lines"), where,
                    facts.malformed > facts.first_malformed.size() ? ", …" : ""),
        2);
  }
  if (facts.unknown)
    page.paragraph(fmt::format("{} of types that this version does not know",
                               count_of(facts.unknown, "line", "lines")),
                   2);
  if (facts.put_away)
    page.paragraph(
        fmt::format("There were more than {} processes at once: the {} that were quiet for longest "
                    "were taken to have ended, and count as new ones if they call again.",
                    with_commas(Processes::MAX), with_commas(facts.put_away)),
        2);
}

}  // namespace cudabpf::analyze
