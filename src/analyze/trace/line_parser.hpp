// Parses the text of a line into its fields.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "analyze/trace/line.hpp"

namespace cudabpf::analyze {

class LineParser {
 public:
  // After a line's end, this much memory must be readable; it begins with a newline.
  static constexpr std::size_t PADDING = 64;
  // For all names but kernels': answers have copies of them, up to a hundred thousand.
  static constexpr std::size_t LONGEST_NAME = 1024;

  LineParser();
  ~LineParser();
  LineParser(LineParser&&) noexcept;
  LineParser& operator=(LineParser&&) noexcept;

  // False: it is not a JSON object, or some fields do not have the types they should.
  bool parse(std::string_view text, Line& line);

  Names& names() { return names_; }
  const Names& names() const { return names_; }

 private:
  struct Json;
  struct Words {  // names that tell a line's kind
    Name trace, end, process, library, lost, error, kernel, interrupt, content, gpu, sample, copy,
        set, graph, times;
  };

  bool field(std::string_view key, void* value, Line& line);
  bool name(void* value, std::size_t longest, Name& to);
  LineKind kind_of(const Line& line) const;
  static void drop_others_fields(Line& line);

  Names names_;
  Words words_;
  std::array<Name, 1024> recent_{};  // by a hash of their raw text
  std::unique_ptr<Json> json_;
};

}  // namespace cudabpf::analyze
