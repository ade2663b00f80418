#include "collect/python/python_interpreter.hpp"

#include <elf.h>

#include <catch2/catch_test_macros.hpp>

#include "collect/python/loaded_symbols.hpp"
#include "support/fake_memory.hpp"

using namespace cudabpf;

namespace {

constexpr std::uint64_t LIBRARY_AT = 0x7f0000000000;
constexpr std::uint64_t DYNAMIC = 0x400, HASHES = 0x800, STRINGS = 0xc00, SYMBOLS = 0x1000;
constexpr std::uint64_t DATA = 0x2000;

// A library with these symbols, in one chain, as it is loaded.
struct LoadedPython {
  FakeMemory memory;
  std::vector<std::string> names;

  explicit LoadedPython(std::vector<std::string> exported) : names(std::move(exported)) {
    memory.put(LIBRARY_AT, std::string(DATA + 0x1000, '\0'));
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_phoff = sizeof(header);
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 2;
    memory.put_value(LIBRARY_AT, header);
    Elf64_Phdr load{}, dynamic{};
    load.p_type = PT_LOAD;
    dynamic.p_type = PT_DYNAMIC;
    dynamic.p_vaddr = DYNAMIC;
    memory.put_value(LIBRARY_AT + sizeof(header), load);
    memory.put_value(LIBRARY_AT + sizeof(header) + sizeof(load), dynamic);
    put_dynamic();
    put_symbols();
  }

  void put_dynamic(std::uint64_t bias = LIBRARY_AT) {
    std::uint64_t at = LIBRARY_AT + DYNAMIC;
    for (auto [tag, value] : {std::pair{DT_GNU_HASH, HASHES}, std::pair{DT_STRTAB, STRINGS},
                              std::pair{DT_SYMTAB, SYMBOLS}}) {
      memory.put_value(at, std::int64_t{tag});
      memory.put_value(at + 8, value + bias);
      at += 16;
    }
  }
  void put_symbols() {
    const std::uint32_t head[] = {1, 1, 1, 0};  // one bucket, from symbol 1 on
    memory.put_value(LIBRARY_AT + HASHES, head);
    memory.put_value(LIBRARY_AT + HASHES + 24, std::uint32_t{1});
    std::uint64_t text = 1;
    for (std::size_t i = 0; i < names.size(); i++) {
      std::uint32_t hash = 5381;
      for (char c : names[i]) hash = hash * 33 + static_cast<unsigned char>(c);
      hash = i + 1 == names.size() ? hash | 1 : hash & ~1U;
      memory.put_value(LIBRARY_AT + HASHES + 28 + 4 * i, hash);
      Elf64_Sym symbol{};
      symbol.st_name = static_cast<std::uint32_t>(text);
      symbol.st_shndx = 1;
      symbol.st_value = address(i) - LIBRARY_AT;
      memory.put_value(LIBRARY_AT + SYMBOLS + (i + 1) * sizeof(symbol), symbol);
      memory.put(LIBRARY_AT + STRINGS + text, names[i]);
      text += names[i].size() + 1;
    }
  }
  static std::uint64_t address(std::size_t i) { return LIBRARY_AT + DATA + i * 0x100; }

  std::optional<PythonInterpreter> python(const std::string& path = "/usr/lib/libpython3.11.so") {
    Mapping mapping;
    mapping.start = LIBRARY_AT;
    mapping.end = LIBRARY_AT + DATA + 0x1000;
    mapping.path = path;
    return find_python(memory, {mapping}, "/usr/bin/program");
  }
};

const std::vector<std::string> OF_PYTHON = {"_PyRuntime", "Py_Version", "PyCode_Type",
                                            "PyUnicode_Type", "PyBytes_Type"};

}  // namespace

TEST_CASE(
    "Symbols are found as they are loaded, whether their tables' addresses are moved or not") {
  LoadedPython library({"first", "second"});
  for (std::uint64_t bias : {LIBRARY_AT, std::uint64_t{0}}) {
    library.put_dynamic(bias);
    auto symbols = LoadedSymbols::at(library.memory, LIBRARY_AT);
    REQUIRE(symbols);
    CHECK(symbols->address_of("first") == LoadedPython::address(0));
    CHECK(symbols->address_of("second") == LoadedPython::address(1));
    CHECK_FALSE(symbols->address_of("third"));
  }
  CHECK_FALSE(LoadedSymbols::at(library.memory, LIBRARY_AT + 8));
}

TEST_CASE("A chain of symbols without an end is left after a while") {
  LoadedPython library({"first"});
  library.memory.put(LIBRARY_AT + HASHES + 28, std::string(64 << 10, '\2'));
  auto symbols = LoadedSymbols::at(library.memory, LIBRARY_AT);
  REQUIRE(symbols);
  library.memory.reads = 0;
  CHECK_FALSE(symbols->address_of("second"));
  CHECK(library.memory.reads < 10000);
}

TEST_CASE("An interpreter of a known version is followed") {
  LoadedPython library(OF_PYTHON);
  library.memory.put_value(LoadedPython::address(1), std::uint64_t{0x030b02f0});
  library.memory.put_value(LoadedPython::address(2) + CB_TYPE_DEALLOCATES, std::uint64_t{0x1234});
  auto python = library.python();
  REQUIRE(python);
  CHECK(python->version == "3.11.2");
  CHECK(python->why_not.empty());
  CHECK(python->runtime == LoadedPython::address(0));
  CHECK(python->code_type == LoadedPython::address(2));
  CHECK(python->deallocates == 0x1234);
  CHECK(python->at.native_id == abi::cb_python_3_11.native_id);
  CHECK_FALSE(library.python("/usr/lib/libother.so"));
}

TEST_CASE("Interpreters that are not known are refused by name") {
  LoadedPython library(OF_PYTHON);
  auto refused = [&](std::uint64_t version) {
    library.memory.put_value(LoadedPython::address(1), version);
    auto python = library.python();
    return python ? python->version + ": " + python->why_not : "none";
  };
  CHECK(refused(0x030f00a1) == "3.15.0: its version is newer than 3.14");
  CHECK(refused(0x030a0cf0) == "3.10.12: its version is older than 3.11");
  CHECK(refused(0x030d01f0) == "3.13.1: it does not say where its frames are");
  library.memory.put_value(LoadedPython::address(0), std::uint64_t{CB_PYTHON_COOKIE});
  library.memory.put_value(LoadedPython::address(0) + 8, std::uint64_t{0x030e00f0});
  library.memory.put_value(LoadedPython::address(0) + 16, std::uint64_t{1});
  CHECK(refused(0x030e00f0) == "3.14.0: it is built without a global lock (free-threaded)");
  library.memory.put_value(LoadedPython::address(0) + 16, std::uint64_t{0});
  CHECK(refused(0x030e00f0) == "3.14.0: what it says of its frames is wrong");
  library = LoadedPython({"_PyRuntime"});
  auto python = library.python("/usr/lib/libpython3.10.so.1.0");
  REQUIRE(python);
  CHECK(python->version == "3.10");
  CHECK(python->why_not == "its version is older than 3.11");
  library = LoadedPython({"_PyRuntime", "Py_Version"});
  CHECK(refused(0x030b02f0) == "3.11.2: it does not export what its frames are found by");
}
