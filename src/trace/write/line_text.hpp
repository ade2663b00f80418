// Makes a line's text from its fields.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cudabpf/sink.hpp"
#include "util/system/clock.hpp"

namespace cudabpf {

using LineFields = nlohmann::ordered_json;

// Newline included. Texts and lists that are too long for readers are cut, and the line says so.
std::string line_of(LineFields fields);
// The same, with all of every text.
std::string uncut_line_of(const LineFields& fields);

void set_unless_empty(LineFields& object, const char* key, const std::string& text);
// What a library's own line, and the header, say of it.
LineFields library_fields(const Library& library);
LineFields clock_error_fields(const ClockError& error);
LineFields rank_fields(const RankVariables& rank);
LineFields accounts_fields(const Accounts& accounts);

}  // namespace cudabpf
