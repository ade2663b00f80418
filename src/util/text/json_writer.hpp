// JSON by hand, member by member: for lines of which there are too many to build a tree for each.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "util/text/json.hpp"

namespace cudabpf::json {

// An object, with lists and objects in it. What has no key is an element of the list that is open.
class Writer {
 public:
  void text(std::string_view key, std::string_view value) {
    wrote(put_string(room(key, 2 + MAX_EXPANSION * value.size()), value));
  }
  template <std::unsigned_integral Number>
  requires(!std::same_as<Number, bool>) void number(std::string_view key, Number value) {
    wrote(put_number(room(key, MAX_NUMBER), value));
  }
  void number(std::string_view key, const std::optional<std::uint64_t>& value) {
    if (value) number(key, *value);
  }
  void signed_number(std::string_view key, std::int64_t value) {
    wrote(put_signed(room(key, MAX_NUMBER), value));
  }
  void hex(std::string_view key, std::uint64_t value) {
    wrote(put_address(room(key, MAX_ADDRESS), value));
  }
  void microseconds(std::string_view key, std::uint64_t ns) {
    wrote(put_microseconds(room(key, MAX_NUMBER + 4), ns));
  }
  void decimal(std::string_view key, double value, int decimals);
  void decimal(std::string_view key, const std::optional<double>& value, int decimals) {
    if (value) decimal(key, *value, decimals);
  }
  void flag(std::string_view key, bool set) {
    if (set) boolean(key, true);
  }
  void boolean(std::string_view key, bool value) { raw(key, value ? "true" : "false"); }
  void null(std::string_view key) { raw(key, "null"); }
  void raw(std::string_view key, std::string_view json) {
    wrote(put(room(key, json.size()), json));
  }

  void begin_list(std::string_view key) { raw(key, "["); }
  void end_list() { text_ += ']'; }
  void begin_object(std::string_view key) { raw(key, "{"); }
  void begin_object() { element("{"); }
  void end_object() { text_ += '}'; }
  void text_element(std::string_view value) { element(quoted(value)); }
  void element(std::string_view json) { (separate(), text_) += json; }

  std::string object() && { return std::move(text_) + "}"; }
  std::string line() && { return std::move(text_) + "}\n"; }

 private:
  bool is_first() const { return text_.back() == '{' || text_.back() == '['; }
  void separate() {
    if (!is_first()) text_ += ',';
  }
  // The place for the value behind the key, which takes at most `size` bytes.
  char* room(std::string_view key, std::size_t size) {
    bool follows = !is_first();
    std::size_t end = text_.size();
    text_.resize(end + key.size() + 4 + size);
    char* at = text_.data() + end;
    if (follows) *at++ = ',';
    *at++ = '"';
    return put(put(at, key), "\":");
  }
  void wrote(const char* end) { text_.resize(static_cast<std::size_t>(end - text_.data())); }

  std::string text_ = "{";
};

}  // namespace cudabpf::json
