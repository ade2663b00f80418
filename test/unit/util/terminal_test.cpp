#include "util/console/terminal.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <optional>
#include <string>

#include "pseudo_terminal.hpp"
#include "sink/status.hpp"
#include "util/system/fd.hpp"

using namespace cudabpf;

TEST_CASE("Numbers as people read them") {
  CHECK(with_commas(0) == "0");
  CHECK(with_commas(999) == "999");
  CHECK(with_commas(1000) == "1,000");
  CHECK(with_commas(1'204'331) == "1,204,331");
  CHECK(human_count(99'999'999) == "99,999,999");
  CHECK(human_count(100'000'000) == "100 M");
  CHECK(human_count(999'600'000) == "1.00 G");
  CHECK(human_count(12'345'678'901) == "12.3 G");
  CHECK(human_bytes(1023) == "1023 B");
  CHECK(human_bytes(1024) == "1.00 KiB");
  CHECK(human_bytes((1 << 20) - 1) == "1.00 MiB");
  CHECK(human_bytes(150 << 20) == "150 MiB");
  CHECK(human_bytes(~std::uint64_t{0}) == "16.0 EiB");
  CHECK(human_rate(0) == "0 B/s");
  CHECK(human_rate(999.4) == "999 B/s");
  CHECK(human_rate(999.6) == "1.00 kB/s");
  CHECK(human_rate(178.9e9) == "179 GB/s");
  CHECK(human_rate(1e300) == ">1000 PB/s");
  CHECK(human_time(0) == "0 ns");
  CHECK(human_time(999) == "999 ns");
  CHECK(human_time(1000) == "1.00 µs");
  CHECK(human_time(999'499) == "999 µs");
  CHECK(human_time(999'500) == "1.00 ms");
  CHECK(human_time(12'431'000'000) == "12.4 s");
  CHECK(human_time(999'499'999'999) == "999 s");
  CHECK(human_time(1'677'000'000'000) == "27:57 min");  // not "27:57" without a unit
  CHECK(human_time(3'599'999'999'999) == "59:59 min");
  CHECK(human_time(3'723'000'000'000) == "1:02:03 h");
  CHECK(human_time(359'999'000'000'000) == "99:59:59 h");
  CHECK(human_time(432'000'000'000'000) == "5.00 d");
  CHECK(clock_time(0) == "00:00");
  CHECK(clock_time(3'599'999'999'999) == "59:59");
}

TEST_CASE("A text takes as many rows as a terminal needs") {
  CHECK(rows_of("", 80) == 0);
  CHECK(rows_of("one\n", 80) == 1);
  CHECK(rows_of("one\n\nthree", 80) == 3);
  CHECK(rows_of(std::string(80, 'x') + "\n", 80) == 1);
  CHECK(rows_of(std::string(81, 'x') + "\n", 80) == 2);
  CHECK(rows_of("\033[1m" + std::string(80, 'x') + "\033[0m\n", 80) == 1);
  CHECK(rows_of("東京\n", 3) == 2);
  CHECK(rows_of("\033", 80) == 1);
}

TEST_CASE("The locale says whether a terminal takes more than ASCII") {
  Variable all("LC_ALL", nullptr), ctype("LC_CTYPE", nullptr), lang("LANG", nullptr);
  CHECK(!terminal_of(-1).utf8);
  Variable german("LANG", "de_DE.UTF-8");
  CHECK(terminal_of(-1).utf8);
  Variable plain("LC_CTYPE", "C");
  CHECK(!terminal_of(-1).utf8);
  Variable first("LC_ALL", "C.utf8");
  CHECK(terminal_of(-1).utf8);
  Variable empty("LC_ALL", "");
  CHECK(!terminal_of(-1).utf8);
}

TEST_CASE("What is at the other end") {
  Variable columns("COLUMNS", nullptr), term("TERM", "xterm"), no_color("NO_COLOR", nullptr);
  Fd null(::open("/dev/null", O_WRONLY));
  CHECK(!terminal_of(null.get()).is_terminal);
  CHECK(!terminal_of(null.get()).color);
  CHECK(terminal_of(null.get()).width == 80);
  PseudoTerminal terminal;
  if (terminal.fd() < 0) SKIP("no pseudo-terminal can be made");
  CHECK(terminal_of(terminal.fd()).is_terminal);
  CHECK(terminal_of(terminal.fd()).color);
  CHECK(terminal_of(terminal.fd()).width == 132);
  CHECK(terminal_of(terminal.fd()).height == 24);
  CHECK(terminal_of(null.get()).height == 0);
  {
    Variable wide("COLUMNS", "100"), set("NO_COLOR", "1");
    CHECK(terminal_of(terminal.fd()).width == 100);
    CHECK(!terminal_of(terminal.fd()).color);
  }
  Variable dumb("TERM", "dumb");
  CHECK(!terminal_of(terminal.fd()).color);
}

TEST_CASE("The status line in words") {
  CHECK(status_text({12'900'000'000, 1'204'331, 98'211, 3, 325'058'560, 0}) ==
        "cudabpf: tracing for 00:12  1,204,331 calls  98,211/s  3 processes  310 MiB  0 lost");
  CHECK(status_text({0, 0, 0, 1, 0, 7}) ==
        "cudabpf: tracing for 00:00  0 calls  0/s  1 process  0 B  7 lost");
}
