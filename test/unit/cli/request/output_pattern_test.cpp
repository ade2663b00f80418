#include "cli/request/output_pattern.hpp"

#include <catch2/catch_test_macros.hpp>

#include "util/exit_codes.hpp"

using cudabpf::cli::output_path;
using cudabpf::cli::rank_in;
using cudabpf::cli::TracedProgram;

namespace {

const TracedProgram ALONE{"4242", "node7", ""};
const TracedProgram THIRD{"4242", "node7", "3"};
constexpr const char* THEN = "20261124_024326";

std::string path(const std::string& wanted, const TracedProgram& program = THIRD,
                 bool is_folder = false) {
  auto made = output_path(wanted, is_folder, program, THEN);
  return made ? *made : made.error().message;
}

}  // namespace

TEST_CASE("Each program's trace has a name of its own in a folder") {
  CHECK(path("/scratch/", ALONE) == "/scratch/trace_20261124_024326_node7_4242.jsonl");
  CHECK(path("/scratch/", THIRD) == "/scratch/trace_20261124_024326_node7_3_4242.jsonl");
  CHECK(path("there", ALONE, true) == "there/trace_20261124_024326_node7_4242.jsonl");
  CHECK(path("") == "traces/trace_20261124_024326_node7_3_4242.jsonl");
}

TEST_CASE("Placeholders are replaced by pid, host and rank, also in a folder's name") {
  CHECK(path("out/%h/rank%r-%p.jsonl.zst") == "out/node7/rank3-4242.jsonl.zst");
  CHECK(path("job%%/%p/") == "job%/4242/trace_20261124_024326_node7_3_4242.jsonl");
  CHECK(path("plain.jsonl") == "plain.jsonl");
}

TEST_CASE("A program without a rank is the first of one") {
  CHECK(path("rank%r.jsonl", ALONE) == "rank0.jsonl");
}

TEST_CASE("What a launcher calls a rank or a host leads to no other folder") {
  CHECK(path("%r.jsonl", {"1", "h", "../../etc/x"}) == ".._.._etc_x.jsonl");
  CHECK(path("%h.jsonl", {"1", "a/b", ""}) == "a_b.jsonl");
}

TEST_CASE("Unknown placeholders are reported, not written into a name") {
  for (const char* wrong : {"%x.jsonl", "trace%", "%P"}) {
    auto made = output_path(wrong, false, THIRD, THEN);
    REQUIRE(!made);
    CHECK(made.error().message.find(wrong) != std::string::npos);
    CHECK(made.error().exit_code == cudabpf::exit_code::USAGE);
  }
}

TEST_CASE("The rank is the one that the launcher has given") {
  CHECK(rank_in({"PATH=/bin", "RANK=5", "LOCAL_RANK=1"}) == "5");
  CHECK(rank_in({"OMPI_COMM_WORLD_RANK=2"}) == "2");
  CHECK(rank_in({"PMI_RANK=0"}) == "0");
  CHECK(rank_in({"SLURM_PROCID=7"}) == "7");
  // torchrun under srun: SLURM has started one torchrun a node, which has started several ranks.
  CHECK(rank_in({"SLURM_PROCID=1", "RANK=12"}) == "12");
  CHECK(rank_in({"LOCAL_RANK=1"}).empty());
}
