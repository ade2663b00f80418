// One screen that answers what people ask of a trace first.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analyze/collectives/execution_waits.hpp"
#include "analyze/iterations/execution.hpp"
#include "analyze/memory/memory.hpp"
#include "analyze/ranges/ranges.hpp"
#include "analyze/summary/judged.hpp"
#include "analyze/summary/measured_execution.hpp"
#include "analyze/summary/steps.hpp"
#include "analyze/summary/stretch.hpp"
#include "analyze/summary/totals.hpp"
#include "analyze/summary/verdict.hpp"
#include "util/text/moments.hpp"

namespace cudabpf::analyze {

class Summary : public Analysis {
 public:
  // Phases and iterations are those of the thread that launches most of those wanted; among ranks
  // that launch alike, of one that waits for another. `moments`: how the verdict shows times. The
  // longest `gaps` idle times are kept; the answers show as many of them as they ever do.
  Summary(Names& names, ThreadFilter wanted, Part part = {}, Moments moments = {},
          std::size_t gaps = Judged::GAPS);

  void line(const Line& line) override;
  void outside(const Line& line) override;
  void finish(const TraceFacts& facts) override;

  // Whether there are phases and iterations to report.
  const Execution& execution() const { return execution_; }
  const Memory& memory() const { return memory_; }
  bool found_thread() const { return execution_.thread() != nullptr; }
  Json json() const;
  // The verdict, the phases, and as many answers as fit on a screen; all of them if that is wanted.
  void add_to(Page& page, bool all) const;

 private:
  struct Answer;
  static const Answer ANSWERS[];

  void judge_processes(const Seen& seen);
  void show_one_that_waits();
  bool shows_one_that_waits() const;  // there is a thread
  std::string_view chosen() const;
  void add_head(Page& page) const;
  std::string traced_text() const;
  void add_shown(Page& page, bool always) const;
  const Finding* bound_of(std::uint64_t process) const;  // null: it is not judged
  void add_processes(Page& page, std::size_t at_most) const;
  void add_devices(Page& page) const;
  void add_answers(Page& page, bool all) const;
  void add_what_fits(Page& page, std::size_t lines) const;
  void add_slowest(Page& page) const;
  void add_errors(Page& page) const;
  std::string kernels_answer(const Page& page) const;
  std::string phases_answer(const Page& page) const;
  std::string iterations_answer(const Page& page) const;
  std::string ranges_answer(const Page&) const { return outermost_ranges_text(ranges_); }
  std::string compute_answer(const Page& page) const;
  std::string transfer_answer(const Page& page) const;
  // One line for each of the processes that were idle longest.
  std::string of_processes(const std::function<std::string(const Idle::OfProcess&)>& text_of) const;
  std::string busy_answer(const Page& page) const;
  std::string idle_answer(const Page& page) const;
  std::string measured_idle(const Page& page) const;
  std::string path_answer(const Page& page) const;
  std::string between_answer(const Page& page) const;
  std::string blocked_answer(const Page& page) const;
  std::string memory_answer(const Page& page) const;
  std::string unused_answer() const;
  std::string who_held(const MemoryPeak::Holders& holders) const;
  std::string driver_answer(const Page& page) const;
  std::string scheduler_answer(const Page& page) const;
  Json iterations_json() const;
  std::uint64_t processes() const {
    return execution_.threads().processes().size() + execution_.threads().other_processes();
  }
  std::string process_text(std::uint64_t number, std::uint32_t pid) const;  // "process 657 python3"
  std::uint64_t shown_process() const;
  std::vector<ProcessWork> processes_in_order() const;
  std::string command_of(const ProcessWork& process) const;
  std::uint64_t other_launches() const;  // by threads that are not shown
  std::optional<std::uint64_t> gpu_time_of(std::uint64_t process) const;
  Json processes_json() const;
  Json other_processes_json() const;
  Json shown_json() const;
  bool verdict_shows(std::string_view id) const;
  std::uint64_t inference_time() const;
  std::uint64_t inference_idle() const;  // of its process

  Names& names_;
  Part part_;
  Totals totals_;
  Execution execution_;
  ExecutionWaits waits_{names_, execution_, part_};
  Memory memory_;
  RangeTotals ranges_;
  Stretch stretch_;
  MeasuredExecution measured_;
  std::vector<Steps> steps_;  // of each process with a thread at work
  Moments moments_;
  std::vector<Finding> verdict_;
  TraceHeader header_;
  ThreadFilter wanted_;
  std::uint64_t duration_ = 0;  // of the part
  bool lacks_launches_ = false;
};

}  // namespace cudabpf::analyze
