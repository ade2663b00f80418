// What a file says of communicators before the calls that name them.
#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/temporary_folder.hpp"
#include "support/trace_reading.hpp"
#include "support/writing.hpp"

using namespace cudabpf;

namespace {

using Lines = std::vector<nlohmann::json>;

// The numbers of the communicators that are described, in the order of their lines.
std::vector<int> described(const Lines& lines) {
  std::vector<int> numbers;
  for (const auto& line : lines)
    if (line.value("op", "") == "comm") numbers.push_back(line["communicator"]);
  return numbers;
}

// Calls that make three communicators, and then name the second this many times.
std::vector<Lines> files_of(std::uint64_t collectives, std::uint64_t rotate_size) {
  TemporaryFolder folder;
  JsonlOptions options;
  options.output.path = folder.path() / "t.jsonl";
  options.rotate_size = rotate_size;
  auto sink = JsonlSink::open(options);
  REQUIRE(sink);
  (*sink)->begin(session_now());
  std::vector<Communicator> ranks(3);
  for (std::size_t rank = 0; rank < ranks.size(); rank++) ranks[rank].number = rank + 1;
  std::vector<const Communicator*> others{&ranks[1], &ranks[2]};
  SampleCall made("ncclCommInitAll", {0x7000, 3, 0});
  made.communicator = ranks.data();
  made.also_made = others;
  (*sink)->call(made);
  SampleCall reduce("ncclAllReduce", {0x1000, 0x2000, 1, 7, 0, 0x5e00, 0});
  reduce.communicator = &ranks[1];
  for (std::uint64_t i = 0; i < collectives; i++) (*sink)->call(reduce);
  ranks[1].version++;
  (*sink)->call(reduce);
  (*sink)->end({});
  std::vector<Lines> files;
  for (unsigned part = 1; part <= (*sink)->written().files; part++) {
    std::string path = options.output.path;
    if (rotate_size) path = rotated_path(path, part);
    files.push_back(trace_lines(file_text(path)));
  }
  return files;
}

}  // namespace

TEST_CASE(
    "All communicators that one call makes are described before it, and anew if they change") {
  auto files = files_of(3, 0);
  REQUIRE(files.size() == 1);
  CHECK(described(files[0]) == std::vector<int>{1, 2, 3, 2});
  CHECK(files[0][4]["name"] == "ncclCommInitAll");
  CHECK(files[0][4]["communicator"] == 1);
}

TEST_CASE("Each file describes the communicators that its calls name, once") {
  auto files = files_of(200, 16 << 10);
  REQUIRE(files.size() > 2);
  CHECK(described(files[0]) == std::vector<int>{1, 2, 3});
  for (std::size_t i = 1; i + 1 < files.size(); i++) {
    CHECK(described(files[i]) == std::vector<int>{2});
    CHECK(files[i][1]["op"] == "comm");
  }
}
