#include "util/console/keys.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace cudabpf;
using Keys = std::vector<Key>;

namespace {

Keys keys_of(std::string_view bytes) { return KeyReader().read(bytes); }

}  // namespace

TEST_CASE("keys are recognised by what terminals send for them") {
  CHECK(keys_of("aZ<\\ ") == Keys{{Key::Code::character, 'a'},
                                  {Key::Code::character, 'Z'},
                                  {Key::Code::character, '<'},
                                  {Key::Code::character, '\\'},
                                  {Key::Code::character, ' '}});
  CHECK(keys_of("\033[A\033OB\033[C\033OD") ==
        Keys{{Key::Code::up}, {Key::Code::down}, {Key::Code::right}, {Key::Code::left}});
  CHECK(keys_of("\033[5~\033[6~\033[1~\033[4~\033[H\033[F\033OH\033OF\033[7~\033[8~\033[3~") ==
        Keys{{Key::Code::page_up},
             {Key::Code::page_down},
             {Key::Code::home},
             {Key::Code::end},
             {Key::Code::home},
             {Key::Code::end},
             {Key::Code::home},
             {Key::Code::end},
             {Key::Code::home},
             {Key::Code::end},
             {Key::Code::remove}});
  CHECK(keys_of("\r\n\t\177\b\014") == Keys{{Key::Code::enter},
                                            {Key::Code::enter},
                                            {Key::Code::tab},
                                            {Key::Code::backspace},
                                            {Key::Code::backspace},
                                            {Key::Code::control, 'l'}});
}

TEST_CASE("function keys are recognised as xterm, rxvt and the console send them") {
  constexpr std::string_view XTERM[] = {"\033OP",   "\033OQ",   "\033OR",   "\033OS",   "\033[15~",
                                        "\033[17~", "\033[18~", "\033[19~", "\033[20~", "\033[21~"};
  for (char32_t number = 1; number <= 10; number++)
    CHECK(keys_of(XTERM[number - 1]) == Keys{{Key::Code::function, number}});
  CHECK(keys_of("\033[11~\033[14~") == Keys{{Key::Code::function, 1}, {Key::Code::function, 4}});
  CHECK(keys_of("\033[[A\033[[E") == Keys{{Key::Code::function, 1}, {Key::Code::function, 5}});
  CHECK(keys_of("\033[1;5A\033[5;2~\033[1;2P") ==
        Keys{{Key::Code::up}, {Key::Code::page_up}, {Key::Code::function, 1}});
}

TEST_CASE("Escape before a plain key is two keys") {
  CHECK(keys_of("\033q") == Keys{{Key::Code::escape}, {Key::Code::character, 'q'}});
  CHECK(keys_of("\033\033[A") == Keys{{Key::Code::escape}, {Key::Code::up}});
  CHECK(keys_of("\033\r") == Keys{{Key::Code::escape}, {Key::Code::enter}});
}

TEST_CASE("Escape alone is reported once nothing follows") {
  KeyReader reader;
  CHECK(reader.read("\033").empty());
  CHECK(reader.is_waiting());
  CHECK(reader.nothing_came() == Keys{{Key::Code::escape}});
  CHECK_FALSE(reader.is_waiting());
  CHECK(reader.nothing_came().empty());
  CHECK(reader.read("x") == Keys{{Key::Code::character, 'x'}});
  CHECK(reader.read("\033[").empty());
  CHECK(reader.nothing_came() == Keys{{Key::Code::escape}, {Key::Code::character, '['}});
  CHECK(reader.read("\033[1;").empty());
  CHECK(reader.nothing_came() == Keys{{Key::Code::escape}});
}

TEST_CASE("keys may come in any pieces") {
  constexpr std::string_view BYTES = "a\033[5~\303\251\033OP\344\270\255\033[1;2B\360\237\230\200q";
  Keys whole = keys_of(BYTES);
  CHECK(whole.size() == 8);
  for (std::size_t cut = 1; cut < BYTES.size(); cut++) {
    KeyReader reader;
    Keys keys = reader.read(BYTES.substr(0, cut));
    for (const Key& key : reader.read(BYTES.substr(cut))) keys.push_back(key);
    CHECK(keys == whole);
  }
  KeyReader one_by_one;
  Keys keys;
  for (char byte : BYTES)
    for (const Key& key : one_by_one.read({&byte, 1})) keys.push_back(key);
  CHECK(keys == whole);
}

TEST_CASE("what is no key is left out, and ends") {
  CHECK(keys_of("\033[99~\033[?1;2cx") == Keys{{Key::Code::character, 'x'}});
  CHECK(keys_of(std::string("\0\034\377\200x", 5)) == Keys{{Key::Code::character, 'x'}});
  CHECK(keys_of("\303x").back() == Key{Key::Code::character, 'x'});
  CHECK(keys_of("\342\200\256x") == Keys{{Key::Code::character, 'x'}});  // it turns text round
  std::string endless = "\033[" + std::string(1000, '1');
  KeyReader reader;
  reader.read(endless);
  CHECK(reader.read("\033[A").back() == Key{Key::Code::up});
  CHECK(keys_of("\033[1\033[A") == Keys{{Key::Code::up}});
}
