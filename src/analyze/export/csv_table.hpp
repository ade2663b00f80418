// A trace as a table of comma-separated values (RFC 4180): a row for each call, driver operation,
// interrupt, piece of a GPU's work, GPU error, sample of a GPU and loss.
#pragma once

#include <string_view>

#include "analyze/analysis.hpp"
#include "analyze/export/byte_stream.hpp"

namespace cudabpf::analyze {

class CsvTable : public Analysis {
 public:
  CsvTable(const Names& names, ByteStream& out);

  void line(const Line& line) override;

 private:
  void row(const Line& line);
  void name(Name name) { text(names_.text(name)); }
  void text(std::string_view text);
  // By the ways in which line_fields.def says that numbers are read.
  template <typename Integer>
  void whole(Integer value) {
    out_.number(value);
  }
  void nanoseconds(std::uint64_t value) { out_.number(value); }
  void microseconds(std::uint64_t value) { out_.number(value); }
  void address(std::uint64_t value);
  void dimensions(const Dimensions& sizes);
  void next() { out_.text(","); }

  const Names& names_;
  ByteStream& out_;
};

}  // namespace cudabpf::analyze
