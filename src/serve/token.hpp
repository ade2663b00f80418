// Who may look where others could reach the server: whoever knows its token. It comes in the
// address that cudabpf printed, and then as a cookie.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "util/result.hpp"

namespace cudabpf::serve {

// 128 random bits, as hexadecimal digits.
Result<std::string> new_token();

// Takes as long however much of it is right.
bool is_token(std::string_view token, std::string_view given);

// The token that a file has, which others may not read.
Result<std::string> token_in_file(const std::string& path);
// Whether these are the Authorization headers of one who knows it: "Bearer TOKEN". Unlike those
// that cudabpf makes, such tokens differ in length.
bool is_bearer_of(std::string_view token, const std::vector<std::string>& authorizations);

// What the cookie is called for who sends this Host header. A browser has the same cookies for all
// ports of a machine, and each may lead to a server with a token of its own.
std::string cookie_name(std::string_view host);
// The token in a Cookie header; empty: there is none.
std::string_view token_in_cookies(std::string_view cookies, std::string_view name);
// The Set-Cookie header that keeps it.
std::string cookie_of(std::string_view token, std::string_view name);

}  // namespace cudabpf::serve
