// One description of a struct's members, for writing them as JSON and for reading them back:
// DESCRIBE names each once. What is read comes from anybody: a member that is missing, or has
// another type or more items than it may, is an error that names it; members that are not described
// are passed over, since later versions have more.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "util/text/json_text.hpp"

namespace cudabpf::bundle {

using Json = nlohmann::ordered_json;

// Written as text, since readers in other languages take large numbers for floating point.
struct Address {
  std::uint64_t value = 0;
  bool operator==(const Address&) const = default;
};

inline constexpr std::size_t MAX_ITEMS = std::size_t{1} << 20, MAX_TEXT = std::size_t{64} << 10;

// Thing, to be filled in, or const, to be written.
template <typename T, typename Thing>
concept Is = std::is_same_v<std::remove_const_t<T>, Thing>;

// DESCRIBE(Extent, offset, size), beside the struct, makes
//
//   void describe(auto& fields, Is<Extent> auto& thing) {
//     fields("offset", thing.offset);
//     fields("size", thing.size);
//   }
//
// Such a function is written out where a key is not the member's name.
#define DESCRIBE(Thing, ...)                                              \
  void describe(auto& fields, ::cudabpf::bundle::Is<Thing> auto& thing) { \
    FIELDS_READ_64_TIMES(FIELDS_OF(__VA_ARGS__))                          \
  }
// A macro is not expanded within itself, so FIELDS_OF leaves the call for the other members as
// FIELDS_REST () (…), which becomes FIELDS_OF(…) when the preprocessor reads the result once more.
#define FIELDS_OF(member, ...)   \
  fields(#member, thing.member); \
  __VA_OPT__(FIELDS_REST FIELDS_NONE(__VA_ARGS__))
#define FIELDS_REST() FIELDS_OF
#define FIELDS_NONE ()
#define FIELDS_READ_64_TIMES(...) \
  FIELDS_READ_16_TIMES(           \
      FIELDS_READ_16_TIMES(FIELDS_READ_16_TIMES(FIELDS_READ_16_TIMES(__VA_ARGS__))))
#define FIELDS_READ_16_TIMES(...) \
  FIELDS_READ_4_TIMES(FIELDS_READ_4_TIMES(FIELDS_READ_4_TIMES(FIELDS_READ_4_TIMES(__VA_ARGS__))))
#define FIELDS_READ_4_TIMES(...) FIELDS_READ(FIELDS_READ(FIELDS_READ(FIELDS_READ(__VA_ARGS__))))
#define FIELDS_READ(...) __VA_ARGS__

template <typename>
inline constexpr bool IS_LIST = false;
template <typename T>
inline constexpr bool IS_LIST<std::vector<T>> = true;
template <typename>
inline constexpr bool IS_OPTIONAL = false;
template <typename T>
inline constexpr bool IS_OPTIONAL<std::optional<T>> = true;
template <typename>
inline constexpr bool IS_ARRAY = false;
template <typename T, std::size_t N>
inline constexpr bool IS_ARRAY<std::array<T, N>> = true;

// An enum has its words, in the order of its values, as `names_of(Enum{})`.
class Writing {
 public:
  template <typename T>
  void operator()(const char* key, const T& member) {
    if constexpr (IS_OPTIONAL<T>) {
      if (member) to_[key] = json_of(*member);
    } else {
      to_[key] = json_of(member);
    }
  }

  template <typename T>
  static Json json_of(const T& value) {
    if constexpr (std::is_same_v<T, Address>) {
      return fmt::format("{:#x}", value.value);
    } else if constexpr (std::is_enum_v<T>) {
      return names_of(value)[static_cast<std::size_t>(value)];
    } else if constexpr (IS_LIST<T> || IS_ARRAY<T>) {
      Json list = Json::array();
      for (const auto& one : value) list.push_back(json_of(one));
      return list;
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      return value;
    } else {
      Writing fields;
      describe(fields, value);
      return std::move(fields.to_);
    }
  }

  // With a line's end. `indent` as in Json::dump().
  template <typename T>
  static std::string text_of(const T& value, int indent = -1) {
    return json_of(value).dump(indent, ' ', false, Json::error_handler_t::replace) + '\n';
  }

 private:
  Json to_ = Json::object();
};

class Reading {
 public:
  template <typename T>
  void operator()(const char* key, T& member) {
    if (!fault_.empty()) return;
    const Json* found = member_of(*from_, key);
    if constexpr (IS_OPTIONAL<T>) {
      if (found) within(fmt::format(".{}", key), *found, member.emplace());
    } else if (!found) {
      fault_ = fmt::format("{}.{} is missing", at_, key);
    } else {
      within(fmt::format(".{}", key), *found, member);
    }
  }

  // Fills in `thing`. Returns what is wrong, and where: "manifest.images[3].hash is not a text",
  // with `name` for the whole; empty: nothing is.
  template <typename T>
  static std::string read(const Json& json, std::string name, T& thing) {
    Reading fields(std::move(name));
    fields.value(json, thing);
    return fields.fault_;
  }

 private:
  explicit Reading(std::string at) : at_(std::move(at)) {}

  template <typename T>
  void within(const std::string& part, const Json& json, T& to) {
    std::size_t size = at_.size();
    at_ += part;
    value(json, to);
    at_.resize(size);
  }

  void wrong(std::string_view what) { fault_ = fmt::format("{} is {}", at_, what); }

  template <typename T>
  void value(const Json& json, T& to) {
    if constexpr (std::is_same_v<T, Address>) {
      address(json, to);
    } else if constexpr (std::is_same_v<T, bool>) {
      json.is_boolean() ? json.get_to(to), void() : wrong("neither true nor false");
    } else if constexpr (std::is_enum_v<T>) {
      word(json, to);
    } else if constexpr (IS_LIST<T>) {
      list(json, to);
    } else if constexpr (IS_ARRAY<T>) {
      if (!json.is_array() || json.size() != to.size()) return wrong("not a list of that size");
      for (std::size_t i = 0; i < to.size() && fault_.empty(); i++)
        within(fmt::format("[{}]", i), json[i], to[i]);
    } else if constexpr (std::is_integral_v<T>) {
      number(json, to);
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!json.is_string()) return wrong("not a text");
      json.get_to(to);
      if (to.size() > MAX_TEXT) wrong("longer than it may be");
    } else {
      if (!json.is_object()) return wrong("not an object");
      const Json* outer = std::exchange(from_, &json);
      describe(*this, to);
      from_ = outer;
    }
  }

  template <typename T>
  void list(const Json& json, std::vector<T>& to) {
    if (!json.is_array()) return wrong("not a list");
    if (json.size() > MAX_ITEMS) return wrong("longer than it may be");
    to.resize(json.size());
    for (std::size_t i = 0; i < to.size() && fault_.empty(); i++)
      within(fmt::format("[{}]", i), json[i], to[i]);
  }

  template <typename T>
  void number(const Json& json, T& to) {
    auto in_range = [&](auto number) {
      std::in_range<T>(number) ? to = static_cast<T>(number), void() : wrong("out of range");
    };
    if (json.is_number_unsigned())
      in_range(json.get<std::uint64_t>());
    else if (json.is_number_integer())
      in_range(json.get<std::int64_t>());
    else
      wrong("not a whole number");
  }

  template <typename T>
  void word(const Json& json, T& to) {
    const auto& names = names_of(to);
    for (std::size_t i = 0; i < std::size(names) && json.is_string(); i++)
      if (json.get_ref<const std::string&>() == names[i]) {
        to = static_cast<T>(i);
        return;
      }
    wrong("none of the words that it may be");
  }

  void address(const Json& json, Address& to) {
    constexpr std::size_t MAX_DIGITS = 16;
    std::string text = json.is_string() ? json.get<std::string>() : std::string();
    if (!text.starts_with("0x") || text.size() == 2 || text.size() > 2 + MAX_DIGITS ||
        text.find_first_not_of("0123456789abcdef", 2) != std::string::npos)
      return wrong("not an address");
    to.value = std::stoull(text.substr(2), nullptr, 16);
  }

  const Json* from_ = nullptr;
  std::string at_, fault_;
};

}  // namespace cudabpf::bundle
