// A trace as a table of comma-separated values (RFC 4180): a row for each call, operation on the
// driver, interrupt, error of a GPU and loss.
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
  void name(Name name) { text(names_.text(name)); }
  void text(std::string_view text);
  template <typename Integer>
  void number(const Line& line, Field field, Integer value);
  void address(const Line& line, Field field, std::uint64_t value);
  void dimensions(const Line& line, Field field, const std::array<std::uint32_t, 3>& sizes);
  void next() { out_.text(","); }

  const Names& names_;
  ByteStream& out_;
};

}  // namespace cudabpf::analyze
