// Parses the text of a line into its fields.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "trace/end.hpp"
#include "trace/header.hpp"
#include "trace/read/line.hpp"
#include "trace/read/line_keys.hpp"
#include "trace/read/line_patterns.hpp"
#include "trace/read/recent_names.hpp"

namespace cudabpf::analyze {

class LineParser {
 public:
  // After a line's end, this much memory must be readable; it begins with a newline.
  static constexpr std::size_t PADDING = 64;
  // For all names but kernels': answers have copies of them, up to a hundred thousand.
  static constexpr std::size_t MAX_NAME = 1024;

  LineParser();
  ~LineParser();
  LineParser(const LineParser&) = delete;
  LineParser& operator=(const LineParser&) = delete;

  // False: it is not a JSON object, or some fields do not have the types they should.
  bool parse(std::string_view text, Line& line) {
    return scan(text, line, patterns_) || read_any(text, line);
  }
  // Takes a third of the time or less if the line is as cudabpf writes it, all its names have been
  // read before, and it is neither header nor end; else returns false, and the line must be parsed.
  // Both fill in the same. One thread may scan lines, with patterns of its own, while another
  // parses some.
  bool scan(std::string_view text, Line& line, LinePatterns& patterns) const;
  bool read_any(std::string_view text, Line& line);

  Names& names() { return names_; }
  const Names& names() const { return names_; }

 private:
  struct Json;
  struct Words {  // names that say a line's kind
    Name trace, end, process, library, lost, error, kernel, interrupt, content, gpu, sample, copy,
        set, graph, times, window, comm, range, name, stack, python;
  };

  bool finish(Line& line) const;
  bool read_ends_of_file(Line& line);
  bool field(Key key, void* value, Line& line);
  bool name(void* value, std::size_t longest, Name& to);
  bool word(void* value, Name& to);
  LineKind kind_of(const Line& line) const;
  static void drop_others_fields(Line& line);

  Names names_;
  Words words_;
  RecentNames recent_;
  LinePatterns patterns_;
  std::unique_ptr<Json> json_;
  std::optional<TraceHeader> header_;  // the one read last
  std::optional<TraceEnd> end_;
};

}  // namespace cudabpf::analyze
