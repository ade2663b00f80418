#include "analyze/energy/sampled_gpus.hpp"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include "support/analyzing.hpp"

using namespace cudabpf;
using namespace cudabpf::analyze;

TEST_CASE("How busy the GPUs were in all is shown beside what one process left idle") {
  LineParser parser;
  SampledGpus gpus;
  Page nothing({});
  gpus.add_to(nothing);
  CHECK(nothing.take().empty());
  CHECK(gpus.json().empty());
  for (const char* more :
       {R"("device":0,"window_ms":100,"sm_active":40)",
        R"("device":0,"window_ms":300,"sm_active":80)", R"("device":1,"power_w":3)"})
    each_line(parser, std::string(R"({"type":"gpu","op":"sample","ts":5000000000,)") + more + "}",
              [&](const Line& line) { gpus.line(line); });
  CHECK(gpus.json() == Json::parse(R"([{"device":0,"sm_active":70.0}])"));
  Page page({});
  gpus.add_to(page);
  CHECK(page.take().find("GPU 0: 70.0 %.") != std::string::npos);
}
