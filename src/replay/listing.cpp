#include "replay/listing.hpp"

#include <fmt/format.h>

#include "replay/contents.hpp"
#include "replay/layout.hpp"
#include "util/demangle/demangle.hpp"
#include "util/page/table.hpp"
#include "util/text/moments.hpp"

namespace cudabpf::replay {

using bundle::Json, bundle::Writing;

namespace {

Json origin_json(const Manifest& manifest) {
  const bundle::Device& device = manifest.devices.front();
  Json json = {{"format_version", manifest.version},
               {"cudabpf", manifest.cudabpf},
               {"host", manifest.host},
               {"time", iso_time(manifest.unix_ns)},
               {"command", manifest.command},
               {"pid", manifest.iteration.pid},
               {"iteration", manifest.iteration.number},
               {"contents", manifest.contents},
               {"gpu", device.name},
               {"compute_capability", fmt::format("{}.{}", device.major, device.minor)},
               {"driver", device.driver}};
  if (manifest.rank) json["rank"] = *manifest.rank;
  return json;
}

Json memory_json(const Contents& contents) {
  Json json = Json::object();
  for (std::size_t i = 0; i < contents.blocks.size(); i++)
    if (contents.blocks[i].count)
      json[std::string(bundle::BLOCK_KINDS[i])] = Writing::json_of(contents.blocks[i]);
  json["before_bytes"] = contents.pages_before * PAGE;
  json["after_bytes"] = contents.pages_after * PAGE;
  return json;
}

Json launches_json(const Manifest& manifest, const Tape& tape) {
  Json list = Json::array();
  for (const DistinctLaunch& launch : distinct_launches(tape, manifest))
    list.push_back(launch_json(launch, manifest));
  return list;
}

std::string command_of(const Manifest& manifest) {
  std::string all;
  for (const std::string& word : manifest.command) (all += all.empty() ? "" : " ") += word;
  return all;
}

void add_amount(Page& page, std::string_view name, const Amount& amount, std::string_view one,
                std::string_view many) {
  if (amount.count)
    page.term(name,
              fmt::format("{}, {}", count_of(amount.count, one, many), human_bytes(amount.bytes)));
}

void add_operations(Page& page, const Contents& contents) {
  add_section(page, "Operations");
  page.term("kernels", count_of(contents.launches, "launch", "launches"));
  if (contents.graph_launches)
    page.term("graphs", fmt::format("{}; what they run is counted here, too",
                                    count_of(contents.graph_launches, "launch", "launches")));
  add_amount(page, "copied to GPU", contents.to_gpu, "copy", "copies");
  add_amount(page, "copied to host", contents.to_host, "copy", "copies");
  add_amount(page, "copied on GPU", contents.within, "copy", "copies");
  add_amount(page, "fills", contents.fills, "fill", "fills");
  if (contents.waits) page.term("waits", with_commas(contents.waits));
  if (contents.allocations || contents.frees)
    page.term("memory", fmt::format("{} allocated, {} freed", with_commas(contents.allocations),
                                    with_commas(contents.frees)));
}

void add_memory(Page& page, const Manifest& manifest, const Contents& contents) {
  add_section(page, "Memory and code");
  for (std::size_t i = 0; i < contents.blocks.size(); i++)
    add_amount(page, fmt::format("{} memory", bundle::BLOCK_KINDS[i]), contents.blocks[i], "block",
               "blocks");
  if (manifest.contents)
    page.term("contents", fmt::format("{} before the iteration; {} that it changed",
                                      human_bytes(contents.pages_before * PAGE),
                                      human_bytes(contents.pages_after * PAGE)));
  else
    page.term("contents", "none: it can be timed, but not checked");
  page.term("code", fmt::format("{}, {}", count_of(manifest.images.size(), "image", "images"),
                                human_bytes(contents.image_bytes)));
}

void add_launches(Page& page, const Manifest& manifest, const Tape& tape) {
  Table table(
      "Distinct launches",
      {{"count"}, {"grid", 1, true}, {"block", 1, true}, {"shared", 2}, {"refused", 3, true}});
  for (const DistinctLaunch& launch : distinct_launches(tape, manifest))
    table.row(kernel_name(launch.kernel, manifest),
              {with_commas(launch.count), dim_text(launch.grid), dim_text(launch.block),
               launch.shared ? with_commas(launch.shared) : "", launch.refused});
  table.add_to(page);
}

}  // namespace

Json launch_json(const DistinctLaunch& launch, const Manifest& manifest) {
  Json json = {{"kernel", demangle(manifest.kernels[launch.kernel].name)},
               {"grid", launch.grid},
               {"block", launch.block},
               {"shared", launch.shared},
               {"count", launch.count}};
  if (!launch.refused.empty()) json["refused"] = launch.refused;
  return json;
}

Json occurrence_json(const Step& step) {
  return {{"call", step.operation->call},
          {"grid", step.launch->grid},
          {"block", step.launch->block},
          {"shared", step.launch->shared}};
}

void add_section(Page& page, std::string_view name) {
  page.blank();
  page.heading(name);
}

std::string dim_text(const bundle::Dim& dim) {
  return fmt::format("{}x{}x{}", dim[0], dim[1], dim[2]);
}

std::string origin_of(const Manifest& manifest) {
  constexpr std::size_t TO_SECONDS = 19;
  const bundle::Device& device = manifest.devices.front();
  return fmt::format("Iteration {} of `{}` (pid {}{}) on {}, {}{}, captured {}",
                     manifest.iteration.number, command_of(manifest), manifest.iteration.pid,
                     manifest.rank ? ", rank " + *manifest.rank : "", manifest.host, device.name,
                     device.driver.empty() ? "" : ", driver " + device.driver,
                     iso_time(manifest.unix_ns).substr(0, TO_SECONDS) + "Z");
}

Json list_json(const Manifest& manifest, const Tape& tape, const Here& here) {
  Contents contents = contents_of(manifest, tape);
  Json json = {{"capture", origin_json(manifest)},
               {"operations",
                {{"launches", contents.launches},
                 {"graph_launches", contents.graph_launches},
                 {"copies_to_gpu", Writing::json_of(contents.to_gpu)},
                 {"copies_to_host", Writing::json_of(contents.to_host)},
                 {"copies_on_gpu", Writing::json_of(contents.within)},
                 {"fills", Writing::json_of(contents.fills)},
                 {"waits", contents.waits},
                 {"allocations", contents.allocations},
                 {"frees", contents.frees}}},
               {"memory", memory_json(contents)},
               {"images", Writing::json_of(Amount{manifest.images.size(), contents.image_bytes})},
               {"launches", launches_json(manifest, tape)},
               {"refused", Json::array()}};
  for (const Skipped& one : contents.refused)
    json["refused"].push_back({{"what", one.what}, {"why", one.why}, {"count", one.count}});
  Json& on = json["here"] = Json::object();
  if (!here.gpu) {
    on["why"] = Json::array({here.why});
    return json;
  }
  on["gpu"] = here.gpu->name;
  on["driver"] = here.gpu->driver;
  on["why"] = against(manifest, *here.gpu);
  return json;
}

void add_list(Page& page, const Manifest& manifest, const Tape& tape, const Here& here) {
  Contents contents = contents_of(manifest, tape);
  page.paragraph(origin_of(manifest), 0);
  add_operations(page, contents);
  add_memory(page, manifest, contents);
  add_launches(page, manifest, tape);
  add_paragraphs(page, "Not run again", contents.refused, [](const Skipped& one) {
    return fmt::format("{} x {}: {}", with_commas(one.count), one.what, one.why);
  });
  auto reasons = here.gpu ? against(manifest, *here.gpu) : std::vector{here.why};
  if (reasons.empty())
    reasons.push_back(fmt::format("It can be run on this machine's {}, with a driver of CUDA {}.",
                                  here.gpu->name, here.gpu->driver));
  add_paragraphs(page, "Here", reasons);
}

}  // namespace cudabpf::replay
