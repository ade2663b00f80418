// Which files are libcuda, which of their functions are probed, and how a file that a process names
// is opened.
#include "collect/library_functions.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <catch2/catch_test_macros.hpp>
#include <ctime>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>

#include "collect/libraries.hpp"
#include "support/temporary_folder.hpp"

using namespace cudabpf;
namespace fs = std::filesystem;

namespace {

constexpr const Api& CUDA = api(ApiId::cuda);

elf::Contents library_of(std::vector<std::string> names, std::string soname = "libcuda.so.1") {
  elf::Contents contents;
  contents.soname = std::move(soname);
  for (std::uint64_t offset = 0x1000; auto& name : names)
    contents.functions.push_back({.name = std::move(name), .offset = offset += 16});
  return contents;
}

}  // namespace

TEST_CASE("A file that is found has to say itself that it is a libcuda") {
  auto why = [](const elf::Contents& contents, bool named = false) {
    return why_refused(CUDA, contents, named);
  };
  CHECK(why(library_of({"cuInit", "cuMemAlloc_v2"})).empty());
  CHECK(why(library_of({"cuInit"}, "libcuda.so")).empty());
  CHECK(why(library_of({})) == "it exports no function whose name begins with cu");
  CHECK(why(library_of({"cuMemAlloc_v2"})).find("does not export cuInit") != std::string::npos);
  CHECK(why(library_of({"cuInit"}, "libcurl.so.4")).find("SONAME") != std::string::npos);
  CHECK(why(library_of({"cuInit"}, "")).find("SONAME") != std::string::npos);
  CHECK(why(library_of({"curl_easy_init", "cups_do"})).find("cuInit") != std::string::npos);
  // A library that the user names may have another SONAME.
  CHECK(why(library_of({"cuInit"}, "libmine.so"), true).empty());
  CHECK(why(library_of({"cuMemAlloc_v2"}, ""), true).empty());
  CHECK(why(library_of({"curl_easy_init"}), true) == "it exports no known function of libcuda");
}

TEST_CASE("Libraries are known by their files' names") {
  for (const char* name : {"libcuda.so", "libcuda.so.1", "/usr/lib/libcuda.so.580.159.04"})
    CHECK(api_of_file(name) == &CUDA);
  for (const char* name : {"libcudart.so", "libcuda.so1", "libcuda", "libcuda.so/x", "", "/"})
    CHECK_FALSE(api_of_file(name));
  CHECK(CUDA.library() == "libcuda");
  CHECK(CUDA.layer == 0);
  for (const Function& function : cuda_functions()) {
    CAPTURE(function.symbol);
    CHECK(belongs_to(api(function.api), function.symbol));
  }
}

TEST_CASE("No other function whose name begins with cu is probed") {
  FunctionNumbers numbers;
  Library library;
  auto probes = plan_probes(
      CUDA, library_of({"cuInit", "curl_easy_init", "cudaMalloc", "cuFutureThing", "cudbgMain"}),
      false, {.profile = Profile::full, .only = {}, .exclude = {}}, numbers, library);
  CHECK(library.error.empty());
  std::set<std::string_view> names;
  for (const PlannedProbe& probe : probes)
    names.insert(numbers.find(static_cast<std::uint16_t>(probe.plan.function))->symbol);
  CHECK(names == std::set<std::string_view>{"cuInit", "cuFutureThing", "cudbgMain"});
  CHECK(library.unknown == 1);
  CHECK(library.left_out == 0);
}

TEST_CASE("Calls are counted rather than recorded where that is enough, if it is wanted") {
  auto planned = [](FunctionFilter filter) {
    FunctionNumbers numbers;
    Library library;
    std::map<std::string, PlannedProbe> by_symbol;
    auto contents = library_of({"cuInit", "cuLaunchKernel", "cuMemAlloc_v2", "cuFutureThing"});
    for (const PlannedProbe& probe : plan_probes(CUDA, contents, false, filter, numbers, library))
      by_symbol.emplace(numbers.find(static_cast<std::uint16_t>(probe.plan.function))->symbol,
                        probe);
    CHECK(library.functions == by_symbol.size());
    CHECK(library.skipped == 0);
    return by_symbol;
  };
  // All ends are seen, whatever the profile says of those that are recorded.
  auto probes = planned(
      {.profile = Profile::light, .only = {"*"}, .exclude = {}, .returns = false, .tally = true});
  REQUIRE(probes.size() == 4);
  for (const char* symbol : {"cuInit", "cuLaunchKernel"}) {
    CHECK(probes.at(symbol).tallied);
    CHECK_FALSE(probes.at(symbol).plan.entry_only);
  }
  for (const char* symbol : {"cuMemAlloc_v2", "cuFutureThing"}) {
    CHECK_FALSE(probes.at(symbol).tallied);
    CHECK(probes.at(symbol).plan.entry_only);
  }
  for (const auto& [symbol, probe] : planned({.profile = Profile::full, .only = {}, .exclude = {}}))
    CHECK_FALSE(probe.tallied);
}

TEST_CASE("Launches can be recorded where other calls are only counted") {
  FunctionFilter filter;
  filter.tally = filter.single_launches = true;
  for (const char* symbol : {"cuLaunchKernel", "cuLaunchKernelEx", "cuGraphLaunch"})
    CHECK(filter.records(*find_function(symbol)) == Recorded::whole);
  for (const char* symbol : {"cuStreamSynchronize", "cuMemcpyHtoD_v2"})
    CHECK(filter.records(*find_function(symbol)) == Recorded::tallied);
  filter.single_launches = false;
  CHECK(filter.records(*find_function("cuLaunchKernel")) == Recorded::tallied);
}

TEST_CASE("Once a process captures, what its graphs run is recorded, and joins captures") {
  FunctionFilter filter;
  filter.tally = filter.captured_collectives = true;
  FunctionNumbers numbers;
  Library library;
  const std::set<std::string_view> followed{"cuGraphLaunch", "cuEventRecord", "cuStreamWaitEvent"};
  auto contents = library_of({"cuInit", "cuLaunchKernel", "cuGraphLaunch", "cuEventRecord",
                              "cuStreamWaitEvent", "cuStreamBeginCapture_v2", "cuEventQuery"});
  for (const PlannedProbe& probe : plan_probes(CUDA, contents, false, filter, numbers, library)) {
    const Function& function = *numbers.find(static_cast<std::uint16_t>(probe.plan.function));
    CAPTURE(function.symbol);
    bool begins = function.symbol == "cuStreamBeginCapture_v2";
    CHECK(probe.plan.begins_capture == begins);
    CHECK(is_plain(probe) == !begins);
    CHECK(probe.tallied == !begins);
    CHECK(probe.plan.until_capture == followed.contains(function.symbol));
    CHECK_FALSE(probe.plan.entry_only);
  }
}

TEST_CASE("However many functions a library has, none gets another one's name") {
  FunctionFilter all{.profile = Profile::full, .only = {}, .exclude = {}};
  FunctionNumbers numbers;
  std::vector<std::string> names{"cuInit", "cuMemAlloc_v2"};
  for (int i = 0; i < 66'000; i++) names.push_back("cuA" + std::to_string(i));
  Library library;
  auto probes = plan_probes(CUDA, library_of(names), false, all, numbers, library);
  CHECK(library.unknown == 1024);
  CHECK(library.left_out == 66'000 - 1024);
  CHECK(probes.size() == 1026);
  std::set<std::uint64_t> ids;
  for (const PlannedProbe& probe : probes) ids.insert(probe.plan.function);
  CHECK(ids.size() == probes.size());
  CHECK(ids.contains(numbers.number(ApiId::cuda, "cuInit")->id));

  // Also over all libraries together: what has no number is left out.
  std::size_t unknown = 1024;
  std::uint32_t left_out = 0;
  std::vector<std::clock_t> spent;  // by this process, in each round
  for (int n = 0; n < 80; n++) {
    for (std::size_t i = 2; i < names.size(); i++)
      names[i] = "cuB" + std::to_string(n) + "x" + std::to_string(i);
    names.resize(1026);
    Library more;
    std::clock_t begin = std::clock();
    auto planned = plan_probes(CUDA, library_of(names), false, all, numbers, more);
    spent.push_back(std::clock() - begin);
    unknown += more.unknown;
    left_out += more.left_out;
    REQUIRE(planned.size() == 2 + more.unknown);
  }
  CHECK(unknown == 65'536 - cuda_functions().size());
  CHECK(left_out == 1024 * 81 - unknown);
  CHECK_FALSE(numbers.number(ApiId::cuda, "cuOneMore"));
  CHECK(numbers.number(ApiId::cuda, "cuA1")->function->symbol == "cuA1");
  CHECK(numbers.find(65'535)->symbol.starts_with("cuB"));
  // A name is not searched for among all: what comes when 60,000 are known takes about as long as
  // what came when 5,000 were.
  auto round = spent.begin();
  auto early = std::accumulate(round, round + 8, std::clock_t{});
  auto late = std::accumulate(round + 55, round + 63, std::clock_t{});
  CHECK(late < 4 * early + CLOCKS_PER_SEC / 10);
}

TEST_CASE("What a process names is opened within its own root, and only if it is a file") {
  TemporaryFolder folder;
  fs::path outside = folder.write("outside", "not the process's");
  fs::path root = folder.path() / "42/root";
  fs::create_directories(root / "lib");
  auto mapped = [&](const char* name, const fs::path& file) {
    struct stat status {};
    stat(file.c_str(), &status);
    MappedLibrary library{.pid = 42, .path = name, .api = &CUDA};
    library.device = status.st_dev;
    library.inode = status.st_ino;
    return library;
  };
  Procfs procfs(folder.path());
  fs::create_symlink(outside, root / "lib/libcuda.so.1");
  CHECK_FALSE(open_mapped(procfs, mapped("/lib/libcuda.so.1", outside)));
  fs::create_symlink("../../../outside", root / "lib/libcuda.so.2");
  CHECK_FALSE(open_mapped(procfs, mapped("/lib/libcuda.so.2", outside)));
  fs::path inside = folder.write("42/root/lib/inside", "x");
  fs::create_symlink("/lib/inside", root / "lib/libcuda.so.3");
  auto found = open_mapped(procfs, mapped("/lib/libcuda.so.3", inside));
  REQUIRE(found);
  CHECK(found->id.same_file(*FileId::of(found->fd.get())));
  CHECK_FALSE(open_mapped(procfs, mapped("/lib/inside", outside)));  // another file by now
  // Opening it would wait for a writer.
  REQUIRE(mkfifo((root / "lib/libcuda.so.4").c_str(), 0600) == 0);
  CHECK_FALSE(open_mapped(procfs, mapped("/lib/libcuda.so.4", root / "lib/libcuda.so.4")));
  CHECK_FALSE(open_named("/dev/zero"));
}
