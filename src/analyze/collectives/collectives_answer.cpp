#include <fmt/format.h>

#include <algorithm>

#include "analyze/collectives/collectives.hpp"
#include "analyze/columns.hpp"

namespace cudabpf::analyze {

namespace {

using CollectiveRow = Collectives::Row;

// Bytes per second of the time on the GPU.
std::optional<double> bandwidth_of_row(const CollectiveRow& row, std::optional<double> bytes) {
  if (!bytes || !row.gpu.total()) return std::nullopt;
  return *bytes * 1e9 / static_cast<double>(row.gpu.total());
}

constexpr auto bandwidth_json = [](const std::optional<double>& rate) {
  return rate ? Json(*rate) : Json();
};

constexpr auto bus_bandwidth_text = [](const CollectiveRow& row) {
  auto rate = bandwidth_of_row(row, row.bus_bytes);
  return rate ? human_rate(*rate) : std::string();
};

constexpr auto communicator_of_row = [](const CollectiveRow& row, const Communicators* all) {
  const TracedCommunicator* one = all->find(row.communicator);
  if (one) return rank_text(*one);
  return row.pid ? fmt::format("process {}", row.pid) : std::string();
};

Json times_with_shortest(const Durations& times) { return times_json(times, Means::mean_and_min); }

using CollectiveColumn = Column<CollectiveRow, const Communicators*>;
constexpr CollectiveColumn COLLECTIVE_COLUMNS[] = {
    {{"function"}, As::text, its<&CollectiveRow::name>},
    {{"communicator"},
     As::number,
     [](auto& row) { return known_if(row.communicator, row.communicator); }},
    {{"pid"}, As::number, its<&CollectiveRow::pid>},
    {{nullptr, "communicator"}, As::text, communicator_of_row},
    {{"size", "size"}, As::bytes, its<&CollectiveRow::size>},
    {{"count", "count"}, As::count, its<&CollectiveRow::count>},
    {{"in_graphs", "in graphs", 3}, As::figure, its<&CollectiveRow::in_graphs>},
    {{"gpu"}, As::object, its<&CollectiveRow::gpu, times_with_shortest>},
    {{"host"}, As::object, its<&CollectiveRow::host, times_with_shortest>},
    {{nullptr, "GPU time"}, As::time, its<&CollectiveRow::gpu, total_of>},
    {{nullptr, "mean", 1}, As::time, its<&CollectiveRow::gpu, mean_of>},
    {{nullptr, "min", 2}, As::time, its<&CollectiveRow::gpu, min_of>},
    {{nullptr, "bus"}, As::word, bus_bandwidth_text},
    {{"algorithm_bytes_per_second"},
     As::object,
     [](auto& row) {
       return known_if(row.algorithm_bytes.has_value(),
                       bandwidth_json(bandwidth_of_row(row, row.algorithm_bytes)));
     }},
    {{"bus_bytes_per_second"},
     As::object,
     [](auto& row) {
       return known_if(row.bus_bytes.has_value(),
                       bandwidth_json(bandwidth_of_row(row, row.bus_bytes)));
     }},
    {{"hidden_us"}, As::time, [](auto& row) { return known_if(row.gpu.count(), row.hidden); }},
    {{"exposed_us"}, As::time, [](auto& row) { return known_if(row.gpu.count(), row.exposed()); }},
    {{nullptr, "exposed"},
     As::percent,
     [](auto& row) { return known_if(row.gpu.total(), share(row.exposed(), row.gpu.total())); }},
    {{nullptr, "host time", 4}, As::time, its<&CollectiveRow::host, total_of>},
};

std::string identity_in_hex(const TracedCommunicator& one) {
  if (!one.identity) return "not known";
  return fmt::format("{:016x}", *one.identity);
}

constexpr Column<TracedCommunicator> COMMUNICATOR_COLUMNS[] = {
    {{"communicator"}, As::number, its<&TracedCommunicator::number>},
    {{"identity", "identity"}, As::text, its<identity_in_hex>},
    {{"rank"}, As::number, [](auto& one) { return known_if(!!one.rank, one.rank.value_or(0)); }},
    {{"ranks"}, As::number, [](auto& one) { return known_if(!!one.ranks, one.ranks.value_or(0)); }},
    {{"pid", "process"}, As::number, its<&TracedCommunicator::pid>},
    {{"device", "GPU", 1},
     As::number,
     [](auto& one) { return known_if(!!one.device, one.device.value_or(0)); }},
    {{"from", "split off", 2}, As::number, [](auto& one) { return known_if(one.from, one.from); }},
    {{"late"}, As::object, its<&TracedCommunicator::late>},
    {{"rank_worked_out"}, As::object, its<&TracedCommunicator::rank_worked_out>},
};

std::vector<TracedCommunicator> every_one(const Communicators& communicators) {
  std::vector<TracedCommunicator> all;
  for (const auto& [number, one] : communicators.all()) all.push_back(one);
  return all;
}

void add_communicators(Page& page, const Communicators& communicators, std::size_t at_most) {
  std::vector<TracedCommunicator> all = every_one(communicators);
  if (all.empty()) return;
  Table table = table_of("communicators", COMMUNICATOR_COLUMNS);
  auto cells = cells_in(COMMUNICATOR_COLUMNS, page);
  for (std::size_t i = 0; i < std::min(at_most, all.size()); i++)
    table.row(rank_text(all[i]), cells(all[i]));
  table.add_to(page);
  if (all.size() > at_most)
    page.paragraph(fmt::format("{} more communicators.", with_commas(all.size() - at_most)), 2);
}

void add_hidden_time(Page& page, const CollectiveRuns& runs) {
  for (const CollectiveRuns::OfGpu* gpu : runs.gpus()) {
    std::uint64_t all = gpu->collectives.total();
    page.paragraph(
        fmt::format("GPU {} for process {}: {} in collectives, of which {} ({}) hidden by other "
                    "work of the GPU, and {} ({}) exposed.",
                    gpu->device, gpu->pid, human_time(all), human_time(gpu->hidden()),
                    percent(gpu->hidden(), all), human_time(gpu->exposed()),
                    percent(gpu->exposed(), all)),
        2);
  }
}

}  // namespace

std::string rank_text(const TracedCommunicator& one) {
  std::string rank = one.rank ? fmt::format("rank {}", *one.rank) : std::string("rank not known");
  if (one.ranks) rank += fmt::format(" of {}", *one.ranks);
  return fmt::format("#{}, {}", one.number, rank);
}

Json run_books_json(const CollectiveRuns& runs) {
  const CollectiveRuns::Books& books = runs.books();
  return {{"failed_calls", books.failed},
          {"captured_calls", books.captured},
          {"runs_without_kernel", books.without_kernel},
          {"unjoined_kernels", books.unjoined},
          {"unjoined_kernels_us", microseconds(books.unjoined_time)},
          {"late_operations", books.late},
          {"left_out", books.left_out + runs.communicators().left_out()}};
}

void add_run_notes(Page& page, const CollectiveRuns& runs) {
  const CollectiveRuns::Books& books = runs.books();
  auto note = [&](std::uint64_t count, std::string_view one, std::string_view several,
                  std::string_view text) {
    if (count) page.paragraph(fmt::format("{} {}", count_of(count, one, several), text), 2);
  };
  note(books.captured, "call was", "calls were",
       "captured into graphs, and counted at each launch of these.");
  note(books.failed, "call", "calls", "failed, and counted nowhere.");
  note(books.without_kernel, "collective or group", "collectives or groups",
       "without a known kernel: not in the times on GPUs.");
  if (books.unjoined)
    note(books.unjoined, "kernel", "kernels",
         fmt::format("of collectives, {} in all, whose calls are not known: in no row.",
                     human_time(books.unjoined_time)));
  note(books.late, "operation of a GPU", "operations of GPUs",
       "reported too late to tell what ran at the same time.");
  note(books.left_out + runs.communicators().left_out(), "item", "items",
       "left out: more at once than are kept.");
}

Json collectives_json(const Collectives& collectives) {
  const CollectiveRuns& runs = collectives.runs();
  Json gpus = Json::array();
  for (const CollectiveRuns::OfGpu* gpu : runs.gpus())
    gpus.push_back({{"pid", gpu->pid},
                    {"device", gpu->device},
                    {"collectives_us", microseconds(gpu->collectives.total())},
                    {"hidden_us", microseconds(gpu->hidden())},
                    {"exposed_us", microseconds(gpu->exposed())}});
  return {{"times", runs.measured() ? "gpu" : "host"},
          {"communicators", list_of(every_one(runs.communicators()), COMMUNICATOR_COLUMNS)},
          {"collectives", list_of(collectives.rows(), COLLECTIVE_COLUMNS, &runs.communicators())},
          {"gpus", gpus},
          {"books", run_books_json(runs)}};
}

void add_collectives(Page& page, const Collectives& collectives, std::size_t at_most) {
  const CollectiveRuns& runs = collectives.runs();
  if (collectives.rows().empty()) page.paragraph("No collective ran in this part of the trace.", 0);
  Table table = table_of("collectives", COLLECTIVE_COLUMNS);
  add_rows(table, collectives.rows(), at_most, "kinds",
           cells_in(COLLECTIVE_COLUMNS, page, &runs.communicators()));
  if (!table.empty()) table.add_to(page);
  if (!collectives.rows().empty() && !runs.measured())
    page.paragraph(
        "The trace has no GPU times: times are those of the calls on the host, which "
        "only queue the work.",
        2);
  add_hidden_time(page, runs);
  add_run_notes(page, runs);
  add_communicators(page, runs.communicators(), at_most);
}

}  // namespace cudabpf::analyze
