// Who may look where others could reach the server: whoever knows its token. It comes in the
// address that cudabpf printed, and then as a cookie.
#pragma once

#include <string>
#include <string_view>

#include "util/result.hpp"

namespace cudabpf::serve {

// 128 random bits, as hexadecimal digits.
Result<std::string> new_token();

// Takes as long however much of it is right.
bool is_token(std::string_view token, std::string_view given);

// The token in a Cookie header; empty: there is none.
std::string_view token_in_cookies(std::string_view cookies);
// The Set-Cookie header that keeps it.
std::string cookie_of(std::string_view token);

}  // namespace cudabpf::serve
