#include "engines/engine_figures.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

using namespace cudabpf::engines;

namespace {

// Its engine, family and labels, as a page of ours would have them.
std::string name_of(const Sample& sample) {
  std::string name = std::string(sample.engine) + " " + std::string(info(sample.family).name);
  for (std::size_t i = 0; i < LABELS.size(); i++)
    if (!sample.labels[i].empty()) name += " " + std::string(LABELS[i]) + "=" + sample.labels[i];
  return name;
}

using Values = std::map<std::string, double>;

Values values_in(const Figures& figures) {
  Values values;
  for (const Sample& sample : figures.samples) {
    INFO(name_of(sample));
    CHECK(values.emplace(name_of(sample), sample.value).second);
  }
  return values;
}

std::string recorded(const std::string& name) {
  std::ifstream file(std::string(TEST_DIR) + "/metrics/engines/" + name + ".txt");
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

Values values_of(const std::string& name) {
  Figures figures = figures_in(recorded(name));
  CHECK(figures.left_out == 0);
  return values_in(figures);
}

std::size_t left_out(const std::string& page) {
  Figures figures = figures_in(page);
  CHECK(figures.samples.empty());
  return figures.left_out;
}

}  // namespace

TEST_CASE("A page of vLLM") {
  const std::string LLAMA = " model=meta-llama/Llama-3.1-8B-Instruct replica=";
  CHECK(values_of("vllm") ==
        Values{{"vllm requests_running" + LLAMA + "0", 3},
               {"vllm requests_running" + LLAMA + "1", 5},
               {"vllm requests_waiting" + LLAMA + "0", 0},
               {"vllm requests_waiting" + LLAMA + "1", 7},
               {"vllm kv_cache_used_ratio" + LLAMA + "0", 0.25},
               {"vllm kv_cache_used_ratio" + LLAMA + "1", 0.875},
               {"vllm preemptions_total" + LLAMA + "0", 0},
               {"vllm preemptions_total" + LLAMA + "1", 2},
               {"vllm prompt_tokens_total" + LLAMA + "0", 8128902},
               {"vllm prompt_tokens_total" + LLAMA + "1", 1024},
               {"vllm generated_tokens_total" + LLAMA + "0", 557572},
               {"vllm generated_tokens_total" + LLAMA + "1", 512},
               {"vllm finished_requests_total" + LLAMA + "0 reason=stop", 40},
               {"vllm finished_requests_total" + LLAMA + "0 reason=length", 2},
               {"vllm finished_requests_total" + LLAMA + "0 reason=abort", 1},
               {"vllm first_token_seconds_total" + LLAMA + "0", 5.375},
               {"vllm first_tokens_total" + LLAMA + "0", 43},
               {"vllm token_gap_seconds_total" + LLAMA + "0", 11150.5},  // and not twice
               {"vllm token_gaps_total" + LLAMA + "0", 557529},
               {"vllm request_seconds_total" + LLAMA + "0", 258},
               {"vllm timed_requests_total" + LLAMA + "0", 43}});
}

TEST_CASE("A page of vLLM with older names") {
  CHECK(values_of("vllm-older") == Values{{"vllm requests_running model=mistral", 2},
                                          {"vllm requests_waiting model=mistral", 1},
                                          {"vllm kv_cache_used_ratio model=mistral", 0.5},
                                          {"vllm prompt_tokens_total model=mistral", 300},
                                          {"vllm generated_tokens_total model=mistral", 70},
                                          {"vllm token_gap_seconds_total model=mistral", 1.38},
                                          {"vllm token_gaps_total model=mistral", 69}});
}

// Ranks that show the same requests are not added up; streams and others are.
TEST_CASE("A page of SGLang") {
  const std::string LLAMA = " model=meta-llama/Llama-3.1-8B-Instruct";
  const std::string FIRST = LLAMA + " pp_rank=0 tp_rank=0", SECOND = LLAMA + " pp_rank=0 tp_rank=1";
  CHECK(values_of("sglang") == Values{{"sglang requests_running" + FIRST, 162},
                                      {"sglang requests_running" + SECOND, 162},
                                      {"sglang requests_waiting" + FIRST, 2826},
                                      {"sglang requests_waiting" + SECOND, 2826},
                                      {"sglang kv_cache_used_ratio" + FIRST, 0.28},
                                      {"sglang kv_cache_used_ratio" + SECOND, 0.28},
                                      {"sglang prompt_tokens_total" + LLAMA, 8129000},
                                      {"sglang generated_tokens_total" + LLAMA, 7557600},
                                      {"sglang finished_requests_total" + LLAMA, 5007},
                                      {"sglang first_token_seconds_total" + LLAMA, 2503.5},
                                      {"sglang first_tokens_total" + LLAMA, 5007},
                                      {"sglang token_gap_seconds_total" + LLAMA, 151051.86},
                                      {"sglang token_gaps_total" + LLAMA, 7552593},
                                      {"sglang request_seconds_total" + LLAMA, 50070},
                                      {"sglang timed_requests_total" + LLAMA, 5007}});
}

TEST_CASE("What an engine's page may look like") {
  CHECK(values_in(figures_in("vllm:num_requests_running 3")) ==
        Values{{"vllm requests_running", 3}});
  CHECK(values_in(figures_in("vllm:num_requests_running{} 3 1764300000000\r\n\n# x\n")) ==
        Values{{"vllm requests_running", 3}});
  CHECK(
      values_in(figures_in("vllm:num_requests_running { model_name = \"a\" , x=\"}\", } 1e2\n")) ==
      Values{{"vllm requests_running model=a", 100}});
  CHECK(values_in(figures_in("vllm:num_requests_running{model_name=\"a\\\\b\\\"c\\nd\\x\"} 1\n")) ==
        Values{{"vllm requests_running model=a\\b\"c\ndx", 1}});
  // Whatever a name has, a label of ours has not.
  Figures long_name =
      figures_in("vllm:num_requests_running{model_name=\"" + std::string(5000, 'x') +
                 "\"} 1\nvllm:num_requests_waiting{model_name=\"\xff\"} 1\n");
  REQUIRE(long_name.samples.size() == 2);
  CHECK(long_name.samples[0].labels[0] == std::string(128, 'x'));
  CHECK(long_name.samples[1].labels[0] == "\xef\xbf\xbd");
  // Models with the same 128 bytes are one.
  std::string twice;
  for (const char* end : {"1", "2"})
    twice += "vllm:prompt_tokens_total{model_name=\"" + std::string(128, 'x') + end + "\"} 5\n";
  REQUIRE(figures_in(twice).samples.size() == 1);
  CHECK(figures_in(twice).samples[0].value == 10);
}

TEST_CASE("Values that no figure can have, and lines that are none, are left out") {
  for (const char* wrong :
       {"vllm:prompt_tokens_total NaN", "vllm:prompt_tokens_total +Inf",
        "vllm:prompt_tokens_total -1", "vllm:prompt_tokens_total", "vllm:prompt_tokens_total ",
        "vllm:prompt_tokens_total 1x", "vllm:prompt_tokens_total 1e999",
        "vllm:prompt_tokens_total inf", "vllm:prompt_tokens_total 0x10",
        "vllm:prompt_tokens_total{ 1", "vllm:prompt_tokens_total{a} 1",
        "vllm:prompt_tokens_total{a=b} 1", "vllm:prompt_tokens_total{a=\"b} 1",
        "vllm:prompt_tokens_total{a=\"b\"", "vllm:prompt_tokens_total{a=\"b\\",
        "vllm:prompt_tokens_total{a=\"b\"c=\"d\"} 1", "vllm:prompt_tokens_total{=\"b\"} 1",
        "vllm:prompt_tokens_total{,} 1", "vllm:prompt_tokens_total{a=\"b\"}"}) {
    INFO(wrong);
    CHECK(left_out(wrong) == 1);
  }
  for (const char* foreign : {"", "\n\n", "# vllm:prompt_tokens_total 1", "vllm:prompt_tokens 1",
                              "vllm:prompt_tokens_total_x 1", " vllm:prompt_tokens_total 1",
                              "<html>", "evil:prompt_tokens_total 1"}) {
    INFO(foreign);
    CHECK(left_out(foreign) == 0);
  }
  // What is beside them is read.
  Figures figures = figures_in("vllm:prompt_tokens_total NaN\nvllm:prompt_tokens_total 2\n");
  CHECK(values_in(figures) == Values{{"vllm prompt_tokens_total", 2}});
  CHECK(figures.left_out == 1);
  // A sum that is no number any more.
  CHECK(left_out("vllm:prompt_tokens_total 1e308\nvllm:prompt_tokens_total 1e308\n") == 1);
}

TEST_CASE("Samples of an engine have a limit") {
  std::string page;
  for (std::size_t i = 0; i < Figures::MAX_SAMPLES + 100; i++)
    page += "vllm:prompt_tokens_total{model_name=\"" + std::to_string(i) + "\"} 1\n";
  page += page;  // those that have a place keep it
  Figures figures = figures_in(page);
  CHECK(figures.samples.size() == Figures::MAX_SAMPLES);
  CHECK(figures.samples[0].value == 2);
  CHECK(figures.left_out == 200);
}
