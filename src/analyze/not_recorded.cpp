#include "analyze/not_recorded.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "cudabpf/cuda_api.hpp"
#include "util/saturating.hpp"
#include "util/text/json_text.hpp"

namespace cudabpf::analyze {

namespace {

constexpr std::string_view SILENT =
    "no process reported any: libcuda loads the library that does so in cuInit, if an environment "
    "variable names it";

std::string_view name_in(std::string_view text) { return text.substr(0, text.find(' ')); }

// What a function does that figures count: "launches". Empty: nothing.
std::string_view kind_of(std::string_view text) {
  const Function* known = find_function(name_in(text));
  return known ? to_string(known->meaning.counted) : "";
}

}  // namespace

void NotRecorded::header(const TraceHeader& header) {
  gpu_times_wanted_ = header.measures_gpus();
  window_ns_ = header.gpu_window_ns;
  period_ns_ = header.gpu_period_ns;
}

void NotRecorded::gpu_window(const Line& line) {
  windows_++;
  in_windows_ns_ = saturating_sum(in_windows_ns_, line.duration);
}

void NotRecorded::library(const Line& line) {
  if (line.text.find("\"unpatched\"") == std::string_view::npos) return;
  auto said = parsed(line.text);
  auto listed = said.is_object() ? said.find("unpatched") : said.end();
  if (listed == said.end() || !listed->is_array()) return;
  for (const auto& one : *listed) {
    if (!one.is_string()) continue;
    std::string text = one.get_ref<const std::string&>().substr(0, MAX_TEXT);
    if (std::find(functions_.begin(), functions_.end(), text) != functions_.end()) continue;
    if (functions_.size() == MAX_FUNCTIONS)
      more_functions_++;
    else
      functions_.push_back(text);
    std::string_view kind = kind_of(text);
    if (!kind.empty() && std::find(kinds_.begin(), kinds_.end(), kind) == kinds_.end())
      kinds_.push_back(kind);
  }
}

void NotRecorded::note(const Line& line, Reasons& reasons) {
  std::string why = text_in(parsed(line.text), "why");
  if (why.empty()) return;
  why.resize(std::min(why.size(), MAX_TEXT));
  auto known = reasons.find(why);
  if (known == reasons.end())
    known = reasons.size() < MAX_REASONS ? reasons.try_emplace(why).first : reasons.begin();
  if (!known->second.count++) known->second.first = line.pid;
}

void NotRecorded::gpu_times(const Line& line) {
  reported_gpus_ = true;
  note(line, no_gpu_times_);
}

void NotRecorded::python(const Line& line) { note(line, no_python_); }

bool NotRecorded::any(std::uint64_t calls) const {
  return is_silent(calls) || !no_gpu_times_.empty() || !no_python_.empty() || !functions_.empty() ||
         period_ns_;
}

std::string NotRecorded::no_window() const {
  return fmt::format("the trace ended before a window of {} in each {} began",
                     human_time(window_ns_), human_time(period_ns_));
}

bool NotRecorded::is_silent(std::uint64_t calls) const {
  return gpu_times_wanted_ && !reported_gpus_ && calls;
}

std::string NotRecorded::why_no_gpu_times(std::uint64_t calls) const {
  if (is_silent(calls)) return std::string(SILENT);
  if (has_met_no_window() && no_gpu_times_.empty()) return no_window();
  return no_gpu_times_.empty() ? "" : no_gpu_times_.begin()->first;
}

nlohmann::ordered_json NotRecorded::list_of(const Reasons& reasons) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& [why, processes] : reasons)
    list.push_back({{"why", why}, {"pid", processes.first}, {"processes", processes.count}});
  return list;
}

nlohmann::ordered_json NotRecorded::json(std::uint64_t calls) const {
  nlohmann::ordered_json json = {{"gpu_times", list_of(no_gpu_times_)}, {"functions", functions_}};
  if (!no_python_.empty()) json["python_lines"] = list_of(no_python_);
  if (is_silent(calls)) json["gpu_times"].push_back({{"why", SILENT}});
  if (has_met_no_window()) json["gpu_times"].push_back({{"why", no_window()}});
  if (period_ns_)
    json["gpu_windows"] = {{"count", windows_},
                           {"sum_ns", in_windows_ns_},
                           {"window_ns", window_ns_},
                           {"period_ns", period_ns_}};
  if (more_functions_) json["more_functions"] = more_functions_;
  return json;
}

void NotRecorded::add_to(Page& page, const Reasons& reasons) {
  for (const auto& [why, processes] : reasons)
    page.paragraph(fmt::format("Process {}{}: {}.", processes.first,
                               processes.count > 1
                                   ? fmt::format(" and {} more", with_commas(processes.count - 1))
                                   : "",
                               why),
                   2);
}

void NotRecorded::add_to(Page& page, std::uint64_t calls) const {
  if (windows_) {
    if (!page.empty()) page.blank();
    page.heading("GPU times in windows");
    page.paragraph(
        fmt::format(
            "Kernels were recorded for {} in {}, of {} in each {}: counts and sums of what "
            "GPUs did are of these. Copies and fills are not recorded in windows, and count "
            "as idle.",
            human_time(in_windows_ns_), count_of(windows_, "window", "windows"),
            human_time(window_ns_), human_time(period_ns_)),
        2);
  }
  if (is_silent(calls) || has_met_no_window() || !no_gpu_times_.empty()) {
    if (!page.empty()) page.blank();
    page.heading("no GPU times");
    if (is_silent(calls)) page.paragraph(fmt::format("All processes: {}.", SILENT), 2);
    if (has_met_no_window()) page.paragraph(no_window() + ".", 2);
    add_to(page, no_gpu_times_);
  }
  if (!no_python_.empty()) {
    if (!page.empty()) page.blank();
    page.heading("no lines of Python");
    add_to(page, no_python_);
  }
  if (functions_.empty()) return;
  if (!page.empty()) page.blank();
  page.heading("functions that could not be recorded");
  std::vector<std::string_view> others;  // of which no figure lacks anything
  for (const std::string& function : functions_) {
    if (kind_of(function).empty())
      others.push_back(name_in(function));
    else
      page.paragraph(function, 2);
  }
  if (!others.empty())
    page.paragraph(fmt::format("{}; --json says why", fmt::join(others, ", ")), 2);
  if (more_functions_) page.paragraph(fmt::format("and {} more", with_commas(more_functions_)), 2);
}

}  // namespace cudabpf::analyze
