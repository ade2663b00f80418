#include "replay/export/export_page.hpp"

#include <fmt/format.h>

#include "replay/export/readme.hpp"
#include "replay/listing.hpp"
#include "util/demangle/demangle.hpp"
#include "util/page/table.hpp"

namespace cudabpf::replay {

using bundle::Json, bundle::Writing;

Json export_json(const ExportedKernel& made, const std::string& output, const Tape& tape) {
  Json json = {{"verdict", made.is_right() ? "equal" : "different"},
               {"folder", output},
               {"kernel", demangle(made.kernel)},
               {"mangled", made.kernel},
               {"gpu", made.gpu.name},
               {"launches", made.live_launches},
               {"memory", MEMORY_TAKEN[static_cast<std::size_t>(made.memory)]},
               {"blocks", made.extracted.blocks},
               {"block_bytes", made.extracted.block_bytes},
               {"occurrences", Json::array()}};
  if (!made.why_more_memory.empty()) json["why_more_memory"] = made.why_more_memory;
  for (const Extract& one : made.extracted.launches) {
    Json row = occurrence_json(tape.steps()[one.step]);
    row.update({{"in_bytes", one.in},
                {"changed_bytes", one.changed},
                {"not_deterministic", Json::array()},
                {"pointers", Json::array()}});
    for (const Addresses& range : one.not_deterministic)
      row["not_deterministic"].push_back(
          {{"at", fmt::format("{:#x}", range.begin.value)}, {"bytes", range.size}});
    for (const Pointer& pointer : one.pointers)
      row["pointers"].push_back({{"offset", pointer.offset},
                                 {"to", fmt::format("{:#x}", pointer.to.value)},
                                 {"block", fmt::format("{:#x}", pointer.block.begin.value)},
                                 {"block_bytes", pointer.block.size}});
    json["occurrences"].push_back(std::move(row));
  }
  json["failed"] = Writing::json_of(made.check.failures);
  json["notes"] = made.notes;
  return json;
}

void add_export(Page& page, const ExportedKernel& made, const std::string& output,
                const Tape& tape) {
  page.statement(
      made.is_right() ? "Exported" : "Different",
      fmt::format("{} is in {}, with {} of its {}, and {}.", short_name(demangle(made.kernel)),
                  output, with_commas(made.extracted.launches.size()),
                  count_of(made.live_launches, "launch", "launches"),
                  made.is_right() ? "leaves there what it left in the program"
                                  : "does not leave there what it left before"));
  page.paragraph(
      fmt::format("{}: {}.", memory_sentence(made), human_bytes(made.extracted.block_bytes)), 0);
  Table table("Occurrences", {{"copied to GPU"},
                              {"changed"},
                              {"not deterministic", 2},
                              {"grid", 1, true},
                              {"block", 1, true}});
  for (const Extract& one : made.extracted.launches) {
    const Step& step = tape.steps()[one.step];
    std::uint64_t varying = size_of(one.not_deterministic);
    table.row(fmt::format("call {}", step.operation->call),
              {with_commas(one.in), with_commas(one.changed), varying ? with_commas(varying) : "",
               dim_text(step.launch->grid), dim_text(step.launch->block)});
  }
  table.add_to(page);
  for (const Extract& one : made.extracted.launches)
    if (!one.not_deterministic.empty())
      page.paragraph(
          fmt::format("call {}: {} bytes from {:#x} on are not the same each time it runs, and are "
                      "not compared",
                      tape.steps()[one.step].operation->call,
                      with_commas(size_of(one.not_deterministic)),
                      one.not_deterministic.front().begin.value),
          2);
  std::vector<std::string> notes;
  for (const Failure& one : made.check.failures) notes.push_back(one.text());
  notes.insert(notes.end(), made.notes.begin(), made.notes.end());
  add_paragraphs(page, "Notes", notes);
  page.blank();
  page.line("  README.md there says how to run it, and launch.cpp runs it without cudabpf");
}

}  // namespace cudabpf::replay
