#include <fmt/format.h>

#include <algorithm>

#include "analyze/collectives/collectives.hpp"
#include "analyze/collectives/ranks.hpp"
#include "analyze/columns.hpp"

namespace cudabpf::analyze {

namespace {

// A rank that waited, and for whom.
struct WaitRow {
  std::string name;
  std::uint32_t rank = 0, awaited = 0;
  Skew::Waited waited;

  void add(const WaitRow& other) {
    waited.count += other.waited.count;
    waited.total += other.waited.total;
    waited.longest = std::max(waited.longest, other.waited.longest);
  }
};

constexpr Column<WaitRow> WAIT_COLUMNS[] = {
    {{"rank"}, As::number, its<&WaitRow::rank>},
    {{"awaited"}, As::number, its<&WaitRow::awaited>},
    {{"count", "count"}, As::count, its<&WaitRow::waited, &Skew::Waited::count>},
    {{"total_us", "waited"}, As::time, its<&WaitRow::waited, &Skew::Waited::total>},
    {{"mean_us", "mean"},
     As::time,
     [](auto& row) { return row.waited.count ? row.waited.total / row.waited.count : 0; }},
    {{"max_us", "longest"}, As::time, its<&WaitRow::waited, &Skew::Waited::longest>},
};

std::vector<WaitRow> waits_in(const Skew& skew) {
  std::vector<WaitRow> rows;
  for (const auto& [ranks, waited] : skew.waited())
    rows.push_back({fmt::format("rank {} for rank {}", ranks.first, ranks.second), ranks.first,
                    ranks.second, waited});
  std::ranges::stable_sort(
      rows, [](const WaitRow& a, const WaitRow& b) { return a.waited.total > b.waited.total; });
  return rows;
}

struct StepRow {
  std::string name;
  std::uint64_t number = 0;  // from 1
  Skew::Step step;
};

std::string late_text(const StepRow& row) {
  std::string text;
  for (const auto& [rank, time] : row.step.late)
    text += fmt::format("{}rank {} by {}", text.empty() ? "" : ", ", rank, human_time(time));
  return text;
}
Json late_json(const StepRow& row) {
  Json json = Json::object();
  for (const auto& [rank, time] : row.step.late) json[std::to_string(rank)] = microseconds(time);
  return json;
}

constexpr Column<StepRow> STEP_COLUMNS[] = {
    {{"step"}, As::number, its<&StepRow::number>},
    {{"collectives", "collectives"}, As::count, its<&StepRow::step, &Skew::Step::matched>},
    {{"time_us", "time of all ranks"}, As::time, its<&StepRow::step, &Skew::Step::time>},
    {{"waited_us", "waited"}, As::time, its<&StepRow::step, &Skew::Step::waited>},
    {{"late_us"}, As::object, its<late_json>},
    {{nullptr, "came last"}, As::text, its<late_text>},
};

std::vector<StepRow> steps_in(const Skew& skew) {
  std::vector<StepRow> rows;
  for (const auto& [number, step] : skew.steps())
    rows.push_back({fmt::format("step {}", number + 1), number + 1, step});
  return rows;
}

using RecordedRank = Ranks::OfRank;
constexpr Column<RecordedRank, const Names*> RANK_COLUMNS[] = {
    {{"rank"}, As::number, its<&RecordedRank::rank>},
    {{"communicator"}, As::number, its<&RecordedRank::communicator>},
    {{"pid", "process"}, As::number, its<&RecordedRank::pid>},
    {{"host", "host", 1},
     As::text,
     [](auto& rank, auto& names) {
       return known_if(!!rank.host, std::string(names->text(rank.host)));
     }},
    {{"entered", "entered"}, As::count, its<&RecordedRank::entered>},
    {{"last_seq", "last"}, As::count, its<&RecordedRank::last_seq, if_any>},
    {{"last_ts", "entered at"}, As::moment, its<&RecordedRank::last_ts, if_any>},
    {{"exited_ts", "process ended"},
     As::moment,
     [](auto& rank) { return known_if(!!rank.exited, rank.exited.value_or(0)); }},
};

constexpr Column<Mismatch> MISMATCH_COLUMNS[] = {
    {{"identity"}, As::text, [](auto& of) { return fmt::format("{:#018x}", of.identity); }},
    {{"seq"}, As::number, its<&Mismatch::seq>},
    {{"to"}, As::number, [](auto& of) { return known_if(!!of.to, of.to.value_or(0)); }},
    {{"communicator"}, As::number, its<&Mismatch::communicator>},
    {{"other_communicator"}, As::number, its<&Mismatch::other>},
    {{"field"}, As::text, its<&Mismatch::field>},
    {{"value"}, As::text, its<&Mismatch::has>},
    {{"other_value"}, As::text, its<&Mismatch::other_has>},
};

Json skew_json(const Skew& skew) {
  return {{"times", skew.times() == Skew::Times::gpu ? "gpu" : "host"},
          {"noise_us", microseconds(skew.noise())},
          {"matched", skew.matched()},
          {"exchanges", skew.exchanges()},
          {"time_us", microseconds(skew.time())},
          {"transfer_us", microseconds(skew.transfer())},
          {"waited_us", microseconds(skew.beyond_noise())},
          {"waited_below_noise_us", microseconds(skew.below_noise())},
          {"usual_share_of_waiting", 100 * skew.share_of_waiting()},
          {"waits", list_of(waits_in(skew), WAIT_COLUMNS)},
          {"steps", list_of(steps_in(skew), STEP_COLUMNS)}};
}

Json exchanges_json(const Ranks::OfCommunicator& of) {
  const Exchanges::Books& books = of.exchanges;
  Json json = {{"count", books.operations},
               {"several_partners", books.several_partners},
               {"without_partner", books.without_partner}};
  if (of.knows_unmatched) {
    json["unmatched_sends"] = books.unmatched_sends;
    json["unmatched_receives"] = books.unmatched_receives;
  }
  return json;
}

Json communicator_json(const Ranks::OfCommunicator& of, const Names& names) {
  Json json = {{"identity", fmt::format("{:#018x}", of.identity)}};
  if (of.ranks) json["ranks"] = of.ranks;
  json["recorded"] = list_of(of.recorded, RANK_COLUMNS, &names);
  json["verdict"] = to_string(of.verdict);
  if (!of.why_inconclusive.empty()) json["why"] = of.why_inconclusive;
  if (of.named)
    json["late"] = {{"rank", of.named->rank}, {"per_step_us", microseconds(of.named->per_step)}};
  json["steps_are"] = of.by_iterations ? "iterations" : "collectives";
  if (of.by_iterations)
    json["step_us"] = microseconds(of.step_time);
  else
    json["collectives_per_step"] = of.per_step;
  json["incomplete"] = of.incomplete;
  json["after_loss"] = of.after_loss;
  json["at_set_up"] = of.at_set_up;
  if (of.exchanges.operations) json["sends_and_receives"] = exchanges_json(of);
  if (of.skew) json.update(skew_json(*of.skew));
  return json;
}

std::string recorded_text(const Ranks::OfCommunicator& of) {
  std::string all = of.ranks ? fmt::format(" of {}", of.ranks) : std::string();
  return fmt::format("{}{} recorded", of.recorded.size(), all);
}

std::string rule_of(const Skew& skew) {
  return fmt::format("waiting of more than {} for one collective", human_time(skew.noise()));
}

std::string verdict_text(const Ranks::OfCommunicator& of) {
  if (of.verdict == SkewVerdict::inconclusive) return of.why_inconclusive + ".";
  if (of.skew->times() == Skew::Times::host)
    return "by when ranks entered; how long they waited on GPUs is not known.";
  return fmt::format("in a usual step, {:.1f} % of the time in collectives is {}.",
                     100 * of.skew->share_of_waiting(), rule_of(*of.skew));
}

std::string named_text(const Ranks::OfCommunicator& of) {
  if (!of.named) return "Among the ranks recorded, none makes the others wait in most steps.";
  std::string text = fmt::format(
      "Among the ranks recorded, rank {} makes the others wait: it comes {} after the first in a "
      "usual step",
      of.named->rank, human_time(of.named->per_step));
  if (of.step_time)
    text += fmt::format(", {} of the {} that one takes", percent(of.named->per_step, of.step_time),
                        human_time(of.step_time));
  return text + ".";
}

std::string steps_text(const Ranks::OfCommunicator& of) {
  if (of.by_iterations) return "Steps are iterations.";
  return fmt::format(
      "No iterations were found: a step is {}.",
      of.per_step == 1 ? "a collective" : fmt::format("{} collectives, in order", of.per_step));
}

std::string compared_text(const Skew& skew) {
  std::string text = count_of(skew.matched(), "collective", "collectives") + " compared";
  if (skew.exchanges())
    text += fmt::format(", {} of them exchanges", with_commas(skew.exchanges()));
  return text;
}

void add_skew(Page& page, const Ranks::OfCommunicator& of, std::size_t at_most) {
  const Skew& skew = *of.skew;
  if (of.verdict != SkewVerdict::inconclusive) page.paragraph(named_text(of), 2);
  page.paragraph(
      skew.times() == Skew::Times::gpu
          ? fmt::format(
                "{}, {} of all ranks on GPUs: {} transfer (the shortest kernel of "
                "each), {} {}, {} shorter waiting, as between ranks that nothing delays. {}",
                compared_text(skew), human_time(skew.time()), human_time(skew.transfer()),
                human_time(skew.beyond_noise()), rule_of(skew), human_time(skew.below_noise()),
                steps_text(of))
          : fmt::format("{} compared by when ranks entered: there are no GPU times. {}",
                        count_of(skew.matched(), "collective", "collectives"), steps_text(of)),
      2);
  Table waits = table_of("who waited for whom", WAIT_COLUMNS);
  add_rows(waits, waits_in(skew), at_most, "pairs", cells_in(WAIT_COLUMNS, page));
  if (!waits.empty()) waits.add_to(page);
  std::vector<StepRow> steps = steps_in(skew);
  std::erase_if(steps, [](const StepRow& row) { return row.step.late.empty(); });
  std::ranges::stable_sort(
      steps, [](const StepRow& a, const StepRow& b) { return a.step.waited > b.step.waited; });
  Table table = table_of("steps with the most waiting", STEP_COLUMNS);
  auto cells = cells_in(STEP_COLUMNS, page);
  for (std::size_t i = 0; i < std::min(at_most, steps.size()); i++)
    table.row(steps[i].name, cells(steps[i]));
  if (!table.empty()) table.add_to(page);
}

void add_left_out_of(Page& page, const Ranks::OfCommunicator& of) {
  auto note = [&](std::uint64_t count, std::string_view one, std::string_view text) {
    if (count)
      page.paragraph(fmt::format("{} {}", count_of(count, one, std::string(one) + "s"), text), 2);
  };
  note(of.at_set_up, "collective", "left out: NCCL makes connections for the first.");
  note(of.incomplete, "collective", "not entered by all ranks recorded, as far as the trace goes.");
  note(of.after_loss, "collective", "left out: records were lost before.");
  const Exchanges::Books& exchanges = of.exchanges;
  note(exchanges.several_partners, "group",
       "with sends or receives left out: it is not known for which partner they waited.");
  note(exchanges.without_partner, "group",
       "with sends or receives left out: a partner of theirs is not known.");
  if (!of.knows_unmatched) return;
  note(exchanges.unmatched_sends, "send", "without a receive, as far as the trace goes.");
  note(exchanges.unmatched_receives, "receive", "without a send, as far as the trace goes.");
}

void add_communicator(Page& page, const Ranks& ranks, const Ranks::OfCommunicator& of,
                      std::size_t at_most) {
  if (!page.empty()) page.blank();
  page.heading(fmt::format("communicator {:016x}: {}", of.identity, recorded_text(of)));
  std::string verdict(to_string(of.verdict));
  verdict[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(verdict[0])));
  page.statement(verdict, verdict_text(of));
  if (of.skew) add_skew(page, of, at_most);
  add_left_out_of(page, of);
  Table table = table_of("ranks", RANK_COLUMNS);
  auto cells = cells_in(RANK_COLUMNS, page, &ranks.names());
  for (std::size_t i = 0; i < std::min(at_most, of.recorded.size()); i++)
    table.row(fmt::format("rank {}", of.recorded[i].rank), cells(of.recorded[i]));
  table.add_to(page);
}

std::string text_of(const Mismatch& one, const Communicators& communicators) {
  auto who = [&](std::uint64_t number) {
    const TracedCommunicator* found = communicators.find(number);
    return found ? rank_text(*found) : fmt::format("#{}", number);
  };
  std::string what = one.to ? fmt::format("send {} to rank {}", one.seq, *one.to)
                            : fmt::format("collective {}", one.seq);
  return fmt::format("{} of communicator {:016x}: {} is {} for {}, and {} for {}", what,
                     one.identity, one.field, printable(one.has), who(one.communicator),
                     printable(one.other_has), who(one.other));
}

void add_mismatches(Page& page, const Ranks& ranks, std::size_t at_most) {
  std::uint64_t count = ranks.mismatches().count();
  if (!count) return;
  page.blank();
  page.heading("ranks that asked for different things");
  const auto& all = ranks.mismatches().listed();
  for (std::size_t i = 0; i < std::min(at_most, all.size()); i++)
    page.paragraph(text_of(all[i], ranks.runs().communicators()), 2);
  if (count > at_most) page.paragraph(fmt::format("{} more.", with_commas(count - at_most)), 2);
}

}  // namespace

Json ranks_json(const Ranks& ranks) {
  Json communicators = Json::array();
  for (const Ranks::OfCommunicator& of : ranks.communicators())
    communicators.push_back(communicator_json(of, ranks.names()));
  Json json = {{"communicators", communicators}, {"mismatched", ranks.mismatches().count()}};
  json["mismatches"] = list_of(ranks.mismatches().listed(), MISMATCH_COLUMNS);
  if (!ranks.lost().empty()) json["lost"] = ranks.lost();
  json["not_counted"] = ranks.not_counted();
  json["left_out"] = ranks.left_out();
  json["books"] = run_books_json(ranks.runs());
  return json;
}

void add_ranks(Page& page, const Ranks& ranks, std::size_t at_most) {
  add_mismatches(page, ranks, at_most);
  const auto& all = ranks.communicators();
  if (all.empty()) page.paragraph("No collective can be matched with those of other ranks.", 0);
  for (std::size_t i = 0; i < std::min(at_most, all.size()); i++)
    add_communicator(page, ranks, all[i], at_most);
  if (all.size() > at_most)
    page.paragraph(fmt::format("{} more communicators.", with_commas(all.size() - at_most)), 2);
  if (!ranks.lost().empty())
    page.paragraph("Records were lost (" + printable(ranks.lost()) +
                       "): whether ranks asked for different things is not known.",
                   2);
  if (std::uint64_t count = ranks.not_counted())
    page.paragraph(
        fmt::format("{} whose numbers are not those of other ranks: recording began after their "
                    "communicator was made, or records of it were lost.",
                    count_of(count, "collective", "collectives")),
        2);
  if (ranks.left_out())
    page.paragraph(fmt::format("{} left out: more at once than are kept.",
                               count_of(ranks.left_out(), "item", "items")),
                   2);
  add_run_notes(page, ranks.runs());
}

}  // namespace cudabpf::analyze
