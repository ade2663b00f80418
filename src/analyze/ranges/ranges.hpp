// What was done in each range by which the program says what it does: how long it took, which calls
// were made in it, and how long GPUs worked for these.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "analyze/analysis.hpp"
#include "analyze/derived/shown_ranges.hpp"

namespace cudabpf::analyze {

struct RangeFigures {
  std::uint64_t count = 0;  // ranges that began here, of all threads
  std::uint64_t timed = 0;  // those whose duration is known
  std::uint64_t total = 0, longest = 0;
  std::uint64_t shortest = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t calls = 0, launches = 0;  // of the driver, also in ranges inside this one
  std::uint64_t gpu = 0;                  // ns of GPUs' work for these calls
  std::uint64_t waits = 0;                // ns in calls that wait for a GPU

  void add_range(const Line& line);
  void add_work(const RangeFigures& other);  // calls and GPUs alone
  void add(const RangeFigures& other);
};

class RangeTotals : public Analysis {
 public:
  struct Row {
    std::string name, domain;
    std::vector<std::string> path;  // the names around it, the outermost first
    std::size_t depth = 0;          // how many these are
    std::uint64_t names = 1;        // how many are together in this row
    RangeFigures figures;
    std::uint64_t gpu_here = 0;  // not in a range inside this one
    void add(const Row& other) { figures.add(other.figures); }
  };

  explicit RangeTotals(const Names& names) : names_(names) {}

  void line(const Line& line) override;
  void finish(const TraceFacts& facts) override;

  // Those in a range behind it, those that took longest first.
  const std::vector<Row>& rows() const { return rows_; }
  // The outermost of them; where one is around all others, those in it.
  std::vector<Row> outermost() const;
  const RangeFigures& in_none() const { return in_none_; }  // calls and work in no range
  std::uint64_t gpu() const { return gpu_; }                // ns of GPUs' work in all
  std::uint64_t marks() const { return marks_; }
  std::uint64_t unfinished() const { return unfinished_; }  // and those whose end was lost
  std::uint64_t unnamed() const { return unnamed_; }        // ranges of which the name is not known
  bool were_recorded() const { return were_recorded_; }     // or none was looked for

 private:
  struct Node {
    const RangePlace* place = nullptr;
    RangeFigures figures;  // without those of ranges inside it
  };
  struct Shown {
    ShownRanges::Row row;
    std::vector<std::size_t> inside;  // their indices, from 1
    std::uint64_t gpu_here = 0;
    RangeFigures figures;
  };

  void range(const Line& line);
  RangeFigures& figures_at(const RangePlace* place);
  std::vector<Shown> put_together() const;
  void add_rows(std::vector<Shown>& all, std::vector<std::size_t> which,
                std::vector<std::string>& path);

  const Names& names_;
  std::vector<Node> nodes_;  // by the number of their place
  std::vector<Row> rows_;
  RangeFigures in_none_;
  std::size_t path_text_ = 0;  // bytes, in all rows
  std::uint64_t gpu_ = 0, marks_ = 0, unfinished_ = 0, unnamed_ = 0;
  bool were_recorded_ = false;
};

Json ranges_json(const RangeTotals& ranges);
// The outermost, and of these a few in words.
Json outermost_ranges_json(const RangeTotals& ranges);
std::string outermost_ranges_text(const RangeTotals& ranges);
void add_ranges(Page& page, const RangeTotals& ranges, std::size_t at_most);

}  // namespace cudabpf::analyze
