#include "util/console/keys.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "util/text/printable.hpp"

namespace cudabpf {

namespace {

using Code = Key::Code;
constexpr char ESCAPE = '\033';
constexpr std::size_t MAX_SEQUENCE = 32;  // longer ones are no key

struct Letter {
  char letter;
  Key key;
};
// After "ESC [" and "ESC O".
constexpr Letter LETTERS[] = {
    {'A', {Code::up}},          {'B', {Code::down}},        {'C', {Code::right}},
    {'D', {Code::left}},        {'H', {Code::home}},        {'F', {Code::end}},
    {'M', {Code::enter}},       {'P', {Code::function, 1}}, {'Q', {Code::function, 2}},
    {'R', {Code::function, 3}}, {'S', {Code::function, 4}}};

struct Number {
  unsigned number;
  Key key;
};
// After "ESC [", and before "~".
constexpr Number NUMBERS[] = {
    {1, {Code::home}},          {3, {Code::remove}},        {4, {Code::end}},
    {5, {Code::page_up}},       {6, {Code::page_down}},     {7, {Code::home}},
    {8, {Code::end}},           {11, {Code::function, 1}},  {12, {Code::function, 2}},
    {13, {Code::function, 3}},  {14, {Code::function, 4}},  {15, {Code::function, 5}},
    {17, {Code::function, 6}},  {18, {Code::function, 7}},  {19, {Code::function, 8}},
    {20, {Code::function, 9}},  {21, {Code::function, 10}}, {23, {Code::function, 11}},
    {24, {Code::function, 12}},
};

std::optional<Key> key_of_letter(char letter) {
  const auto* at = std::ranges::find(LETTERS, letter, &Letter::letter);
  return at == std::end(LETTERS) ? std::nullopt : std::optional(at->key);
}

// "5~", "1;2A" with a modifier, which is ignored; nothing: no key.
std::optional<Key> key_of(std::string_view parameters, char last) {
  if (last != '~') return key_of_letter(last);
  unsigned number = 0;
  std::from_chars(parameters.data(), parameters.data() + parameters.size(), number);
  const auto* at = std::ranges::find(NUMBERS, number, &Number::number);
  return at == std::end(NUMBERS) ? std::nullopt : std::optional(at->key);
}

bool is_last_of_sequence(char c) { return c >= '@' && c <= '~'; }

// A byte that begins neither UTF-8 nor a sequence.
std::optional<Key> key_of_control(unsigned char byte) {
  if (byte == '\r' || byte == '\n') return Key{Code::enter};
  if (byte == '\t') return Key{Code::tab};
  if (byte == 0x7f || byte == '\b') return Key{Code::backspace};
  if (byte >= 1 && byte <= 26) return Key{Code::control, static_cast<char32_t>('a' + byte - 1)};
  return {};
}

std::size_t length_by_first(unsigned char first) {
  return first < 0xc2 || first > 0xf4 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

}  // namespace

std::vector<Key> KeyReader::read(std::string_view bytes) {
  std::vector<Key> keys;
  for (char byte : bytes) {  // an unfinished sequence is always the start of one key alone
    begun_ += byte;
    while (!begun_.empty() && take(keys)) {
    }
  }
  return keys;
}

std::vector<Key> KeyReader::nothing_came() {
  std::string rest;
  rest.swap(begun_);
  if (rest.empty() || rest[0] != ESCAPE) return {};  // half a character
  std::vector<Key> keys = {{Code::escape}};
  if (rest.size() == 2) keys.push_back({Code::character, static_cast<char32_t>(rest[1])});
  return keys;
}

bool KeyReader::take(std::vector<Key>& keys) {
  auto first = static_cast<unsigned char>(begun_[0]);
  if (begun_[0] == ESCAPE) return take_escape(keys);
  if (first < ' ' || first == 0x7f) {
    if (auto key = key_of_control(first)) keys.push_back(*key);
    begun_.erase(0, 1);
    return true;
  }
  auto [code, size] = first_character(begun_);
  if (!size && begun_.size() < length_by_first(first)) return false;
  if (size && is_printable(code)) keys.push_back({Code::character, code});
  begun_.erase(0, std::max<std::size_t>(size, 1));
  return true;
}

bool KeyReader::take_escape(std::vector<Key>& keys) {
  if (begun_.size() == 1) return false;
  char second = begun_[1];
  if (second != '[' && second != 'O') {  // not Alt: two keys
    keys.push_back({Code::escape});
    begun_.erase(0, 1);
    return true;
  }
  if (begun_.size() == 2) return false;
  char last = begun_.back();
  // The Linux console's F1 to F5: "ESC [ [ A".
  bool is_console = second == '[' && begun_[2] == '[';
  if (is_console && begun_.size() == 3) return false;
  if (last == ESCAPE || static_cast<unsigned char>(last) < ' ') {  // it was broken off
    begun_.erase(0, begun_.size() - 1);
    return true;
  }
  if (begun_.size() < MAX_SEQUENCE && !is_last_of_sequence(last)) return false;
  if (is_console && last >= 'A' && last <= 'E')
    keys.push_back({Code::function, static_cast<char32_t>(last - 'A' + 1)});
  else if (auto key = key_of(std::string_view(begun_).substr(2), last); key && !is_console)
    keys.push_back(*key);
  begun_.clear();
  return true;
}

}  // namespace cudabpf
