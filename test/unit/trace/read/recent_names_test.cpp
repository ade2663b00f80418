#include "trace/read/recent_names.hpp"

#include <catch2/catch_test_macros.hpp>

#include <string>
#include <vector>

namespace cudabpf::analyze {

TEST_CASE("As many names as programs have are found again, whatever they hash to") {
  constexpr std::size_t COUNT = 500, MAX_MISSING = 5;
  Names names;
  RecentNames recent;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < COUNT; i++)
    texts.push_back("void at::native::kernel_" + std::to_string(i * i) + "<float>(long)");
  for (const std::string& text : texts) recent.add(text, names.add(text));
  std::size_t missing = 0;
  for (const std::string& text : texts) {
    Name found = recent.find(text, names);
    CHECK((!found || names.text(found) == text));
    missing += !found;
  }
  CHECK(missing <= MAX_MISSING);
  CHECK_FALSE(recent.find("void at::native::kernel_2<float>(long)", names));
  CHECK_FALSE(recent.find("", names));
}

}  // namespace cudabpf::analyze
