// A trace as one HTML file: the answers of the subcommands that read traces, all found in one
// reading, a timeline, and the page that draws them. Or two traces, side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "analyze/analysis.hpp"
#include "analyze/export/byte_stream.hpp"
#include "analyze/report/report_events.hpp"
#include "analyze/thread_filter.hpp"

namespace cudabpf::analyze {

class Report : public Analysis {
 public:
  Report(Names& names, ThreadFilter wanted, const Part& part, const Moments& moments,
         std::size_t most_events = ReportEvent::MAX);
  ~Report() override;

  void line(const Line& line) override;
  void outside(const Line& line) override;
  void finish(const TraceFacts& facts) override;

  bool found_thread() const;
  // By the subcommands' names: what each answers with --json. Long lists are cut, and say so.
  Json answers() const;
  // The page is viewed in `serve`, which has other pages, and makes this one anew at the next
  // request; else it is a file by itself.
  struct Served {
    bool may_run = false;  // the trace is being recorded, unless it has an end
  };
  // `title` is what the trace is called.
  void write(ByteStream& out, const TraceFacts& facts, const std::string& title,
             std::optional<Served> served = {}) const;

 private:
  friend class ReportOfTwo;

  Json data(const TraceFacts& facts, const std::string& title) const;

  struct Analyses;
  std::unique_ptr<Analyses> all_;
  Moments moments_;
};

class ReportOfTwo {
 public:
  // Each of the two: a page holds no more than that of one trace.
  static constexpr std::size_t MAX_EVENTS = ReportEvent::MAX / 2;

  struct Side {
    const Report& report;
    const TraceFacts& facts;
    std::string title;
  };

  // `difference` is what `diff --json` answers.
  ReportOfTwo(Side a, Side b, Json difference)
      : a_(std::move(a)), b_(std::move(b)), difference_(std::move(difference)) {}

  void write(ByteStream& out) const;

 private:
  Side a_, b_;
  Json difference_;
};

}  // namespace cudabpf::analyze
