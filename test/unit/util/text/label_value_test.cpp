#include "util/text/label_value.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace cudabpf;

TEST_CASE("A label's value is UTF-8 and short") {
  CHECK(label_value("gr\xc3\xbc\xc3\x9f") == "gr\xc3\xbc\xc3\x9f");
  CHECK(label_value("a\xff"
                    "b") ==
        "a\xef\xbf\xbd"
        "b");
  CHECK(label_value(std::string(4096, 'x')).size() == MAX_LABEL_BYTES);
  // No character is cut in two.
  CHECK(label_value(std::string(MAX_LABEL_BYTES - 1, 'x') + "\xc3\xbc") ==
        std::string(MAX_LABEL_BYTES - 1, 'x'));
}
