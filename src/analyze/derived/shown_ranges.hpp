// Ranges as answers show them: names in a range that differ only in digits, such as steps, are one
// where there are many. Lines of Python stay apart.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/derived/range_places.hpp"

namespace cudabpf::analyze {

class ShownRanges {
 public:
  // More than this many names that differ only in digits are one.
  static constexpr std::size_t MAX_ALIKE = 16;

  struct Row {
    std::string name, domain;
    std::size_t around = 0;   // its index, from 1; 0: none
    std::uint64_t names = 0;  // how many are together in this row
  };

  explicit ShownRanges(const Names& names) : names_(names) {}

  // That it is shown, and those around it. Null: in no range, which goes without saying.
  void add(const RangePlace* place);
  // After all were added: which names are together depends on how many there are.
  void settle();

  const std::vector<Row>& rows() const { return rows_; }  // what is around a row comes before it
  std::size_t row_of(const RangePlace& place) const { return shown_as_[place.number] - 1; }
  // "request 0 / decode / token #"; null: "(no range)".
  std::string text(const RangePlace* place) const;

 private:
  const Names& names_;
  std::vector<const RangePlace*> places_;  // by number; null: not shown
  std::vector<std::size_t> shown_as_;      // rows by the place's number, from 1
  std::vector<Row> rows_;
};

}  // namespace cudabpf::analyze
