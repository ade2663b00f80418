// A trace as one HTML file: the answers of the subcommands that read traces, all found in one
// reading, a timeline, and the page that draws them.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "analyze/analysis.hpp"
#include "analyze/export/byte_stream.hpp"

namespace cudabpf::analyze {

class Report : public Analysis {
 public:
  Report(Names& names, std::uint32_t pid, const Part& part, const Moments& moments);
  ~Report() override;

  void line(const Line& line) override;
  void outside(const Line& line) override;
  void finish(const TraceFacts& facts) override;

  // By the subcommands' names: what each answers with --json. Long lists are cut, and say so.
  Json answers() const;
  // `title` is what the page is called.
  void write(ByteStream& out, const TraceFacts& facts, const std::string& title) const;

 private:
  struct Analyses;
  std::unique_ptr<Analyses> all_;
  Moments moments_;
};

}  // namespace cudabpf::analyze
