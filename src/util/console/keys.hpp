// Keys from the bytes that a terminal sends for them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cudabpf {

struct Key {
  enum class Code : std::uint8_t {
    character,
    up,
    down,
    left,
    right,
    page_up,
    page_down,
    home,
    end,
    enter,
    escape,
    tab,
    backspace,
    remove,
    function,  // which one: `character`, from 1
    control,   // with a letter: `character`, from 'a'
  };
  Code code = Code::character;
  char32_t character = 0;
  bool operator==(const Key&) const = default;
};

// Bytes may come in any pieces. Keys that are not needed are left out.
class KeyReader {
 public:
  static constexpr int ESCAPE_MS = 50;

  std::vector<Key> read(std::string_view bytes);
  // What came so far may continue: then wait ESCAPE_MS for more, and if nothing comes, say so.
  bool is_waiting() const { return !begun_.empty(); }
  std::vector<Key> nothing_came();

 private:
  // Takes a key from the front of `begun_`; false: it may continue.
  bool take(std::vector<Key>& keys);
  bool take_escape(std::vector<Key>& keys);

  std::string begun_;
};

}  // namespace cudabpf
