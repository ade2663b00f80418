// What is at the other end of a descriptor: how wide it is and whether it takes colour. And numbers
// as people read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cudabpf {

struct Terminal {
  bool is_terminal = false;
  bool color = false;
  unsigned width = 80;  // COLUMNS, or what the terminal says
  unsigned height = 0;  // rows; 0: not known
  bool utf8 = false;    // by the locale
};
Terminal terminal_of(int fd);

// How many rows a text takes. Its only control characters are line ends and colours.
std::size_t rows_of(std::string_view text, unsigned width);

std::string with_commas(std::uint64_t number);  // "1,204,331"
std::string count_of(std::uint64_t count, std::string_view one, std::string_view many);
std::string human_count(std::uint64_t number);  // the same, or "1.20 G" if that is too long
std::string human_bytes(std::uint64_t bytes);   // "1.20 GiB"
// Bytes a second: "179 GB/s". In powers of ten, as hardware and NCCL's tests count them.
std::string human_rate(double rate);
std::string human_time(std::uint64_t ns);  // "3.40 ms", "27:57 min"
std::string human_energy(double joules);   // "3.6 J", "1,825 J", "12.40 kJ"
std::string clock_time(std::uint64_t ns);  // "1:02:03", "02:03"

}  // namespace cudabpf
