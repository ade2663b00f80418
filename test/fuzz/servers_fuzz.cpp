// Whoever answers cudabpf's own requests, a receiver of pushes or an inference engine, may send
// anything: no answer may make it crash, take memory without bounds, or show what nobody said.
//
// The input: a byte that says what to do with the rest. 0: an answer of HTTP, whole and byte by
// byte, which must come to the same; 1: an engine's page of metrics; 2: a receiver's answer to a
// push.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "engines/engine_figures.hpp"
#include "push/verdict.hpp"
#include "util/http/answer_reader.hpp"
#include "util/text/label_value.hpp"

using namespace cudabpf;

namespace {

constexpr std::size_t MAX_BODY = 4096;

void require(bool holds) {
  if (!holds) abort();
}

// The body, or why there is none.
std::string read(std::string_view bytes, std::size_t piece) {
  http::AnswerReader reader(MAX_BODY);
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size())))
    if (auto taken = reader.take(bytes.substr(0, piece)); !taken)
      return "!" + taken.error().message;
  if (auto closed = reader.close(); !closed) return "!" + closed.error().message;
  require(reader.answer().body.size() <= MAX_BODY);
  return std::to_string(reader.answer().status) + reader.answer().body;
}

void check_answer(std::string_view bytes) {
  std::string whole = read(bytes, bytes.size() + 1);
  // Too much at once is refused before any of it is read.
  if (whole != "!the answer is too long") require(read(bytes, 1) == whole);
}

void check_page(std::string_view bytes) {
  engines::Figures figures = engines::figures_in(bytes);
  require(figures.samples.size() <= engines::Figures::MAX_SAMPLES);
  std::set<std::tuple<engines::Family, std::string_view, std::string>> seen;
  for (const engines::Sample& sample : figures.samples) {
    require(std::isfinite(sample.value) && sample.value >= 0);
    std::string labels;
    for (const std::string& label : sample.labels) {
      require(label == label_value(label));
      labels += std::to_string(label.size()) + label;
    }
    require(seen.emplace(sample.family, sample.engine, labels).second);
  }
}

void check_verdict(std::string_view bytes) {
  http::Answer answer;
  answer.status = 200;
  answer.content_type = "application/x-protobuf";
  answer.body = bytes;
  push::Verdict verdict = push::verdict_in(answer);
  require(verdict.has_arrived() && verdict.why.size() < 300);
  require((verdict.outcome == push::Outcome::partly) == (verdict.rejected > 0));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      check_answer(rest);
      break;
    case 1:
      check_page(rest);
      break;
    default:
      check_verdict(rest);
  }
  return 0;
}
