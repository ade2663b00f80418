// Shows an analysis a trace that is written in the test itself.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <initializer_list>
#include <memory>
#include <string>

#include "analyze/analysis.hpp"
#include "temporary_folder.hpp"

class TraceText {
 public:
  // `lines` come between header and end; `header_fields` are more fields of the header: ",\"a\":1".
  explicit TraceText(const std::string& lines, const std::string& header_fields = "",
                     const std::string& end = R"({"type":"end","ts":9000000,"duration_ns":9000000})"
                                              "\n") {
    std::string header = R"({"type":"trace","format":"cudabpf-trace","format_version":"2.0")" +
                         header_fields + "}\n";
    auto reader =
        cudabpf::analyze::TraceReader::open({folder_.write("t.jsonl", header + lines + end)});
    if (!reader) FAIL(reader.error().message);
    reader_ = std::move(*reader);
  }

  cudabpf::analyze::Names& names() { return reader_->names(); }
  const cudabpf::analyze::TraceFacts& facts() const { return reader_->facts(); }

  void show(cudabpf::analyze::Analysis& analysis, cudabpf::analyze::Part part = {}) {
    if (!part.is_whole()) reader_->want(part, {});
    show({&analysis});
  }
  void show(std::initializer_list<cudabpf::analyze::Analysis*> analyses) {
    auto shown = cudabpf::analyze::analyze(*reader_, analyses);
    if (!shown) FAIL(shown.error().message);
  }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<cudabpf::analyze::TraceReader> reader_;
};

// An answer as it looks on a terminal of that width.
template <typename Add>
std::string page_text(Add add, unsigned width = 120) {
  cudabpf::Page page({.width = width}, 160);
  add(page);
  return page.take();
}
