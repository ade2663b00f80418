// Names as they are found: those of the C++ libraries that this machine has, and those of the
// recorded traces.
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "support/temporary_folder.hpp"
#include "support/trace_reading.hpp"
#include "util/demangle/itanium.hpp"
#include "util/elf/elf.hpp"

using namespace cudabpf;

namespace {

namespace fs = std::filesystem;

// The names of some functions, since reading all takes long on a machine with many libraries:
// before a release (scripts/test --all) all of them are.
constexpr std::size_t ONE_OF = 8;

std::vector<std::string> names_of_libraries() {
  std::set<fs::path> libraries;
  for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib/llvm-14/lib"}) {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder, none))
      if (entry.path().filename().string().find(".so") != std::string::npos)
        libraries.insert(fs::weakly_canonical(entry.path(), none));
  }
  std::vector<std::string> names;
  for (const fs::path& path : libraries) {
    Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    Result<elf::Image> library = elf::Image::open(fd);
    if (!library) continue;
    for (elf::Function& function : library->functions("_Z"))
      names.push_back(std::move(function.name));
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::vector<std::string> wanted;
  const char* thorough = std::getenv("CUDABPF_THOROUGH");
  bool all = thorough && *thorough;
  std::size_t at = 0;
  for (const std::string& name : names)
    if (all || at++ % ONE_OF == 0) wanted.push_back(name);
  return wanted;
}

void replace(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos;)
    text.replace(at, what.size(), by);
}

// "A<B<C> >" and "A<B<C>>" are the same. c++filt leaves the comma of an empty pack.
std::string alike(std::string text) {
  replace(text, "> >", ">>");
  replace(text, "<, ", "<");
  replace(text, "(, ", "(");
  replace(text, ", , ", ", ");
  return text;
}

// What c++filt 2.40 gets wrong.
bool is_wrong_in_cxxfilt(std::string_view name) {
  constexpr std::array<std::string_view, 3> PARTS = {
      // The constructor of an unnamed type has the name of the class around it.
      "Ut_C",
      "Ut_D",
      // In an argument that is local to another template, T_ is that one's; what follows it is
      // known by that argument, too: the parameter of this constructor,
      "18_Prepare_executionC4",
  };
  // and of this function.
  return name.starts_with("_ZN3fmt2v96detail15do_parse_arg_idIcRZ") ||
         std::any_of(PARTS.begin(), PARTS.end(),
                     [&](std::string_view part) { return name.find(part) != name.npos; });
}

}  // namespace

TEST_CASE("Functions of installed C++ libraries are named as c++filt names them") {
  if (!is_installed("c++filt")) SKIP("c++filt is not installed (package binutils)");
  std::vector<std::string> names = names_of_libraries();
  if (names.empty()) SKIP("no library of this machine exports a C++ function");
  TemporaryFolder folder;
  std::string text;
  for (const std::string& name : names) text += name + '\n';
  // -i: std::string is not spelled out.
  std::string filtered = output_of("c++filt -i <" + folder.write("names", text).string());
  std::size_t read = 0, unread = 0, begin = 0;
  std::string differing;
  for (const std::string& name : names) {
    std::size_t end = filtered.find('\n', begin);
    REQUIRE(end != filtered.npos);
    std::string expected = filtered.substr(begin, end - begin);
    begin = end + 1;
    auto full = itanium::demangle(name);
    // Thunks and other special names are left to the C++ library, as are expressions.
    if (!full) {
      unread += !name.starts_with("_ZT") && !name.starts_with("_ZG");
      continue;
    }
    read++;
    if (alike(*full) != alike(expected) && !is_wrong_in_cxxfilt(name))
      differing += name + "\n  " + *full + "\n  " + expected + "\n";
  }
  CHECK(differing == "");
  CHECK(read > 0);
  CHECK(unread * 50 <= read);
}

TEST_CASE("All kernels of the recorded traces have readable names") {
  std::string traces = TEST_DIR "/../traces";
  if (!is_installed("zstdcat")) SKIP("zstdcat is not installed (package zstd)");
  CHECK(output_of("zstdcat " + traces + "/*.zst | grep -c '\"kernel\":\"void '") != "0\n");
  CHECK(output_of("zstdcat " + traces + "/*.zst | grep -o '\"kernel\":\"_Z[^\"]*' | sort -u") ==
        "");
}
