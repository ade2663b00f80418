#include "util/text/json_writer.hpp"

#include <fmt/format.h>

namespace cudabpf::json {

void Writer::decimal(std::string_view key, double value, int decimals) {
  raw(key, fmt::format("{:.{}f}", value, decimals));
}

}  // namespace cudabpf::json
