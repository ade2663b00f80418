#include <catch2/catch_test_macros.hpp>
#include <string>

#include "support/sample_records.hpp"

using namespace cudabpf;
using namespace samples;

TEST_CASE("An entry gives its words, its struct and its text") {
  StructBytes structure(16);
  structure.set<std::uint64_t>(8, 77);
  auto bytes =
      entry({.ts = 5, .pid = 1, .tid = 2, .sp = 3, .drops = 4}, 9, {10, 20, 30}, structure, "name");
  auto record = bytes.parse();
  REQUIRE(record);
  CHECK(record->head->ts == 5);
  CHECK(record->head->pid == 1);
  CHECK(record->head->tid == 2);
  CHECK(record->head->sp == 3);
  CHECK(record->head->drops == 4);
  CHECK(record->head->function == 9);
  CHECK(std::vector(record->words.begin(), record->words.end()) ==
        std::vector<std::uint64_t>{10, 20, 30});
  REQUIRE(record->structure.size() == 16);
  CHECK(static_cast<int>(record->structure[8]) == 77);
  CHECK(record->has_text);
  CHECK(record->text == "name");
  CHECK(record->process == nullptr);
}

TEST_CASE("An entry may be bare, or its string empty, or longer than what the record says of it") {
  auto bare = entry({}, 0);
  auto record = bare.parse();
  REQUIRE(record);
  CHECK(record->words.empty());
  CHECK(record->structure.empty());
  CHECK_FALSE(record->has_text);

  auto empty = entry({}, 0, {1}, {}, "");
  record = empty.parse();
  REQUIRE(record);
  CHECK(record->has_text);
  CHECK(record->text.empty());

  // Records with long strings have a fixed size.
  auto padded = entry({}, 0, std::vector<std::uint64_t>(CB_PLAIN_ARGS, 1), {}, "four");
  padded.resize(padded.bytes().size() + 4091);
  record = padded.parse();
  REQUIRE(record);
  CHECK(record->text == "four");
  CHECK(record->words.size() == CB_PLAIN_ARGS);
}

TEST_CASE("A string ends at its first NUL, or with its bytes") {
  auto bytes = entry({}, 0, {}, {}, "abcdef");
  bytes.raw()[sizeof(abi::cb_head) + 3] = std::byte{0};
  CHECK(bytes.parse()->text == "abc");
  auto open = entry({}, 0, {}, {}, "abcdef");
  open.head().string_size = 4;  // without the NUL
  CHECK(open.parse()->text == "abcd");
}

TEST_CASE("A return gives the words that the call wrote") {
  auto none = returned({}, std::uint16_t{3}, -7);
  auto record = none.parse();
  REQUIRE(record);
  CHECK(record->head->result == -7);
  CHECK(record->words.empty());
  auto two = returned({}, std::uint16_t{3}, 0, {11, 12});
  record = two.parse();
  REQUIRE(record);
  REQUIRE(record->words.size() == 2);
  CHECK(record->words[0] == 11);
  CHECK(record->words[1] == 12);
}

TEST_CASE("A name gives its handle, and its text where there was one to read") {
  auto named = name({}, 0x5500, "_Z4kernv");
  auto record = named.parse();
  REQUIRE(record);
  CHECK(record->handle == 0x5500);
  CHECK(record->text == "_Z4kernv");
  auto unreadable = name({}, 0x5501, "");
  record = unreadable.parse();
  REQUIRE(record);
  CHECK(record->handle == 0x5501);
  CHECK_FALSE(record->has_text);
}

TEST_CASE("Processes and threads have their own records") {
  for (auto kind : {abi::CB_START, abi::CB_FORK, abi::CB_EXEC, abi::CB_EXIT}) {
    auto bytes = process({.pid = 7}, kind);
    bytes.as<abi::cb_process>().ppid = 6;
    auto record = bytes.parse();
    REQUIRE(record);
    REQUIRE(record->process);
    CHECK(record->process->ppid == 6);
    CHECK(record->words.empty());
  }
  auto bytes = thread_exit({.tid = 8});
  auto record = bytes.parse();
  REQUIRE(record);
  CHECK(record->head->tid == 8);
  CHECK(record->process == nullptr);
}

TEST_CASE("Operations on the driver's devices come with the bytes that could be read") {
  StructBytes structure(32), parameters(8);
  structure.set<std::uint32_t>(8, 0x20800101);
  auto bytes = driver_begins({}, abi::CB_IOCTL, 7, 0xc020462a, structure, parameters);
  auto record = bytes.parse();
  REQUIRE(record);
  REQUIRE(record->driver);
  CHECK(record->driver->command == 0xc020462a);
  CHECK(record->structure.size() == 32);
  CHECK(record->parameters.size() == 8);
  CHECK(record->structure[8] == std::byte{0x01});
  for (std::size_t size = 0; size < sizeof(abi::cb_driver); size++)
    CHECK_FALSE(parse_record(bytes.bytes().first(size)));
  bytes.head().struct_size = CB_MAX_IOCTL + 1;
  CHECK_FALSE(bytes.parse());
  bytes.head().struct_size = 0;
  bytes.head().string_size = CB_MAX_PARAMS + 1;
  CHECK_FALSE(bytes.parse());

  auto ends = driver_ends({}, abi::CB_IOCTL, -22, structure);
  record = ends.parse();
  REQUIRE(record);
  REQUIRE(record->driver_return);
  CHECK(record->driver_return->result == -22);
  CHECK(record->structure.size() == 32);
  for (std::size_t size = 0; size < sizeof(abi::cb_driver_return); size++)
    CHECK_FALSE(parse_record(ends.bytes().first(size)));
  ends.head().struct_size = CB_MAX_IOCTL + 1;
  CHECK_FALSE(ends.parse());
  for (std::uint16_t op : std::initializer_list<std::uint16_t>{0, abi::CB_FAULT + 1, 0xffff}) {
    auto unknown = driver_begins({}, op, 7);
    CHECK_FALSE(unknown.parse());
    CHECK_FALSE(driver_ends({}, op).parse());
  }
}

TEST_CASE("Interrupts and errors of GPUs have records of their own") {
  auto handled = interrupted({.ts = 30, .tid = 3}, abi::CB_BOTTOM_HALF, 10);
  auto record = handled.parse();
  REQUIRE(record);
  REQUIRE(record->interrupt);
  CHECK(record->interrupt->began == 10);
  for (std::size_t size = 0; size < sizeof(abi::cb_interrupt); size++)
    CHECK_FALSE(parse_record(handled.bytes().first(size)));
  for (std::uint16_t op :
       std::initializer_list<std::uint16_t>{0, abi::CB_FAULT, abi::CB_GPU_FAULTS + 1})
    CHECK_FALSE(interrupted({}, op, 0).parse());

  auto error = xid({.ts = 5}, 79, "0000:0a:00.0", "off the bus");
  record = error.parse();
  REQUIRE(record);
  REQUIRE(record->xid);
  CHECK(record->xid->number == 79);
  CHECK(fixed_text(record->xid->message) == "off the bus");
  for (std::size_t size = 0; size < sizeof(abi::cb_xid); size++)
    CHECK_FALSE(parse_record(error.bytes().first(size)));
}

TEST_CASE("An entry has no more words, struct or string than it may, or than it says") {
  auto bytes = entry({}, 0, {1, 2}, StructBytes(8), "abc");
  REQUIRE(bytes.parse());
  for (std::size_t size = sizeof(abi::cb_head); size < bytes.bytes().size(); size++)
    CHECK_FALSE(parse_record(bytes.bytes().first(size)));

  auto words = entry({}, 0, std::vector<std::uint64_t>(CB_MAX_ARGS + 1));
  CHECK_FALSE(words.parse());
  words.head().nargs = CB_MAX_ARGS;
  CHECK(words.parse());

  auto structure = entry({}, 0, {}, StructBytes(CB_MAX_STRUCT));
  CHECK(structure.parse());
  structure.resize(structure.bytes().size() + 8);
  structure.head().struct_size = CB_MAX_STRUCT + 1;
  CHECK_FALSE(structure.parse());

  auto string = entry({}, 0, {}, {}, "abc");
  string.head().string_size = 5;
  CHECK_FALSE(string.parse());
  string.head().string_size = 0xffff;
  CHECK_FALSE(string.parse());
}

TEST_CASE("Bytes that are no record are refused") {
  SECTION("too short for a head") {
    auto bytes = entry({}, 0);
    for (std::size_t size = 0; size < sizeof(abi::cb_head); size++)
      CHECK_FALSE(parse_record(bytes.bytes().first(size)));
  }
  SECTION("unknown kinds") {
    auto bytes = with_head({}, 0, sizeof(abi::cb_process));
    bytes.head().function = abi::CB_IOCTL;
    for (int kind = 0; kind < 256; kind++) {
      bytes.head().kind = static_cast<std::uint8_t>(kind);
      CAPTURE(kind);
      bool none_of_its = kind == abi::CB_INTERRUPT || kind == abi::CB_GPU_WINDOW ||
                         kind == abi::CB_RETURN;  // no such operation, no such step, too many words
      CHECK(bytes.parse().has_value() == (kind >= abi::CB_ENTRY && !none_of_its &&
                                          (kind <= abi::CB_HOLDER || kind == abi::CB_BLAS_HANDLE)));
    }
  }
  SECTION("returns of odd sizes, or with more words than rows may read") {
    std::vector<std::uint64_t> words(CB_MAX_LISTED + 1);
    auto bytes = returned({}, std::uint16_t{0}, 0, words);
    for (std::size_t extra = 0; extra <= words.size() * 8; extra++) {
      CAPTURE(extra);
      CHECK(parse_record(bytes.bytes().first(sizeof(abi::cb_head) + extra)).has_value() ==
            (extra % 8 == 0 && extra <= CB_MAX_LISTED * 8));
    }
  }
  SECTION("names that end before their text does") {
    auto bytes = name({}, 1, "abc");
    for (std::size_t size = sizeof(abi::cb_head); size < bytes.bytes().size(); size++)
      CHECK_FALSE(parse_record(bytes.bytes().first(size)));
  }
  SECTION("processes that are cut, or whose command line is longer than its field") {
    auto bytes = process({}, abi::CB_EXEC);
    CHECK_FALSE(parse_record(bytes.bytes().first(sizeof(abi::cb_process) - 8)));
    bytes.as<abi::cb_process>().cmdline_size = CB_CMDLINE;
    CHECK(bytes.parse());
    bytes.as<abi::cb_process>().cmdline_size = CB_CMDLINE + 1;
    CHECK_FALSE(bytes.parse());
  }
}

TEST_CASE("A time that no clock reaches is refused, so that no sum of times wraps around") {
  constexpr std::uint64_t LATEST = std::numeric_limits<std::int64_t>::max();
  CHECK(returned({.ts = LATEST}, "cuInit").parse());
  CHECK_FALSE(returned({.ts = LATEST + 1}, "cuInit").parse());
  auto accepts = [](std::uint64_t began, std::uint64_t ended) {
    RecordBytes work(sizeof(abi::cb_gpu_operation));
    work.head().kind = abi::CB_GPU_WORK;
    work.head().function = abi::CB_GPU_COPY;
    auto& operation = *reinterpret_cast<abi::cb_gpu_operation*>(work.raw());
    operation.began = began;
    operation.ended = ended;
    return work.parse().has_value();
  };
  CHECK(accepts(LATEST, LATEST));
  CHECK_FALSE(accepts(LATEST + 1, LATEST + 1));
  CHECK_FALSE(accepts(1, LATEST + 1));
}

TEST_CASE("A fixed field ends at its first NUL or with the field; what follows is stale") {
  const char stale[8] = {'s', 'h', '\0', 'h', 'o', 'n', '3', '\0'};
  CHECK(fixed_text(stale) == "sh");
  const char full[4] = {'f', 'u', 'l', 'l'};
  CHECK(fixed_text(full) == "full");
  CHECK(fixed_text(std::span<const char>(full, 0)).empty());
}

TEST_CASE("What GPUs did comes with its text, and whole") {
  RecordBytes times(sizeof(abi::cb_gpu_times));
  times.append("path", 5);
  times.head().kind = abi::CB_GPU_TIMES;
  times.head().string_size = 5;
  auto record = times.parse();
  REQUIRE(record);
  CHECK(record->gpu_times);
  CHECK(record->text == "path");
  times.head().string_size = 6;
  CHECK_FALSE(times.parse());

  RecordBytes work(sizeof(abi::cb_gpu_operation));
  work.head().kind = abi::CB_GPU_WORK;
  CHECK_FALSE(work.parse());  // of no kind
  work.head().function = abi::CB_GPU_GRAPH;
  REQUIRE(work.parse());
  CHECK(work.parse()->gpu_operation);
  work.resize(sizeof(abi::cb_gpu_operation) - 1);
  CHECK_FALSE(work.parse());

  RecordBytes batch(sizeof(abi::cb_gpu_batch));
  batch.head().kind = abi::CB_GPU_BATCH;
  REQUIRE(batch.parse());
  CHECK(batch.parse()->gpu_batch);
  batch.resize(sizeof(abi::cb_gpu_batch) - 1);
  CHECK_FALSE(batch.parse());
}
