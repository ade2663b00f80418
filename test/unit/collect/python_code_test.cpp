#include "collect/python/python_code.hpp"

#include <catch2/catch_test_macros.hpp>

#include "cudabpf/stacks.h"
#include "support/fake_memory.hpp"

using namespace cudabpf;

namespace {

constexpr std::uint64_t CODE_TYPE = 0x1000, TEXT_TYPE = 0x2000, BYTES_TYPE = 0x3000;
constexpr std::uint64_t CODE = 0x10000, FILE_NAME = 0x20000, FUNCTION = 0x30000, LINES = 0x40000;

PythonInterpreter python_3_11() {
  PythonInterpreter python;
  python.at = abi::cb_python_3_11;
  python.code_type = CODE_TYPE;
  python.text_type = TEXT_TYPE;
  python.bytes_type = BYTES_TYPE;
  return python;
}

void put_object(FakeMemory& memory, std::uint64_t at, std::uint64_t type, std::uint64_t size) {
  memory.put(at, std::string(64, '\0'));
  memory.put_value(at + CB_OBJECT_TYPE, type);
  memory.put_value(at + CB_OBJECT_SIZE, size);
}

void put_text(FakeMemory& memory, std::uint64_t at, std::string_view text) {
  put_object(memory, at, TEXT_TYPE, text.size());
  memory.put_value(at + CB_TEXT_STATE, std::uint32_t{1 << 2 | 1 << 5 | 1 << 6});
  memory.put(at + abi::cb_python_3_11.ascii_size, text);
}

// A function of two lines, with two instructions each.
FakeMemory with_code() {
  FakeMemory memory;
  const abi::cb_python_layout& at = abi::cb_python_3_11;
  memory.put(CODE, std::string(256, '\0'));
  put_object(memory, CODE, CODE_TYPE, 4);
  memory.put_value(CODE + at.in_code[abi::CB_CODE_FILE], FILE_NAME);
  memory.put_value(CODE + at.in_code[abi::CB_CODE_FUNCTION], FUNCTION);
  memory.put_value(CODE + at.in_code[abi::CB_CODE_LINES], LINES);
  memory.put_value(CODE + at.in_code[abi::CB_CODE_FIRST_LINE], std::uint32_t{10});
  put_text(memory, FILE_NAME, "/srv/train.py");
  put_text(memory, FUNCTION, "Net.forward");
  put_object(memory, LINES, BYTES_TYPE, 4);
  memory.put(LINES + CB_BYTES_CONTENT, "\xd1\x01\xd9\x01");
  return memory;
}

auto read(const FakeMemory& memory, std::int64_t instruction) {
  return read_frame_text(memory, python_3_11(), CODE,
                         static_cast<std::uint32_t>(
                             abi::cb_python_3_11.in_code[abi::CB_CODE_INSTRUCTIONS] + instruction));
}

}  // namespace

TEST_CASE("A frame's function, file and line are read from its code") {
  FakeMemory memory = with_code();
  auto frame = read(memory, 0);
  REQUIRE(frame);
  CHECK(frame->function == "Net.forward");
  CHECK(frame->file == "/srv/train.py");
  CHECK(frame->line == 10);
  CHECK_FALSE(frame->cut);
  CHECK(read(memory, 4)->line == 11);
  CHECK(read(memory, -2)->line == 10);  // its first instruction has yet to come
}

TEST_CASE("An instruction outside of its code has no frame") {
  FakeMemory memory = with_code();
  CHECK_FALSE(read(memory, -4));
  CHECK_FALSE(read(memory, 8));
  CHECK_FALSE(read_frame_text(memory, python_3_11(), CODE, ~0U));
}

TEST_CASE("What is no code any more, or has parts of other types, is not read") {
  const auto& in_code = abi::cb_python_3_11.in_code;
  for (std::uint64_t object : {CODE, FILE_NAME, FUNCTION, LINES}) {
    FakeMemory memory = with_code();
    memory.put_value(object + CB_OBJECT_TYPE, std::uint64_t{0x5000});
    CHECK_FALSE(read(memory, 0));
  }
  for (auto part : {abi::CB_CODE_FILE, abi::CB_CODE_FUNCTION, abi::CB_CODE_LINES}) {
    FakeMemory memory = with_code();
    memory.put_value(CODE + in_code[part], ~std::uint64_t{0});  // leads to nowhere, and wraps
    CHECK_FALSE(read(memory, 0));
    memory.put_value(CODE + in_code[part], CODE);  // leads back
    CHECK_FALSE(read(memory, 0));
  }
}

TEST_CASE("Sizes are what a program says: nothing is read beyond fixed bounds") {
  constexpr std::uint64_t ENDLESS = ~std::uint64_t{0} >> 1;
  FakeMemory memory = with_code();
  memory.put_value(LINES + CB_OBJECT_SIZE, ENDLESS);
  CHECK_FALSE(read(memory, 0));
  memory = with_code();
  memory.put_value(CODE + CB_OBJECT_SIZE, ENDLESS);
  CHECK_FALSE(read(memory, 0));
  memory = with_code();
  memory.put_value(FUNCTION + CB_OBJECT_SIZE, ENDLESS);
  CHECK_FALSE(read(memory, 0));  // what can be read of it ends before
  put_text(memory, FUNCTION, std::string(5000, 'f'));
  memory.put_value(FUNCTION + CB_OBJECT_SIZE, ENDLESS);
  auto frame = read(memory, 0);
  REQUIRE(frame);
  CHECK(frame->function.size() == CB_FUNCTION_TEXT);
  CHECK(frame->cut);
}

TEST_CASE("Strings that are not compact, or of an unknown width, are not read") {
  for (std::uint32_t state : {0U, 1U << 5, 3U << 2 | 1U << 5, 1U << 2}) {
    FakeMemory memory = with_code();
    memory.put_value(FUNCTION + CB_TEXT_STATE, state);
    CHECK_FALSE(read(memory, 0));
  }
}
